"""Loads checkpoints and released models, for fairseq's commands and for this package's.

Checkpoints may come from strangers: they are loaded with ``weights_only=True``, and settings that are code are refused.
All that is wrong with a file is a CheckpointError. Training goes on from the newest whole checkpoint if
``checkpoint_last.pt`` is torn.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import json
import logging
import os
import pickle
import re
import struct
import tarfile
import tempfile
import warnings
import zipfile
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Callable

import numpy as np
import torch
from fairseq.data.encoders.gpt2_bpe import DEFAULT_ENCODER_JSON, DEFAULT_VOCAB_BPE
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from tree_fairseq.errors import CheckpointError, DataFolderError, TreeFairseqError
from tree_fairseq.repairs.writing import hold_folder
from tree_fairseq.support.files import require_plain_file
from tree_fairseq.support.python_versions import ONLY_WEIGHTS, environment

logger = logging.getLogger(__name__)

RELEASED = ".safetensors"  # the suffix of released models
RELEASE_FORMAT = "tree-fairseq 1"
NAMESPACE = "<namespace>"  # marks the JSON object of a namespace of options, in a released model

_OF_DAMAGED_FILES = (
    ArithmeticError, AssertionError, AttributeError, EOFError, ImportError, LookupError, MemoryError,
    OmegaConfBaseException, OSError, RuntimeError, TypeError, ValueError, struct.error, zipfile.BadZipFile,
)  # fmt: skip
# The names that fairseq-train gives to its checkpoints; averages and copies have other names.
_TRAINING = re.compile(r"checkpoint(\d+|_\d+_\d+|_best|_last|\.best_.*)\.pt")
_NUMPY_CORES = ("core", "_core")
# Settings that are never evaluated; a folder may be called "runs(1)".
_FOLDERS = ("data", "save_dir")
# Settings that name files, modules or servers: those of a checkpoint are not followed. GPT-2's files are fairseq's.
_PLACES = {
    **dict.fromkeys(
        "user_dir tree_parser parser_dir corenlp_url replace_unk bpe_codes sentencepiece_model "
        "sentencepiece_model_path bpe_merges bpe_vocab bpe_vocab_file pieces_of lm_path schema "
        "encoder_embed_path decoder_embed_path".split()
    ),
    "gpt2_encoder_json": DEFAULT_ENCODER_JSON,
    "gpt2_vocab_bpe": DEFAULT_VOCAB_BPE,
}
_ADVICE = "do not use this file unless you know who made it"
_ANY_OBJECT = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"


def load_with_care(load: Callable) -> Callable:
    """Also loads released models, refuses files that could run code, and replaces a torn ``checkpoint_last.pt``.

    fairseq copies that file from a numbered one, and a kill during the copy leaves half of it. Another checkpoint that
    a user names is never replaced.
    """
    allow_checkpoint_classes()

    def load_file(path: str, arg_overrides: dict[str, Any] | None = None, *args: Any, **kwargs: Any) -> dict:
        given = {**_PLACES, **(arg_overrides or {})}
        with _reading(path), environment(ONLY_WEIGHTS, torch.__version__ < (2, 6)):
            if Path(path).suffix == RELEASED:
                with tempfile.TemporaryDirectory() as folder:
                    checkpoint = os.path.join(folder, "model.pt")
                    torch.save(read_released_model(path), checkpoint)
                    state = load(checkpoint, given, *args, **kwargs)
            else:
                state = load(path, given, *args, **kwargs)
            _refuse_code(state, path)
            _refuse_encoders(state, path, given)
        return state

    def load_checkpoint_to_cpu(path: str, *args: Any, **kwargs: Any) -> dict:
        try:
            return load_file(path, *args, **kwargs)
        except CheckpointError as error:
            is_last = re.fullmatch(r"checkpoint_last.*\.pt", Path(path).name) and Path(path).exists()
            other = newest_readable(Path(path)) if is_last else None
            if other is None:
                raise
            logger.warning("%s; going on from %s", error, other)
            return load_file(str(other), *args, **kwargs)

    return load_checkpoint_to_cpu


def load_weights_only(path: str | os.PathLike) -> dict:
    """Loads a checkpoint, or a released model, on the CPU. Raises CheckpointError if it is damaged or has no model."""
    allow_checkpoint_classes()
    with _reading(path):
        if Path(path).suffix == RELEASED:
            return read_released_model(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        raise CheckpointError(f"{path} is not a checkpoint of fairseq: it does not contain a model")
    return state


def newest_readable(path: Path) -> Path | None:
    """The most recent checkpoint of training beside ``path`` that loads, or None."""
    others = (other for other in path.parent.glob("checkpoint*.pt") if other != path)
    training = [other for other in others if _TRAINING.fullmatch(other.name)]
    for other in sorted(training, key=lambda file: file.stat().st_mtime, reverse=True):
        with contextlib.suppress(CheckpointError):
            load_weights_only(other)
            return other
    return None


def read_released_model(path: str | os.PathLike) -> dict[str, Any]:
    """The checkpoint, with weights in single precision, that a file of ``tree-fairseq release`` describes.

    Raises CheckpointError if the file is damaged, or does not contain a model with its settings.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            settings = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}
        for name, stored in weights.items():
            weights[name] = stored.float().contiguous() if stored.is_floating_point() else stored
        if settings.get("format") != RELEASE_FORMAT:
            raise CheckpointError(
                f"{path} is not a model that `tree-fairseq release` wrote: its format is {settings.get('format')!r}"
            )
        weights.update({name: weights[first] for name, first in json.loads(settings["aliases"]).items()})
        cfg, task_state = (json.loads(settings[name], object_hook=_namespace_of) for name in ("cfg", "task_state"))
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


