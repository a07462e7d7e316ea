"""Options of earlier versions of this package, in the settings that a checkpoint keeps.

fairseq refuses a setting that it does not know. An option that was for training alone is dropped. An option that
changes what a model computes is dropped where it was off.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
from fairseq.models import MODEL_DATACLASS_REGISTRY
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from omegaconf import DictConfig, open_dict

from tree_fairseq.errors import CheckpointError
from tree_fairseq.support.options import flag_of

_LAST_COMMIT = "98237f9"
# Options that changed what a model computes, and the values that are those of this version.
_SWITCHED_OFF = {
    "deletion": False,
    "max_horizontal_positions": 100,
    "max_vertical_positions": 50,
    "signed_distance": False,
    "treeformer_heads": 1,
    "treeformer_layer_norm": False,
    "treeformer_level_weights": False,
    "treeformer_without_eos": False,
}
_RENAMED_CRITERIA = {"rdrop_cross_entropy": "label_smoothed_cross_entropy"}  # the same loss in validation
_REGISTRIES = {
    "model": MODEL_DATACLASS_REGISTRY,
    "task": TASK_DATACLASS_REGISTRY,
    "criterion": CRITERION_DATACLASS_REGISTRY,
}


def drop_deleted_options(state: dict[str, Any], path: object) -> None:
    """Drops from a checkpoint the settings that this version does not know.

    Args:
        state: what fairseq loads from a checkpoint
        path: of the checkpoint, for messages

    Raises:
        CheckpointError: the model computes something that this version cannot compute
    """
    cfg = state.get("cfg")
    if cfg is None:
        return
    for name, registry in _REGISTRIES.items():
        part = cfg.get(name)
        _require_switched_off(vars(part) if isinstance(part, Namespace) else part or {}, path)
        if isinstance(part, DictConfig):
            with open_dict(part):
                part._name = _RENAMED_CRITERIA.get(part.get("_name"), part.get("_name"))
                config = registry.get(part._name)
                for option in [] if config is None else set(part) - set(config.__dataclass_fields__):
                    del part[option]


def _require_switched_off(options: Mapping[str, Any], path: object) -> None:
    for name, off in _SWITCHED_OFF.items():
        if options.get(name, off) != off:
            raise CheckpointError(
                f"{path} was trained with {flag_of(name)}, which this version does not have; "
                f"use the version of commit {_LAST_COMMIT}"
            )
