"""The pool of processes in which a command parses text and encodes chunks of lines.

It lives as long as the command: its processes start when they are first needed and serve all splits and sides, so that
a parser loads its models once per process. There are two kinds of processes.

* *Forked* processes (:meth:`ProcessPool.map`) cost milliseconds to start and know all that the command has imported.
  They must not use torch's threads or a GPU.
* *Fresh* interpreters (:meth:`ProcessPool.stream`) import only what they need, have one thread and one device each, and
  may use a GPU. Parsers run in them.

When a process is killed, the call raises WorkerDiedError within a second. When the command is killed, even by
``kill -9``, its processes end too: each of them reads from a pipe that ends with the command.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.pool import RemoteTraceback  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any, NoReturn, Optional, TypeVar

from tree_fairseq.errors import TreeFairseqError, WorkerDiedError
from tree_fairseq.support.progress import progress_bar

Task = TypeVar("Task")
Result = TypeVar("Result")
Context = TypeVar("Context")

_ONE_THREAD = dict.fromkeys(
    ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"], "1"
)
# One task is being done while the next one waits, so that no process ever waits for the command. Where results are
# wanted in order, so many tasks per process may be done before the first.
_TASKS_PER_PROCESS = 2
_TASKS_AHEAD = 4
_SECONDS_TO_END = 5
_PROGRAM = "import sys; sys.path[:] = sys.argv[3:]; from tree_fairseq.support import processes; processes.serve_fresh()"
_device = "cpu"


def own_device() -> str:
    """Returns the device that the pool gave to this process: ``cpu``, ``cuda:N``, ..."""
    return _device


class ProcessPool:
    """Processes for all parallel work of one command; its ``with`` block ends them."""

    def __init__(self, workers: int = 1):
        self.workers = workers
        self._forked = _Group(_start_forked, ("cpu",) * workers)
        self._fresh = _Group(_start_fresh, ("cpu",) * workers)

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
        results = map(function, tasks) if is_alone else self._forked.in_order(function, tasks, work)
        with progress_bar(Path(work).name, len(tasks), "parts", progress) as bar:
            for result in results:
                yield result
                bar.update()

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
        if self._fresh.devices != devices:
            self._fresh.end()
            self._fresh.devices = devices
        with contextlib.closing(self._fresh.replies(function, calls, work)) as replies:
            for context, value, error in replies:
                if error is not None:
                    raise error
                yield context, value

    def end_fresh(self) -> None:
        """Ends the fresh interpreters, and so frees the memory of their models; :meth:`stream` starts new ones."""
        self._fresh.end()

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, *exception: object) -> None:
        self._fresh.end()
        self._forked.end()


Reply = tuple[Any, Any, Optional[BaseException]]
"""The context of a call, and its value or its error."""


class _Group:
    """At most one process of a kind for each device. Each starts when all that run are busy."""

    def __init__(self, start: _Start, devices: tuple[str, ...]):
        self.devices = devices
        self._start = start
        self._processes: list[_Process] = []

    def replies(self, function: Callable, calls: Iterable[tuple[Any, Any] | None], work: str) -> Iterator[Reply]:
        """Yields the replies as they come. Where ``calls`` gives None, nothing is sent until the next reply.

        If the caller stops early or an error is raised, the processes are ended.
        """
        source, waiting = iter(calls), 0
        try:
            while True:
                while waiting < _TASKS_PER_PROCESS * len(self.devices) and (call := next(source, None)) is not None:
                    self._send(function, *call, work)
                    waiting += 1
                if not waiting:
                    return
                for reply in self._receive(work):
                    waiting -= 1
                    yield reply
        except BaseException:
            self.end()
            raise

    def in_order(self, function: Callable, tasks: Sequence[Any], work: str) -> Iterator[Any]:
        """Yields the values in the order of the tasks; no task starts after one has failed."""
        done: dict[int, tuple[Any, BaseException | None]] = {}
        wanted, has_failed = 0, False

        def calls() -> Iterator[tuple[Any, int] | None]:
            for number, task in enumerate(tasks):
                while has_failed or number - wanted >= _TASKS_AHEAD * len(self.devices):
                    yield None
                yield task, number

        with contextlib.closing(self.replies(function, calls(), work)) as replies:
            for number, value, error in replies:
                done[number] = value, error
                has_failed = has_failed or error is not None
                while wanted in done:
                    value, error = done.pop(wanted)
                    if error is not None:
                        raise error
                    wanted += 1
                    yield value

    def _send(self, function: Callable, task: Any, context: Any, work: str) -> None:
        process = min(self._processes, key=lambda process: len(process.contexts), default=None)
        if process is None or (process.contexts and len(self._processes) < len(self.devices)):
            process = _Process(self._start, self.devices[len(self._processes)])
            self._processes.append(process)
        try:
            process.connection.send_bytes(pickle.dumps((function, task)))
        except OSError:
            self._report_death(process, work)
        process.contexts.append(context)

    def _receive(self, work: str) -> list[Reply]:
        """Waits for a reply and returns all that are there."""
        replies = []
        ready = wait([process.connection for process in self._processes])
        for process in self._processes:
            if process.connection in ready:
                try:
                    value, error, trace = process.connection.recv()
                except (EOFError, OSError):
                    self._report_death(process, work)
                if error is not None and not isinstance(error, TreeFairseqError):
                    error.__cause__ = RemoteTraceback(trace)
                replies.append((process.contexts.popleft(), value, error))
        return replies

    def _report_death(self, process: _Process, work: str) -> NoReturn:
        """Ends all processes and raises WorkerDiedError."""
        code = process.exit_code(_SECONDS_TO_END)
        self.end()
        end = f"ended with exit status {code}; its last message is above. The same command continues"
        if code is not None and code < 0:
            smaller = "a smaller --tree-batch-size or fewer" if self._start is _start_fresh else "fewer"
            end = (
                f"was killed by {signal.Signals(-code).name}. Lack of memory is the usual reason: give the same "
                f"command again, with {smaller} --workers if need be; what is done is kept"
            )
        raise WorkerDiedError(f"a process that {work} (pid {process.pid}) {end}")

    def end(self) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.exit_code(None)
            process.connection.close()
        self._processes = []


# Starts a process, given its end of a connection, the command's end and a device. Returns its id, a function that kills
# it, and one that waits so many seconds for its end and returns the exit code, or None if it runs longer.
_Start = Callable[[Connection, Connection, str], tuple[int, Callable[[], None], Callable[..., Any]]]


class _Process:
    """One process, the connection to it, and the contexts of the tasks that it has not answered, in order."""

    def __init__(self, start: _Start, device: str):
        self.connection, theirs = multiprocessing.Pipe()
        self.contexts: deque[Any] = deque()
        # Afterwards only the process has its end: reading from the other end stops when the process dies.
        with theirs:
            self.pid, self.kill, self.exit_code = start(theirs, self.connection, device)


def _start_fresh(theirs: Connection, ours: Connection, device: str):
    root = str(Path(__file__).resolve().parents[2])
    path = sys.path if root in sys.path else [*sys.path, root]
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), device, *path],
        pass_fds=[theirs.fileno()],
        env={**os.environ, **_ONE_THREAD},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )

    def exit_code(seconds: float | None) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        return process.returncode

    return process.pid, process.kill, exit_code


def _start_forked(theirs: Connection, ours: Connection, device: str):
    process = multiprocessing.get_context("fork").Process(target=_serve, args=(theirs, ours), daemon=True)
    process.start()

    def exit_code(seconds: float | None) -> int | None:
        process.join(seconds)
        return process.exitcode

    return process.pid, process.kill, exit_code


def serve_fresh() -> None:
    """The main program of a fresh interpreter; its arguments are a file descriptor, a device and ``sys.path``."""
    global _device
    descriptor, _device = sys.argv[1:3]
    sys.argv[1:] = []
    _serve(Connection(int(descriptor)))


def _serve(connection: Connection, other_end: Connection | None = None) -> None:
    """Does tasks until the command's end of the connection is closed; a forked process has a copy of that end."""
    if other_end is not None:
        other_end.close()
    # Ctrl-C ends the command, and so this process: one traceback is enough.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_tasks, args=(connection, tasks), daemon=True).start()
    while True:
        try:
            function, task = pickle.loads(tasks.get())
            reply = pickle.dumps((function(task), None, ""))
        except Exception as error:
            reply = _pickled_error(error, traceback.format_exc())
        with contextlib.suppress(OSError):
            connection.send_bytes(reply)


def _read_tasks(connection: Connection, tasks: queue.SimpleQueue[bytes]) -> None:
    """Keeps the pipe empty, so that the command never waits in sending, and ends the process with the command."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            tasks.put(connection.recv_bytes())
    os._exit(0)


def _pickled_error(error: Exception, trace: str) -> bytes:
    with contextlib.suppress(Exception):
        pickled = pickle.dumps((None, error, trace))
        pickle.loads(pickled)
        return pickled
    return pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}"), trace))
