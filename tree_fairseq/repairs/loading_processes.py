"""The loading processes of a training end in order, and a training whose loading process was killed says so.

Each has a folder ``pymp-…`` with a socket, which it removes when it ends by itself. torch ends it so when the iterator
of its loader is freed; but fairseq keeps iterators to the end of the program, where Python stops them with SIGTERM.

Where one is killed, the training stops with whatever error it meets first, such as a connection that is reset.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import signal
import weakref
from typing import Any, Callable

from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter as LoaderIterator

from tree_fairseq.errors import WorkerDiedError
from tree_fairseq.repairs.compat import wrap


def install() -> None:
    """Wraps two functions of torch: one starts loading processes, one takes their batches; a second call does
    nothing.
    """
    wrap(LoaderIterator, "__init__", _ended_at_exit)
    wrap(LoaderIterator, "_try_get_data", _naming_the_dead)


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


def _naming_the_dead(take: Callable) -> Callable:
    @functools.wraps(take)
    def take_batch(self: LoaderIterator, *args: Any, **kwargs: Any) -> Any:
        try:
            return take(self, *args, **kwargs)
        except (OSError, EOFError, RuntimeError) as error:
            # The error may come before the process can be seen to have ended.
            for worker in self._workers if isinstance(error, (OSError, EOFError)) else ():
                with contextlib.suppress(RuntimeError):  # of torch's handler of signals, which notices the same
                    worker.join(0.2)
            if killed := [worker for worker in self._workers if (worker.exitcode or 0) < 0]:
                worker = killed[0]
                raise WorkerDiedError(
                    f"a process that loaded data (pid {worker.pid}) was killed by "
                    f"{signal.Signals(-worker.exitcode).name}; fairseq-train goes on from its last checkpoint when you "
                    "give the same command again. If memory is short, use fewer processes (--num-workers)"
                ) from error
            raise

    return take_batch
