"""The loading processes of a training end in order, and leave nothing in the folder of temporary files.

Each has a folder ``pymp-…`` with a socket, which it removes when it ends by itself. torch ends it so when the iterator
of its loader is freed; but fairseq keeps iterators to the end of the program, where Python stops them with SIGTERM.
"""

from __future__ import annotations

import atexit
import functools
import os
import weakref
from typing import Any, Callable

from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter as LoaderIterator

from tree_fairseq.compat import wrap


def install() -> None:
    """Wraps the function of torch that starts loading processes; a second call does nothing."""
    wrap(LoaderIterator, "__init__", _ended_at_exit)


def _ended_at_exit(start: Callable) -> Callable:
    @functools.wraps(start)
    def start_processes(self: LoaderIterator, *args: Any, **kwargs: Any) -> None:
        start(self, *args, **kwargs)
        # Functions for the exit run from the last to the first: Python's own, which sends SIGTERM, is older.
        atexit.register(_end, weakref.ref(self), os.getpid())

    return start_processes


def _end(reference: Callable[[], Any], pid: int) -> None:
    iterator = reference()
    if iterator is not None and os.getpid() == pid:
        iterator._shutdown_workers()
