"""The pool of processes in which a command parses text and encodes chunks of lines.

It lives as long as the command: its processes start when they are first needed and serve all splits and sides, so that
a parser loads its models once per process. They are of two kinds, each an executor of ``concurrent.futures``.

* *Forked* processes (:meth:`ProcessPool.map`) cost milliseconds to start and know all that the command has imported.
  They must not use torch's threads or a GPU.
* *Fresh* interpreters (:meth:`ProcessPool.stream`) import only what they need, have one thread and one device each, and
  may use a GPU. Parsers run in them.

When a process is killed, the call raises WorkerDiedError. When the command is killed, even by ``kill -9``, its
processes end too: each of them watches it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from tree_fairseq.errors import WorkerDiedError
from tree_fairseq.support.progress import progress_bar
from tree_fairseq.support.python_versions import environment

Task = TypeVar("Task")
Result = TypeVar("Result")
Context = TypeVar("Context")

_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
# One task is being done while the next one waits, so that no process ever waits for the command. Where results are
# wanted in order, so many tasks per process may be done before the first.
_TASKS_PER_PROCESS = 2
_TASKS_AHEAD = 4
_SECONDS_BETWEEN_CHECKS = 1
_device = "cpu"


def own_device() -> str:
    """Returns the device that the pool gave to this process: ``cpu``, ``cuda:N``, ..."""
    return _device


def take_device(device: str) -> None:
    """Makes a device that of this process."""
    global _device
    _device = device


class ProcessPool:
    """Processes for all parallel work of one command; its ``with`` block ends them."""

    is_remote = False  # whether :meth:`stream` uses other machines

    def __init__(self, workers: int = 1):
        self.workers = workers
        self._executors: dict[str, _Executor] = {}

    def map(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], work: str, progress: bool = True
    ) -> Iterator[Result]:
        """Yields the results of a function, in the order of the tasks, from forked processes; or, with one worker or
        task, from this process.

        The function, the tasks and the results can be pickled. ``work`` names the work in errors: "encoded train.en".
        Its last part, such as the name of the file, is shown with the progress, unless the caller shows that itself.

        Raises:
            WorkerDiedError: a process was killed.
            Exception: what the function raises; for several tasks that fail, the error of the first one.
        """
        is_alone = min(self.workers, len(tasks)) <= 1
        results = map(function, tasks) if is_alone else self._in_order(function, tasks, work)
        with progress_bar(Path(work).name, len(tasks), "parts", progress) as bar:
            for result in results:
                yield result
                bar.update()

    def _in_order(self, function: Callable, tasks: Sequence[Any], work: str) -> Iterator[Any]:
        source, futures = iter(tasks), deque[Future]()
        with self._executor("fork", ("cpu",) * self.workers, work) as executor:
            while True:
                for task in islice(source, _TASKS_AHEAD * self.workers - len(futures)):
                    futures.append(executor.start(function, task))
                if not futures:
                    return
                executor.await_one([futures[0]])
                yield futures.popleft().result()

    def stream(
        self,
        function: Callable[[Task], Result],
        calls: Iterable[tuple[Task, Context]],
        work: str,
        devices: Sequence[str] | None = None,
    ) -> Iterator[tuple[Context, Result]]:
        """Yields the results of an importable function in the order in which fresh interpreters finish them.

        Args:
            calls: tasks, each with anything that identifies it here; taken only as processes become free.
            devices: one process runs for each; by default all run on the CPU. See :func:`own_device`.

        Raises:
            WorkerDiedError: a process was killed.
            Exception: what the function raises, as soon as one call fails. In either case all processes are ended.
        """
        devices = tuple(devices or ["cpu"] * self.workers)
        source, contexts = iter(calls), dict[Future, Any]()
        with self._executor("spawn", devices, work) as executor:
            while True:
                for task, context in islice(source, _TASKS_PER_PROCESS * len(devices) - len(contexts)):
                    contexts[executor.start(function, task)] = context
                if not contexts:
                    return
                for future in executor.await_one(contexts):
                    yield contexts.pop(future), future.result()

    @contextlib.contextmanager
    def _executor(self, kind: str, devices: tuple[str, ...], work: str) -> Iterator[_Executor]:
        """Gives the executor of a kind. If the ``with`` block does not end well, its processes are ended."""
        if kind in self._executors and self._executors[kind].devices != devices:
            self._end(kind)
        if kind not in self._executors:
            self._executors[kind] = _Executor(kind, devices)
        try:
            yield self._executors[kind]
        except BrokenExecutor:
            raise WorkerDiedError(f"a process that {work} {_death(self._end(kind), kind)}") from None
        except BaseException:
            self._end(kind)
            raise

    def _end(self, kind: str) -> list[BaseProcess]:
        return self._executors.pop(kind).end() if kind in self._executors else []

    def end_fresh(self) -> None:
        """Ends the fresh interpreters, and so frees the memory of their models; :meth:`stream` starts new ones."""
        self._end("spawn")

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, *exception: object) -> None:
        for kind in list(self._executors):
            self._end(kind)


class _Executor(ProcessPoolExecutor):
    """At most one process of a kind for each device."""

    def __init__(self, kind: str, devices: tuple[str, ...]):
        self.kind, self.devices = kind, devices
        context = multiprocessing.get_context(kind)
        free = context.SimpleQueue()
        for device in devices:
            free.put(device)
        super().__init__(len(devices), context, _begin, (free,))

    def start(self, function: Callable, task: Any) -> Future:
        with contextlib.ExitStack() as stack:
            if self.kind == "spawn":
                for name in _ONE_THREAD:
                    stack.enter_context(environment(name, True))
                # The new process would import this one's main module, and with it torch and fairseq.
                stack.callback(sys.modules.__setitem__, "__main__", sys.modules["__main__"])
                sys.modules["__main__"] = ModuleType("__main__")
            return self.submit(_call, function, task)

    def await_one(self, futures: Iterable[Future]) -> set[Future]:
        """Returns those that are done when one is; raises BrokenExecutor if a process has died.

        The executor itself waits for ever for the rest of a result if a process is killed while it sends one.
        """
        while not (done := wait(futures, _SECONDS_BETWEEN_CHECKS, FIRST_COMPLETED).done):
            if any(process.exitcode is not None for process in self._processes.values()):
                raise BrokenExecutor
        return done

    def end(self) -> list[BaseProcess]:
        processes = list(self._processes.values())
        for process in processes:
            process.terminate()
        self._result_queue._writer.close()  # so that nobody waits for the rest of a result
        self.shutdown()
        return processes


def _death(processes: list[BaseProcess], kind: str) -> str:
    """Says how one of the processes died; all others were ended by SIGTERM."""
    dead = [process for process in processes if process.exitcode != -signal.SIGTERM] or processes
    pid, code = dead[0].pid, dead[0].exitcode or 0
    if code >= 0:
        return f"(pid {pid}) ended with exit status {code}; its last message is above. The same command continues"
    smaller = "a smaller --tree-batch-size or fewer" if kind == "spawn" else "fewer"
    return (
        f"(pid {pid}) was killed by {signal.Signals(-code).name}. Lack of memory is the usual reason: give the same "
        f"command again, with {smaller} --workers if need be; what is done is kept"
    )


def _begin(free: SimpleQueue[str]) -> None:
    take_device(free.get())
    # Ctrl-C ends the command, and so this process: one traceback is enough.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_command, daemon=True).start()


def _end_with_command() -> None:
    wait_for([multiprocessing.parent_process().sentinel])  # type: ignore[union-attr]
    os._exit(1)


def _call(function: Callable, task: Any) -> Any:
    try:
        return function(task)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        raise
