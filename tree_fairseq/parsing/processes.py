"""Parsing processes, seen from the parent: one thread each, and no longer lived than it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from tree_fairseq.errors import WorkerDiedError
from tree_fairseq.parsing.parsers import ParserOptions, factory_module
from tree_fairseq.parsing.worker import Answerer, WorkerSetup

_PACKAGE_FOLDER = str(Path(__file__).resolve().parent.parent)
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
_QUEUED_PER_PROCESS = 2
"""One request is being answered while the next one waits, so that no process ever waits for its parent."""
_SECONDS_TO_END = 5

# The package is put in place by hand: importing it would load fairseq and all models, which costs each process seconds and does nothing for it.
_PROGRAM = """
import sys, types
package = types.ModuleType("tree_fairseq")
package.__path__ = [sys.argv[1]]
sys.modules["tree_fairseq"] = package
from tree_fairseq.parsing.worker import main
main(int(sys.argv[2]))
"""


@dataclass(frozen=True)
class Request:
    """Work for a parsing process.

    Args:
        kind: see `Answerer.answer`.
        payload: what that takes.
        context: for the caller's use; it stays in this process.
    """

    kind: str
    payload: Any
    context: Any = None


class ParsingProcesses:
    """Processes that answer requests; started with the first one.

    Args:
        options: of the parser.
        devices: one process is started for each: ``cpu`` or ``cuda:N``.
    """

    def __init__(self, options: ParserOptions, devices: Sequence[str]):
        self._options = options
        self._devices = list(devices)
        self._processes: list[_Process] = []

    def answers(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Any]]:
        """The answers, each as soon as it is there.

        Args:
            requests: taken from the iterable only as processes become free.

        Raises:
            WorkerDiedError: a process ended; the others are stopped.
            TreeFairseqError: what a process reports.
        """
        source = iter(requests)
        waiting: dict[int, Request] = {}
        number = 0
        try:
            while True:
                while (
                    len(waiting) < _QUEUED_PER_PROCESS * len(self._devices)
                    and (request := next(source, None)) is not None
                ):
                    if not self._processes:
                        self._start()
                    waiting[number] = request
                    min(self._processes, key=lambda process: process.queued).send(number, request)
                    number += 1
                if not waiting:
                    return
                for process in self._ready():
                    answered, answer = process.receive()
                    yield waiting.pop(answered), answer
        except BaseException:
            self.close(at_once=True)
            raise

    def _start(self) -> None:
        module = factory_module(self._options.name)
        for device in self._devices:
            # Appended one by one: if the second cannot be started, the first is closed with the rest.
            self._processes.append(
                _Process(WorkerSetup(self._options.replace(device=device), module, sys.path, os.getpid()))
            )

    def _ready(self) -> list[_Process]:
        connections = wait([process.connection for process in self._processes])
        return [process for process in self._processes if process.connection in connections]

    def close(self, at_once: bool = False) -> None:
        """End the processes.

        Args:
            at_once: do not wait for what they are doing.
        """
        for process in self._processes:
            process.connection.close()
            if at_once:
                process.popen.kill()
        for process in self._processes:
            process.end()
        self._processes = []

    def __enter__(self) -> ParsingProcesses:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close(at_once=exception[0] is not None)


class _Process:
    """One process and the connection to it."""

    def __init__(self, setup: WorkerSetup):
        self.connection, theirs = multiprocessing.Pipe()
        self.queued = 0
        environment = {**os.environ, **dict.fromkeys(_THREAD_VARIABLES, "1")}
        self.popen = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, _PACKAGE_FOLDER, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        # Now the only other end is the process's: when that dies, reading here ends at once.
        theirs.close()
        self._send(setup)

    def send(self, number: int, request: Request) -> None:
        """Ask something."""
        self.queued += 1
        self._send((number, request.kind, request.payload))

    def _send(self, message: Any) -> None:
        try:
            self.connection.send(message)
        except OSError:
            raise self._death() from None

    def receive(self) -> tuple[int, Any]:
        """Number and content of the next answer.

        Raises:
            WorkerDiedError: the process is no more.
            TreeFairseqError: what it reports.
        """
        try:
            number, answer, error = self.connection.recv()
        except (EOFError, OSError):
            raise self._death() from None
        self.queued -= 1
        if error is not None:
            raise error
        return number, answer

    def _death(self) -> WorkerDiedError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(_SECONDS_TO_END)
        code = self.popen.returncode
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
            hint = (
                "If the system's memory ran out, use a smaller --tree-batch-size or fewer --workers. "
                if -code == signal.SIGKILL
                else ""
            )
        else:
            how, hint = f"ended with exit status {code}", "Its last words are above. "
        return WorkerDiedError(
            f"a parsing process (pid {self.popen.pid}) {how}. {hint}The same command continues where this run stopped"
        )

    def end(self) -> None:
        """Wait until the process has ended; kill it if it does not."""
        try:
            self.popen.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()


class InThisProcess:
    """Answers requests right here, one after the other.

    Args:
        answerer: does the work.
    """

    def __init__(self, answerer: Answerer):
        self._answerer = answerer

    def answers(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Any]]:
        """See `ParsingProcesses.answers`."""
        for request in requests:
            yield request, self._answerer.answer(request.kind, request.payload)

    def close(self, at_once: bool = False) -> None:
        """Nothing is open."""

    def __enter__(self) -> InThisProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
