"""A trained model in one file of safetensors: weights, and the settings that build the model, as JSON.

Nothing in such a file can run code, and it does not depend on versions of Python, torch or fairseq. fairseq's commands
and :mod:`tree_fairseq.hub` load it like a checkpoint: ``--path model.safetensors``.
"""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tree_fairseq.errors import CheckpointError
from tree_fairseq.support.files import atomic_file

SUFFIX = ".safetensors"
_FORMAT = "tree-fairseq 1"
_NAMESPACE = "<namespace>"  # marks the JSON object of a namespace of options


def write_released_model(state: Mapping[str, Any], path: Path, dtype: torch.dtype | None = None) -> None:
    """Writes the model of a checkpoint without the state of its training.

    Paths of the machine that trained it are left out. Weights that share memory are written once.

    Args:
        state: as :func:`tree_fairseq.repairs.checkpoint_loading.load_weights_only` reads it
        path: of the file, which appears only when complete
        dtype: for example ``torch.float16``, to store floating point numbers in; None keeps theirs
    """
    from safetensors.torch import save

    weights, aliases = without_copies(state["model"], dtype)
    settings = {
        "format": _FORMAT,
        "cfg": json.dumps(_to_json(state["cfg"]), ensure_ascii=False),
        "task_state": json.dumps(_to_json(state.get("task_state") or {}), ensure_ascii=False),
        "aliases": json.dumps(aliases),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path, "wb") as file:
        file.write(save(weights, metadata=settings))


def read_released_model(path: str | os.PathLike) -> dict[str, Any]:
    """The checkpoint, with weights in single precision, that fairseq loads.

    Raises CheckpointError if the file is damaged, or does not contain a model with its settings.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            settings = file.metadata() or {}
            weights = {name: converted(file.get_tensor(name), torch.float32) for name in file.keys()}
        if settings.get("format") != _FORMAT:
            raise CheckpointError(
                f"{path} is not a model that `tree-fairseq release` wrote: its format is {settings.get('format')!r}"
            )
        weights.update({name: weights[first] for name, first in json.loads(settings["aliases"]).items()})
        cfg, task_state = (_from_json(json.loads(settings[name])) for name in ("cfg", "task_state"))
        if not (isinstance(cfg, dict) and {"model", "task"} <= cfg.keys() and isinstance(task_state, dict)):
            raise CheckpointError(f"{path} has no settings of a model")
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    history = {"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {"best": None}, "num_updates": 0}
    return {
        "args": None,
        "cfg": cfg,
        "model": weights,
        "criterion": None,
        "optimizer_history": [history],
        "task_state": task_state,
        "extra_state": {"train_iterator": {"epoch": 1}},
        "last_optimizer_state": None,
    }


def without_copies(model: Mapping[str, Tensor], dtype: torch.dtype | None) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Converts weights, each matrix once.

    Tied matrices are equal, but after averaging they no longer share memory.

    Returns:
        the weights that differ, by name; and for each of the others, the name of the weight that it equals
    """
    weights, aliases, seen = {}, {}, {}
    for name, tensor in model.items():
        first = next((other for other in seen.get(tensor.shape, ()) if torch.equal(model[other], tensor)), None)
        if first is None:
            weights[name] = converted(tensor, dtype)
            seen.setdefault(tensor.shape, []).append(name)
        else:
            aliases[name] = first
    return weights, aliases


def converted(tensor: Tensor, dtype: torch.dtype | None) -> Tensor:
    """A weight in another dtype, if it is a floating point number and ``dtype`` is not None."""
    return (tensor.to(dtype) if dtype is not None and tensor.is_floating_point() else tensor).contiguous()


def _to_json(value: Any) -> Any:
    """A setting as JSON; paths become null."""
    if isinstance(value, Namespace):
        return {_NAMESPACE: _to_json(vars(value))}
    if isinstance(value, Mapping):
        return {str(name): _to_json(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json(part) for part in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (str, os.PathLike)):
        return None if os.path.isabs(value) else str(value)
    return value if isinstance(value, (bool, int, float, type(None))) else str(value)


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {_NAMESPACE}:
            return Namespace(**_from_json(value[_NAMESPACE]))
        return {name: _from_json(part) for name, part in value.items()}
    return [_from_json(part) for part in value] if isinstance(value, list) else value
