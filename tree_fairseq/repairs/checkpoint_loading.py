"""Loads checkpoints and released models, for fairseq's commands and for this package's.

A checkpoint cannot run code, and takes memory in proportion to its size (:mod:`.untrusted_checkpoints`).
All that is wrong with one is a CheckpointError. Training goes on from the newest whole one if ``checkpoint_last.pt`` is
torn.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import logging
import math
import os
import pickle
import re
import struct
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Callable

import numpy as np
import torch
from fairseq import checkpoint_utils
from omegaconf.errors import OmegaConfBaseException

from tree_fairseq.errors import CheckpointError, TreeFairseqError
from tree_fairseq.repairs.compat import replaced, wrap
from tree_fairseq.repairs.deleted_options import drop_deleted_options
from tree_fairseq.repairs.untrusted_checkpoints import (
    distrust_expressions,
    limited_memory,
    limited_parameters,
    occupied_bytes,
    require_plain_archive,
    require_proportion,
)
from tree_fairseq.support.released_model import SUFFIX, read_released_model

logger = logging.getLogger(__name__)

_UNREADABLE = (Exception,)  # torch raises nearly anything about a damaged file
_OF_DAMAGED_FILES = (
    ArithmeticError, AssertionError, AttributeError, EOFError, ImportError, LookupError, OmegaConfBaseException,
    RuntimeError, TypeError, ValueError, struct.error, zipfile.BadZipFile,
)  # fmt: skip
# What fairseq-train calls its checkpoints; averages and copies have other names.
_TRAINING = re.compile(r"checkpoint(\d+|_\d+_\d+|_best|_last|\.best_.*)\.pt")
_SPARE_PARAMETERS = 1000
_NUMPY_CORES = ("core", "_core")


def install() -> None:
    """Wraps the functions of fairseq that load checkpoints; a second call does nothing."""
    allow_checkpoint_classes()
    wrap(checkpoint_utils, "load_checkpoint_to_cpu", lambda load: _load_with_care(_load_released_models(load)))
    wrap(checkpoint_utils, "load_model_ensemble_and_task", _build_in_proportion)


def allow_checkpoint_classes() -> None:
    """Lets ``torch.load(weights_only=True)`` read what fairseq's trainer writes, and nothing that could run code.

    fairseq 0.12 calls ``torch.load`` without ``weights_only``, whose default is true since torch 2.6. Its checkpoints
    have the command line's namespace, and the numpy numbers of meters such as those of ``--eval-bleu``. A checkpoint
    names numpy's functions by the module that they had when it was saved, before or since numpy 2.
    """
    rebuilding = [value.__reduce__()[0] for value in (np.float64(0), np.zeros(0))]
    torch.serialization.add_safe_globals(
        [
            argparse.Namespace,
            np.ndarray,
            np.dtype,
            *rebuilding,
            *(_of_module(function, f"numpy.{core}.multiarray") for function in rebuilding for core in _NUMPY_CORES),
            *(type(np.dtype(kind)) for kind in (np.float32, np.float64, np.int32, np.int64)),
        ]
    )


@functools.cache
def _of_module(function: Callable, module: str) -> Callable:
    """A function that does the same and says that it is from another module."""
    other = functools.wraps(function)(lambda *arguments: function(*arguments))
    other.__module__ = module
    return other


@contextlib.contextmanager
def _weights_only() -> Iterator[None]:
    """Makes ``torch.load`` of torch 2.4 and 2.5 as careful as that of 2.6 while the ``with`` block runs."""
    name, earlier = "TORCH_FORCE_WEIGHTS_ONLY_LOAD", os.environ.copy()
    if torch.__version__ < (2, 6):
        os.environ[name] = "1"
    try:
        yield
    finally:
        os.environ.pop(name, None)
        if name in earlier:
            os.environ[name] = earlier[name]


@contextlib.contextmanager
def _carefully(path: str | os.PathLike) -> Iterator[None]:
    """Loads what :mod:`.untrusted_checkpoints` lets through; everything else is a CheckpointError."""

    def load_in_proportion(*args, **kwargs):
        state = stock(*args, **kwargs)
        if threading.get_ident() == this:
            require_proportion(state, path)
            distrust_expressions(state, path)
        return state

    stock, this = torch.load, threading.get_ident()
    try:
        if os.path.exists(path):
            with limited_memory(occupied_bytes(path), f"{path} was not loaded: it"):
                if Path(path).suffix != SUFFIX:
                    require_plain_archive(path)
                with _weights_only(), replaced(torch, "load", load_in_proportion):
                    yield
        else:
            yield
    except pickle.UnpicklingError as error:
        if "weights_only" not in str(error):
            raise CheckpointError(f"{path} cannot be read: {_first_line(error)}") from error
        found = re.search(r"GLOBAL (\S+)", str(error))
        what = f"it holds {found[1]}, which" if found else "it holds something that"
        raise CheckpointError(
            f"{path} was not loaded: {what} is neither a tensor nor a plain setting and could run code. "
            "Checkpoints of fairseq hold nothing of the kind; do not use this file unless you know who made it"
        ) from error
    except _OF_DAMAGED_FILES as error:
        if isinstance(error, TreeFairseqError):
            raise
        raise CheckpointError(f"{path} cannot be read: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def load_weights_only(path: Path) -> dict:
    """Loads a checkpoint, or a released model, on the CPU. Raises CheckpointError if it is damaged or has no model."""
    if Path(path).suffix == SUFFIX:
        with _carefully(path):
            state = read_released_model(path)
            require_proportion(state, path)
            return state
    allow_checkpoint_classes()
    try:
        with _carefully(path):
            state = torch.load(path, map_location="cpu", weights_only=True)
    except CheckpointError:
        raise
    except _UNREADABLE as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        raise CheckpointError(f"{path} is not a checkpoint of fairseq: it does not contain a model")
    return state


def newest_readable(path: Path) -> Path | None:
    """The most recent checkpoint of training beside ``path`` that loads, or None."""
    others = (other for other in path.parent.glob("checkpoint*.pt") if other != path)
    training = [other for other in others if _TRAINING.fullmatch(other.name)]
    for other in sorted(training, key=lambda file: file.stat().st_mtime, reverse=True):
        with contextlib.suppress(*_UNREADABLE), _carefully(other):
            torch.load(other, map_location="cpu", weights_only=True)
            return other
    return None


def _load_released_models(load: Callable) -> Callable:
    """Loads ``*.safetensors`` like checkpoints. fairseq's function reads a file, and then upgrades and overrides it."""

    def load_released_model(path, *args, **kwargs):
        if Path(path).suffix != SUFFIX:
            return load(path, *args, **kwargs)
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = os.path.join(folder, "model.pt")
            torch.save(read_released_model(path), checkpoint)
            return load(checkpoint, *args, **kwargs)

    return load_released_model


