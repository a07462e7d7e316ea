"""Which versions of torch and fairseq the plugin works with, and what fairseq 0.12.2 needs for it.

``fairseq`` 0.12.2 is the last release of its authors; ``fairseq-fixed`` 0.12.3.1 is the code that they published after
it, for Python 3.11 and later. Folders and checkpoints of one are good for the other: the functions here make the saved
models of 0.12.2 have the same tensors, in the same order, as those of 0.12.3.
"""

from __future__ import annotations

import importlib
import logging
import re
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Callable

import fairseq
import torch
from fairseq.modules import SinusoidalPositionalEmbedding
from fairseq.modules.transformer_layer import TransformerEncoderLayerBase
from torch import nn

from tree_fairseq.errors import VersionError
from tree_fairseq.support.logs import is_command

logger = logging.getLogger(__name__)

_OLDEST_TORCH = (2, 4)  # the first with torch.serialization.add_safe_globals
_OLDEST_FAIRSEQ = (0, 12, 2)
_NEWEST_FAIRSEQ = (0, 12)  # later ones have not been tried
# The parameters of a layer of 0.12.2 that are copies of others.
_COPIES = tuple(f"{name}_{kind}" for name in ("in_proj", "out_proj", "fc1", "fc2") for kind in ("weight", "bias"))
HAS_COPIES = "_load_from_state_dict" in vars(TransformerEncoderLayerBase)
_SAVES_MARKER = "_load_from_state_dict" not in vars(SinusoidalPositionalEmbedding)


def require_versions() -> None:
    """Raises VersionError if torch or fairseq is too old; warns of a fairseq that nobody has tried."""
    for package, oldest in ((torch, _OLDEST_TORCH), (fairseq, _OLDEST_FAIRSEQ)):
        if _numbers(package.__version__) < oldest:
            name, needed = package.__name__, ".".join(map(str, oldest))
            raise VersionError(
                f"tree-fairseq needs {name} {needed} or later, and {name} {package.__version__} is installed: "
                f"pip install '{name}>={needed}'"
            )
    if _numbers(fairseq.__version__)[:2] > _NEWEST_FAIRSEQ:
        logger.warning(
            "tree-fairseq was tested with fairseq 0.12.2 and fairseq-fixed 0.12.3.1; fairseq %s may have changed what "
            "it relies on",
            fairseq.__version__,
        )


def require_assertions() -> None:
    """Raises VersionError in a training by ``python -O``: fairseq copies its checkpoints inside of assertions."""
    if not __debug__ and is_command() and "train" in Path(sys.argv[0]).name:
        raise VersionError(
            "python -O leaves assertions out, and fairseq copies checkpoint_best.pt and checkpoint_last.pt inside of "
            "them, so they would not be written: train without -O and PYTHONOPTIMIZE"
        )


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers with which a version begins: (2, 13, 0) of ``2.13.0+cpu``, (1, 0, 0) of ``1.0.0a0+3c1f4a2``."""
    return tuple(map(int, re.match(r"\d+(?:\.\d+)*", version)[0].split(".")))


def without_copies(init: Callable) -> Callable:
    """Removes the copies of the weights from an encoder layer of 0.12.2, and so its fast path."""
    if not HAS_COPIES:
        return init

    def build(self, *args, **kwargs):
        init(self, *args, **kwargs)
        for name in _COPIES:
            delattr(self, name)
        self.can_use_fastpath = False

    return build


def load_without_copies(load: Callable) -> Callable:
    """Loads the weights of an encoder layer of 0.12.2 without the copies that a checkpoint may have."""
    if not HAS_COPIES:
        return load

    def load_from_state_dict(self, state_dict, prefix, *args):
        for name in _COPIES:
            state_dict.pop(prefix + name, None)
        nn.Module._load_from_state_dict(self, state_dict, prefix, *args)

    return load_from_state_dict


def without_marker(init: Callable) -> Callable:
    """Keeps ``_float_tensor``, which knows the type and the device of 0.12.2's positions, out of checkpoints."""
    if not _SAVES_MARKER:
        return init

    def build(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self._non_persistent_buffers_set.add("_float_tensor")
        self._register_load_state_dict_pre_hook(_forget_old_positions)

    return build


def _forget_old_positions(state_dict: dict, prefix: str, *_: object) -> None:
    for name in ("weights", "_float_tensor"):
        state_dict.pop(prefix + name, None)


def stand_in_for_broken_torchaudio() -> None:
    """Puts an empty module in the place of a torchaudio that was made for another torch.

    ``transformers`` 4.40 and later imports any torchaudio that is installed, for parts that are not used here.
    """
    try:
        importlib.import_module("torchaudio")
    except ImportError:
        pass
    except OSError:
        stand_in = ModuleType("torchaudio")
        stand_in.__spec__ = ModuleSpec("torchaudio", loader=None)
        sys.modules["torchaudio"] = stand_in