def _namespace_of(value: dict) -> Any:
    return Namespace(**value[NAMESPACE]) if set(value) == {NAMESPACE} else value


def compare_data(load: Callable) -> Callable:
    """Lets the task compare its data with those of the checkpoint that training starts from or goes on from.

    Training begins with this function; no other process may write checkpoints to its folder from then on.
    """

    def load_checkpoint(self, filename, reset_optimizer=False, *args, **kwargs):
        if getattr(self, "is_data_parallel_master", False) and not self.cfg.checkpoint.no_save:
            hold_folder(self.cfg.checkpoint.save_dir)
        require = getattr(self.task, "require_same_data", None)
        if require is not None and os.path.isfile(filename):
            # A file that cannot be read is the business of the function that loads it.
            with contextlib.suppress(CheckpointError):
                task_state = load_weights_only(filename).get("task_state") or {}
                try:
                    require(task_state, fine_tuning=reset_optimizer)
                except DataFolderError as error:
                    is_own = os.path.dirname(filename) == os.path.normpath(self.cfg.checkpoint.save_dir)
                    way_out = "; a new training needs another --save-dir" if is_own else ""
                    raise type(error)(f"{filename}: {error}{way_out}") from None
        return load(self, filename, reset_optimizer, *args, **kwargs)

    return load_checkpoint


def receive_any_object(broadcast: Callable) -> Callable:
    """Receives any object from the first process of a training, such as a checkpoint with its options.

    This is safe, because the first process has read the checkpoint with ``weights_only=True``, and processes of one
    training trust each other: ``all_gather_list`` unpickles, too.
    """

    def broadcast_object(*args: Any) -> Any:
        with environment(_ANY_OBJECT, torch.__version__ >= (2, 6)), warnings.catch_warnings():
            warnings.filterwarnings("ignore", f"Environment variable {_ANY_OBJECT} detected")
            return broadcast(*args)

    return broadcast_object


