"""The only file that knows versions of fairseq and torch.

fairseq 0.12 calls ``torch.load`` without ``weights_only``, whose default has been true since
torch 2.6. Its checkpoints hold a few harmless classes beside tensors; they are allow-listed here,
and nothing else is, so that a checkpoint can never run code.
"""

from __future__ import annotations

import argparse
import functools
import logging
import pickle
import re
import zipfile
from pathlib import Path

import numpy as np
import torch
from fairseq import checkpoint_utils

logger = logging.getLogger(__name__)

_UNREADABLE = (EOFError, OSError, RuntimeError, KeyError, zipfile.BadZipFile, pickle.UnpicklingError)


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


def newest_readable(path: Path) -> Path | None:
    """The most recent checkpoint beside ``path`` that loads, or None."""
    others = [other for other in path.parent.glob("checkpoint*.pt") if other != path]
    for other in sorted(others, key=lambda file: file.stat().st_mtime, reverse=True):
        try:
            torch.load(other, map_location="cpu", weights_only=True)
        except _UNREADABLE:
            continue
        return other
    return None


def resume_from_torn_checkpoints() -> None:
    """Makes fairseq fall back to the newest readable file where ``checkpoint_last.pt`` is torn.

    fairseq copies that file from a numbered one, and a kill in the middle of the copy leaves half of
    it under its final name. Other checkpoints are loaded as ever: whoever names one wants that one.
    """
    load = checkpoint_utils.load_checkpoint_to_cpu
    if getattr(load, "falls_back", False):
        return

    @functools.wraps(load)
    def load_or_fall_back(path, *args, **kwargs):
        try:
            return load(path, *args, **kwargs)
        except _UNREADABLE as error:
            if not re.fullmatch(r"checkpoint_last.*\.pt", Path(path).name) or not Path(path).exists():
                raise
            other = newest_readable(Path(path))
            if other is None:
                raise
            logger.warning("%s cannot be read (%s); going on from %s", path, error, other)
            return load(str(other), *args, **kwargs)

    load_or_fall_back.falls_back = True
    checkpoint_utils.load_checkpoint_to_cpu = load_or_fall_back
