"""The only file that knows versions of fairseq and torch.

fairseq 0.12 calls ``torch.load`` without ``weights_only``, whose default has been true since
torch 2.6. Its checkpoints hold a few harmless classes beside tensors; they are allow-listed here,
and nothing else is, so that a checkpoint can never run code.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import logging
import os
import pickle
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import numpy as np
import torch
from fairseq import binarizer, checkpoint_utils
from fairseq.data import dictionary, iterators
from fairseq.logging import progress_bar

from tree_fairseq.errors import CheckpointError
from tree_fairseq.parsing.processes import ProcessPool

logger = logging.getLogger(__name__)

_UNREADABLE = (EOFError, OSError, RuntimeError, KeyError, zipfile.BadZipFile, pickle.UnpicklingError)
# What fairseq-train calls its checkpoints; averages and copies have other names.
_TRAINING = re.compile(r"checkpoint(\d+|_\d+_\d+|_best|_last|\.best_.*)\.pt")
# Set on what is wrapped, so that nothing is wrapped twice, also when this package is imported under two names.
_MARK = "wrapped_by_tree_fairseq"


def be_one_package(name: str, path: str) -> None:
    """Makes another name of this package mean this package, so that nothing is registered twice.

    fairseq calls a plugin by the name of its folder, which may be a link, and imports its tasks and
    models under that name.

    Args:
        name: under which the package is being imported
        path: of its ``__init__.py``

    Raises:
        ImportError: ``tree_fairseq`` is another copy than the one that is being imported
    """
    package = __name__.partition(".")[0]
    if name == package:
        return
    own = sys.modules[package].__file__
    if not Path(own).samefile(path):
        raise ImportError(
            f"--user-dir is {Path(path).parent}, but tree_fairseq was imported from {Path(own).parent}; give that "
            "folder"
        )
    for module in [*sys.modules]:
        if module == package or module.startswith(f"{package}."):
            sys.modules[name + module.removeprefix(package)] = sys.modules[module]


def allow_checkpoint_classes() -> None:
    """Lets ``torch.load(weights_only=True)`` read what fairseq's trainer writes: the command line's
    namespace, and the numpy numbers of meters such as those of ``--eval-bleu``."""
    number, array = np.float64(0), np.zeros(0)
    torch.serialization.add_safe_globals(
        [
            argparse.Namespace,
            np.ndarray,
            np.dtype,
            number.__reduce__()[0],  # numpy's rebuilding functions have moved between its versions
            array.__reduce__()[0],
            *(type(np.dtype(kind)) for kind in (np.float32, np.float64, np.int32, np.int64)),
        ]
    )


def load_weights_only(path: Path) -> dict:
    """Loads a checkpoint on the CPU. Raises CheckpointError if it cannot be read or does not contain a model."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except _UNREADABLE as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        raise CheckpointError(f"{path} is not a checkpoint of fairseq: it does not contain a model")
    return state


def newest_readable(path: Path) -> Path | None:
    """The most recent checkpoint that training left beside ``path`` and that loads, or None."""
    others = [
        other for other in path.parent.glob("checkpoint*.pt") if other != path and _TRAINING.fullmatch(other.name)
    ]
    for other in sorted(others, key=lambda file: file.stat().st_mtime, reverse=True):
        try:
            torch.load(other, map_location="cpu", weights_only=True)
        except _UNREADABLE:
            continue
        return other
    return None


def load_checkpoints_with_care() -> None:
    """Makes fairseq fall back to the newest readable file where ``checkpoint_last.pt`` is torn, and say
    plainly that it does not load what could run code.

    fairseq copies that file from a numbered one, and a kill in the middle of the copy leaves half of
    it under its final name. Other checkpoints are loaded as ever: whoever names one wants that one.
    """
    load = checkpoint_utils.load_checkpoint_to_cpu
    if hasattr(load, _MARK):
        return

    def load_safely(path, *args, **kwargs):
        try:
            return load(path, *args, **kwargs)
        except pickle.UnpicklingError as error:
            if "weights_only" not in str(error):
                raise
            found = re.search(r"GLOBAL (\S+)", str(error))
            what = f"it holds {found[1]}, which" if found else "it holds something that"
            raise CheckpointError(
                f"{path} was not loaded: {what} is neither a tensor nor a plain setting and could run code. "
                "Checkpoints of fairseq hold nothing of the kind; do not use this file unless you know who made it"
            ) from error

    @functools.wraps(load)
    def load_or_fall_back(path, *args, **kwargs):
        try:
            return load_safely(path, *args, **kwargs)
        except (*_UNREADABLE, CheckpointError) as error:
            if not re.fullmatch(r"checkpoint_last.*\.pt", Path(path).name) or not Path(path).exists():
                raise
            other = newest_readable(Path(path))
            if other is None:
                raise
            logger.warning("%s cannot be read (%s); going on from %s", path, error, other)
            return load_safely(str(other), *args, **kwargs)

    setattr(load_or_fall_back, _MARK, True)
    checkpoint_utils.load_checkpoint_to_cpu = load_or_fall_back


