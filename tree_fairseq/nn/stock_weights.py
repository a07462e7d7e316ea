"""Starting where fairseq's model starts: the same weights from the same seed, or those of its checkpoint.

A model with more parts than fairseq's draws more numbers at random, and everything that is drawn after a part would be
other than in fairseq's model. Two models of one seed would then differ by chance as two seeds do, in their initial
weights and in the units that dropout leaves out. So parts of our own are drawn aside, and parts that take the place of
fairseq's take over its weights.
"""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

logger = logging.getLogger(__name__)

Part = TypeVar("Part", bound=nn.Module)


def built_aside(build: Callable[[], Part], cfg: Any = None) -> Part:
    """Builds a part of a model without a trace in the random numbers that are drawn afterwards.

    A model ``--as-published`` in ``cfg`` knows no other model, and draws it like any other part.
    """
    with torch.random.fork_rng(devices=[], enabled=not getattr(cfg, "as_published", False)):
        return build()


def built_in_place(stock: nn.Module, build: Callable[[], Part], cfg: Any = None) -> Part:
    """Builds a part that replaces a module of fairseq's, and copies the weights whose names are equal.

    Its other weights are drawn aside; ``--as-published``, it draws all of its weights.
    """
    part = built_aside(build, cfg)
    if not getattr(cfg, "as_published", False):
        part.load_state_dict(stock.state_dict(), strict=False)
    return part


def add_initial_weights(state_dict: dict[str, Tensor], initial: dict[str, Tensor]) -> None:
    """Adds the ``initial`` weights of a new part of a model to a checkpoint that has none of them; logs their names."""
    if initial and not any(name in state_dict for name in initial):
        state_dict.update(initial)
        logger.info("weights that the checkpoint does not have, left as initialised: %s", ", ".join(initial))