@functools.cache
def allow_checkpoint_classes() -> None:
    """Lets ``torch.load(weights_only=True)`` read what fairseq's trainer writes, and nothing that could run code.

    fairseq's checkpoints have the command line's namespace, and the numpy numbers of meters such as those of
    ``--eval-bleu``. A checkpoint names numpy's functions by the module that they had when it was saved, before or since
    numpy 2.
    """
    rebuilding = [value.__reduce__()[0] for value in (np.float64(0), np.zeros(0))]
    torch.serialization.add_safe_globals(
        [
            Namespace,
            np.ndarray,
            np.dtype,
            *rebuilding,
            *(_of_module(function, f"numpy.{core}.multiarray") for function in rebuilding for core in _NUMPY_CORES),
            *(type(np.dtype(kind)) for kind in (np.float32, np.float64, np.int32, np.int64)),
        ]
    )


def _of_module(function: Callable, module: str) -> Callable:
    """A function that does the same and says that it is from another module."""
    other = functools.wraps(function)(lambda *arguments: function(*arguments))
    other.__module__ = module
    return other


@contextlib.contextmanager
def _reading(path: str | os.PathLike) -> Iterator[None]:
    """Makes every error about a file, and the refusal of code in it, a CheckpointError."""
    try:
        require_plain_file(path)
        if torch.__version__ < (2, 6) and os.path.exists(path) and tarfile.is_tarfile(path):
            # torch 2.5 and earlier run code in the oldest format, also with weights_only=True.
            raise CheckpointError(f"{path} was not loaded: it is a tar archive, which could run code; {_ADVICE}")
        yield
    except pickle.UnpicklingError as error:
        if "weights_only" not in str(error):
            raise CheckpointError(f"{path} cannot be read: {_first_line(error)}") from error
        found = re.search(r"GLOBAL (\S+)", str(error))
        what = f"it holds {found[1]}, which" if found else "it holds something that"
        raise CheckpointError(
            f"{path} was not loaded: {what} is neither a tensor nor a plain setting and could run code. "
            f"Checkpoints of fairseq hold nothing of the kind; {_ADVICE}"
        ) from error
    except FileNotFoundError:
        raise
    except _OF_DAMAGED_FILES as error:
        if isinstance(error, TreeFairseqError):
            raise
        raise CheckpointError(f"{path} cannot be read: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _refuse_code(state: dict, path: str) -> None:
    """Raises CheckpointError if a setting calls a function; fairseq evaluates some, such as the layers of ``fconv``."""
    waiting = [state.get("cfg"), state.get("args")]
    while waiting:
        value = waiting.pop()
        if isinstance(value, DictConfig):
            value = OmegaConf.to_container(value, resolve=True)
        if isinstance(value, Namespace):
            value = vars(value)
        if isinstance(value, Mapping):
            waiting.extend(part for name, part in value.items() if name not in _FOLDERS)
        elif isinstance(value, bytes) or (isinstance(value, str) and _calls(value)):
            raise CheckpointError(
                f"{path} was not loaded: a setting is {value[:80]!r}, which could run code; {_ADVICE}"
            )
        elif isinstance(value, Sequence) and not isinstance(value, str):
            waiting.extend(value)


def _calls(text: str) -> bool:
    """Whether a text is a Python expression that calls something, unlike ``[(512, 3)] * 20``."""
    if "(" not in text:
        return False
    try:
        return any(isinstance(node, ast.Call) for node in ast.walk(ast.parse(text.strip(), mode="eval")))
    except (SyntaxError, ValueError):
        return False
    except (MemoryError, RecursionError):
        return True


def _refuse_encoders(state: dict, path: str, given: Mapping[str, Any]) -> None:
    """Raises CheckpointError if the model would read a pretrained encoder from a place that the checkpoint names."""
    model = (state.get("cfg") or {}).get("model")
    values = vars(model) if isinstance(model, Namespace) else model or {}
    for name in ("encoder_path", "encoder_name"):
        if values.get(name) and not values.get("pretrained_description") and name not in given:
            raise CheckpointError(
                f"{path} names the pretrained encoder {values[name]} and does not describe it. If you trust it, give "
                f"--model-overrides \"{{'{name}': '{values[name]}'}}\""
            )
