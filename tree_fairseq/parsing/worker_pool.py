"""Worker processes that fail when one of them is killed, and that end when the process that started them is killed.

``fairseq.binarizer`` and ``fairseq.data.dictionary`` start a ``multiprocessing.Pool`` and wait for all of its results; when
a worker is killed (for lack of memory, as a rule) its result never comes and they wait for ever. :func:`failing_fast` gives
them a pool with the few methods that they call.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Callable, TypeVar

from fairseq import binarizer
from fairseq.data import dictionary

from tree_fairseq.errors import WorkerDiedError

WHEN_KILLED = "Lack of memory is the usual reason: give the same command again, with fewer --workers if need be; what is done is kept"
_POLL_SECONDS = 1.0

Task = TypeVar("Task")
Result = TypeVar("Result")


def worker_processes(processes: int) -> ProcessPoolExecutor:
    """Processes forked from this one.

    Forked, so that no worker spends seconds on importing; they must not touch torch's threads or a GPU.

    Args:
        processes: how many
    """
    context = multiprocessing.get_context("fork")
    return ProcessPoolExecutor(processes, mp_context=context, initializer=_end_with, initargs=(os.getpid(),))


def map_in_processes(
    function: Callable[[Task], Result], tasks: Sequence[Task], workers: int, what: str
) -> Iterator[Result]:
    """Yields what a function makes of each task, in their order.

    Args:
        function: can be pickled
        tasks: as many calls
        workers: processes; with one, or one task, it is called in this one
        what: what a process does, for the message: "encoded train.lf"

    Raises:
        WorkerDiedError: a process was killed
    """
    if min(workers, len(tasks)) <= 1:
        yield from map(function, tasks)
        return
    with worker_processes(min(workers, len(tasks))) as executor:
        try:
            yield from executor.map(function, tasks)
        except BrokenProcessPool:
            raise WorkerDiedError(f"a process that {what} was killed. {WHEN_KILLED}") from None


def _end_with(parent: int) -> None:
    """Ends this process soon after its parent: a worker waits for work on a pipe that its siblings hold open, too."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _Result:
    def __init__(self, future: Future):
        self._future = future

    def get(self) -> Any:
        """The function's value, or its exception."""
        try:
            return self._future.result()
        except BrokenProcessPool:
            raise WorkerDiedError(f"a process that binarized text was killed. {WHEN_KILLED}") from None


class FailFastPool:
    """As much of ``multiprocessing.Pool`` as fairseq uses.

    Args:
        processes: how many
    """

    def __init__(self, processes: int):
        self._executor = worker_processes(processes)

    def apply_async(self, function: Callable, args: tuple = (), kwds: dict | None = None) -> _Result:
        """Calls a function in one of the processes."""
        return _Result(self._executor.submit(function, *args, **(kwds or {})))

    def close(self) -> None:
        """Nothing more will be submitted; :meth:`join` does all there is to do."""

    def join(self) -> None:
        """Waits until all calls are done, or one of the processes has died."""
        self._executor.shutdown(wait=True)


@contextlib.contextmanager
def failing_fast() -> Iterator[None]:
    """Gives fairseq's binarizer and dictionary the pool above while the ``with`` block runs."""
    modules = (binarizer, dictionary)
    stock = [module.Pool for module in modules]
    for module in modules:
        module.Pool = FailFastPool
    try:
        yield
    finally:
        for module, pool in zip(modules, stock):
            module.Pool = pool
