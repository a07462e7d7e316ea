"""What differs between installations: a function of Python 3.10, optional libraries, how torch loads files.

A module imports an optional library where it uses it, so that everything else in the module works without. The extras
of ``pip install tree-fairseq[EXTRA]`` are in setup.py.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import os
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from tree_fairseq.errors import MissingLibraryError

ONLY_WEIGHTS = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"  # the variable with which torch runs no code of a file, whoever loads it

_NOTHING = object()


def _zip_equal(*iterables: Iterable) -> Iterator[tuple]:
    """Like ``zip``, but raises ValueError where one of the iterables ends before another one."""
    for values in itertools.zip_longest(*iterables, fillvalue=_NOTHING):
        present = [value is not _NOTHING for value in values]
        if not all(present):
            raise ValueError(f"zip_equal() argument {present.index(False) + 1} is shorter than another argument")
        yield values


# Pairs are never lost in silence: this is `zip` wherever the lengths have to agree.
zip_equal: Any = functools.partial(zip, strict=True) if sys.version_info >= (3, 10) else _zip_equal


@contextlib.contextmanager
def environment(name: str, is_needed: bool) -> Iterator[None]:
    """Sets an environment variable, if it is needed, while the ``with`` block runs."""
    earlier = os.environ.get(name)
    if is_needed:
        os.environ[name] = "1"
    try:
        yield
    finally:
        os.environ.pop(name, None)
        if earlier is not None:
            os.environ[name] = earlier


# Distributions whose name is not that of the module.
_DISTRIBUTIONS = {"rouge_score": "rouge-score", "sklearn": "scikit-learn", "subword_nmt": "subword-nmt"}


def import_library(module: str, extra: str, purpose: str) -> ModuleType:
    """Imports a module of an optional library and returns it: the submodule for a dotted name.

    >>> figure = import_library("matplotlib.figure", "figures", "a picture of curves").Figure()

    Args:
        module: such as ``matplotlib.figure``
        extra: the extra of this package that installs the library
        purpose: begins the message, such as ``--format svg``

    Raises:
        MissingLibraryError: the library is not installed, or one of its own requirements is not
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.split(".")[0]
        name = _DISTRIBUTIONS.get(library, library)
        missing = (getattr(error, "name", None) or "").split(".")[0]
        # A library that is there but cannot be imported lacks something itself, and its own words say what.
        cause = "" if missing == library else f" ({error})"
        message = f"{purpose} needs {name}, which cannot be imported{cause}: pip install 'tree-fairseq[{extra}]'"
        raise MissingLibraryError(message) from error