def resume_with_other_batches() -> None:
    """Makes fairseq notice that an epoch has another number of batches than when a checkpoint was saved.

    It skips as many batches as were done, whatever is in them now. Another ``--max-tokens`` or number
    of processes makes other batches: training goes on after the same share of the epoch, with a warning.
    """
    iterator = iterators.EpochBatchIterator
    save, load = iterator.state_dict, iterator.load_state_dict
    if hasattr(save, _MARK):
        return

    @functools.wraps(save)
    def state_dict(self):
        return {**save(self), "batches": len(self)}

    @functools.wraps(load)
    def load_state_dict(self, state):
        done, before, now = state.get("iterations_in_epoch", 0), state.get("batches"), len(self)
        if done and before and before != now:
            start = min(done * now // before, now - 1)
            logger.warning(
                "the checkpoint was saved after %d of %d batches of epoch %d, which has %d batches now (another "
                "--max-tokens, "
                "batch size, number of processes or data set): going on after %d of them; some sentences will be seen "
                "twice "
                "in this epoch and others not at all",
                *(done, before, state["epoch"], now, start),
            )
            state = {**state, "iterations_in_epoch": start}
        load(self, state)

    setattr(state_dict, _MARK, True)
    iterator.state_dict, iterator.load_state_dict = state_dict, load_state_dict


def open_log_files_once() -> None:
    """Makes fairseq open a ``--log-file`` once.

    It opens the file anew for every epoch and every validation. Each line is then in it as often as it was
    opened, and a long training ends when the process may open no more files.
    """
    build = progress_bar.progress_bar
    if hasattr(build, _MARK):
        return

    @functools.wraps(build)
    def build_with_one_log(iterator, log_format=None, log_interval=100, log_file=None, *args, **kwargs):
        if log_file is not None and is_open(log_file):
            log_file = None
        return build(iterator, log_format, log_interval, log_file, *args, **kwargs)

    def is_open(path: str) -> bool:
        files = [handler for handler in progress_bar.logger.handlers if isinstance(handler, logging.FileHandler)]
        return any(handler.baseFilename == os.path.abspath(path) for handler in files)

    setattr(build_with_one_log, _MARK, True)
    progress_bar.progress_bar = build_with_one_log


@contextlib.contextmanager
def binarizing_in(pool: ProcessPool) -> Iterator[None]:
    """Makes fairseq count words and binarize text in our pool while the ``with`` block runs.

    fairseq 0.12.2 starts a ``multiprocessing.Pool`` and waits for all of its results. When a worker is killed, for lack of
    memory as a rule, its result never comes and fairseq waits for ever.
    """
    modules = (binarizer, dictionary)
    stock = [module.Pool for module in modules]
    for module in modules:
        module.Pool = functools.partial(_PoolOfFairseq, pool)
    try:
        yield
    finally:
        for module, own in zip(modules, stock):
            module.Pool = own


class _PoolOfFairseq:
    """The methods of ``multiprocessing.Pool`` that fairseq uses, on a pool of ours, which keeps its number of processes."""

    def __init__(self, pool: ProcessPool, processes: int):
        self._pool = pool

    def apply_async(
        self, function: Callable, args: tuple = (), kwds: dict[str, Any] | None = None
    ) -> argparse.Namespace:
        call = functools.partial(function, *args, **(kwds or {}))
        return argparse.Namespace(get=self._pool.submit(call, "binarized text"))

    def close(self) -> None:
        """Does nothing: the pool is kept."""

    def join(self) -> None:
        """Does nothing: fairseq asks for every result after it."""
