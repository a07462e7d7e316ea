"""Which versions of torch and fairseq the plugin works with, and what fairseq 0.12.2 needs for it.

``fairseq`` 0.12.2 is the last release of its authors; ``fairseq-fixed`` 0.12.3.1 is the code that they published after
it, for Python 3.11 and later. Folders and checkpoints of one are good for the other: the changes here make the saved
models of 0.12.2 have the same tensors, in the same order, as those of 0.12.3.
"""

from __future__ import annotations

import logging
import re
import warnings
from typing import Any, Callable

import fairseq
import torch
from fairseq.modules import MultiheadAttention, SinusoidalPositionalEmbedding, transformer_layer
from torch import nn

from tree_fairseq.errors import VersionError
from tree_fairseq.repairs.compat import wrap

logger = logging.getLogger(__name__)

_OLDEST_TORCH = (2, 4)  # the first with torch.serialization.add_safe_globals
_OLDEST_FAIRSEQ = (0, 12, 2)
_NEWEST_FAIRSEQ = (0, 12)  # the later ones are not known
# The tensors that the fast path of 0.12.2 has beside the projections that they are copies of.
_COPIES = tuple(f"{name}_{kind}" for name in ("in_proj", "out_proj", "fc1", "fc2") for kind in ("weight", "bias"))
# torch's name for a mask of padding, [B, T], as an argument of its fast path.
_PADDING_MASK = 1


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


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers with which a version begins: (2, 13, 0) of ``2.13.0+cpu``, (1, 0, 0) of ``1.0.0a0+3c1f4a2``."""
    return tuple(map(int, re.match(r"\d+(?:\.\d+)*", version)[0].split(".")))


def mend_official_fairseq() -> None:
    """Makes fairseq 0.12.2 save and load the models of 0.12.3, and evaluate them; does nothing to other versions."""
    layer = transformer_layer.TransformerEncoderLayerBase
    if "_load_from_state_dict" in vars(layer):
        wrap(layer, "__init__", _with_copies_apart)
        wrap(layer, "_load_from_state_dict", _load_without_copies)
        layer.can_use_fastpath = property(_can_use_fast_path, _allow_fast_path)
        wrap(torch, "_transformer_encoder_layer_fwd", _with_mask_type)
        # fairseq uses nested tensors where the padding is on the right.
        warnings.filterwarnings("ignore", "The PyTorch API of nested tensors is in prototype stage")
    if "_load_from_state_dict" not in vars(SinusoidalPositionalEmbedding):
        wrap(SinusoidalPositionalEmbedding, "__init__", _without_marker)
        wrap(SinusoidalPositionalEmbedding, "_load_from_state_dict", _load_without_marker)


def merges_embeddings(cfg: Any) -> bool:
    """Whether ``--merge-src-tgt-embed`` is given, a flag that fairseq 0.12.2 does not have."""
    return getattr(cfg, "merge_src_tgt_embed", False)


def _with_copies_apart(init: Callable) -> Callable:
    """Makes the copies of a layer buffers that no checkpoint holds, empty until a checkpoint is loaded.

    In fairseq 0.12.2 they are parameters: the optimizer has them, and each checkpoint has the same matrix twice.
    """

    def build(self, *args, **kwargs):
        init(self, *args, **kwargs)
        for name in _COPIES:
            delattr(self, name)
            self.register_buffer(name, None, persistent=False)
        self.register_load_state_dict_post_hook(_copy_projections)

    return build


def _load_without_copies(load: Callable) -> Callable:
    def load_projections(self, state_dict, prefix, *args):
        for name in _COPIES:
            state_dict.pop(prefix + name, None)
        nn.Module._load_from_state_dict(self, state_dict, prefix, *args)
        self.load_to_BT = True

    return load_projections


def _copy_projections(layer: nn.Module, incompatible_keys: object) -> None:
    if layer.can_use_fastpath:
        attention = layer.self_attn
        for kind in ("weight", "bias"):
            parts = (attention.q_proj, attention.k_proj, attention.v_proj)
            joined = torch.cat([getattr(part, kind).detach() for part in parts])
            setattr(layer, f"in_proj_{kind}", joined)
            for name, part in (("out_proj", attention.out_proj), ("fc1", layer.fc1), ("fc2", layer.fc2)):
                setattr(layer, f"{name}_{kind}", getattr(part, kind).detach())


def _can_use_fast_path(layer: nn.Module) -> bool:
    """Whether torch's fast path computes what the layer computes: not if another attention has taken its place."""
    return bool(layer.__dict__["fast_path_is_allowed"]) and type(layer.self_attn) is MultiheadAttention


def _allow_fast_path(layer: nn.Module, allowed: object) -> None:
    layer.__dict__["fast_path_is_allowed"] = allowed


def _with_mask_type(forward: Callable) -> Callable:
    """Says which kind of mask fairseq passes; torch has refused masks of an unknown kind since 1.13."""

    def forward_with_mask_type(*args):
        if len(args) == 19 and args[18] is not None:
            args = (*args, _PADDING_MASK)
        return forward(*args)

    return forward_with_mask_type


def _without_marker(init: Callable) -> Callable:
    """Keeps ``_float_tensor``, an uninitialised number that knows a type and a device, out of checkpoints."""

    def build(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self._non_persistent_buffers_set.add("_float_tensor")

    return build


def _load_without_marker(load: Callable) -> Callable:
    def load_nothing_old(self, state_dict, prefix, *args):
        for name in ("weights", "_float_tensor"):
            state_dict.pop(prefix + name, None)
        load(self, state_dict, prefix, *args)

    return load_nothing_old
