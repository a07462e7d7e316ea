"""The worker processes of stock fairseq, made to fail when one of them is killed.

``fairseq.binarizer`` and ``fairseq.data.dictionary`` start a ``multiprocessing.Pool`` and wait for all of its results; when
a worker is killed (for lack of memory, as a rule) its result never comes and they wait for ever. The pool here has the few
methods that they call.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Callable, Iterator

from fairseq import binarizer
from fairseq.data import dictionary

from tree_fairseq.errors import WorkerDiedError


class _Result:
    def __init__(self, future: Future):
        self._future = future

    def get(self) -> Any:
        """The function's value, or its exception."""
        try:
            return self._future.result()
        except BrokenProcessPool:
            raise WorkerDiedError(
                "a process that binarized text was killed, perhaps for lack of memory. "
                "Give the same command again, with fewer --workers if memory is short; what is done is kept"
            ) from None


class FailFastPool:
    """As much of ``multiprocessing.Pool`` as fairseq uses.

    Args:
        processes: how many
    """

    def __init__(self, processes: int):
        self._executor = ProcessPoolExecutor(processes)

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
