"""A function of Python 3.10 that Python 3.9 lacks, for the whole package."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator
from typing import Any

_NOTHING = object()


def _zip_equal(*iterables: Iterable) -> Iterator[tuple]:
    """Like ``zip``, but raises ValueError where one of the iterables ends before another one."""
    iterators = [iter(values) for values in iterables]
    while iterators:
        values = tuple(next(iterator, _NOTHING) for iterator in iterators)
        present = [value is not _NOTHING for value in values]
        if not any(present):
            return
        if not all(present):
            raise ValueError(f"zip_equal() argument {present.index(False) + 1} is shorter than another argument")
        yield values


# Pairs are never lost in silence: this is `zip` wherever the lengths have to agree.
zip_equal: Any = functools.partial(zip, strict=True) if sys.version_info >= (3, 10) else _zip_equal