def _load_with_care(load: Callable) -> Callable:
    """Resumes from the newest readable file if ``checkpoint_last.pt`` is torn, and refuses files that could run code.

    fairseq copies that file from a numbered one. A kill during the copy leaves half of it under its final name. Other
    checkpoints are loaded as before, because a user who names one wants that one. Raises CheckpointError.
    """

    def load_safely(path, *args, **kwargs):
        with _carefully(path):
            state = load(path, *args, **kwargs)
        drop_deleted_options(state, path)
        return state

    def load_or_fall_back(path, *args, **kwargs):
        try:
            return load_safely(path, *args, **kwargs)
        except (*_UNREADABLE, CheckpointError) as error:
            is_last = re.fullmatch(r"checkpoint_last.*\.pt", Path(path).name) and Path(path).exists()
            other = newest_readable(Path(path)) if is_last else None
            if other is None:
                raise
            logger.warning("%s cannot be read (%s); going on from %s", path, error, other)
            return load_safely(str(other), *args, **kwargs)

    return load_or_fall_back


@contextlib.contextmanager
def building_in_proportion(paths: Sequence[str | os.PathLike]) -> Iterator[None]:
    """Models of checkpoints that are loaded and built in the ``with`` block are as large as their weights, not larger.

    Raises:
        CheckpointError: the settings of a checkpoint are not complete, or are those of a larger model
    """

    def load_and_count(*args, **kwargs):
        nonlocal most
        state = stock(*args, **kwargs)
        most += _SPARE_PARAMETERS + 4 * len(state.get("model") or ())
        return state

    most, stock = 0, checkpoint_utils.load_checkpoint_to_cpu
    files = sum(occupied_bytes(path) for path in paths if os.path.exists(path))
    what = f"the model in {', '.join(map(os.fspath, paths))}"
    with limited_memory(files, what), replaced(checkpoint_utils, "load_checkpoint_to_cpu", load_and_count):
        # Without a file, the caller has the state.
        with limited_parameters(lambda: most or math.inf, what):
            try:
                yield
            except OmegaConfBaseException as error:
                raise CheckpointError(f"{what} has no complete settings: {_first_line(error)}") from error


def _build_in_proportion(load: Callable) -> Callable:
    def load_model_ensemble_and_task(filenames, *args, **kwargs):
        with building_in_proportion(filenames):
            return load(filenames, *args, **kwargs)

    return load_model_ensemble_and_task
