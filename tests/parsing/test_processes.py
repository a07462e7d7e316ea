"""Parsing processes: one thread each, and errors that arrive."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time

import pytest

from tests.parsing import fake_parsers  # noqa: F401 (registers)
from tests.parsing.children import await_end, children
from tree_fairseq.errors import ParserError, ParserUnavailableError, TreeFormatError, WorkerDiedError
from tree_fairseq.parsing.parsers import ParserOptions, register_parser
from tree_fairseq.parsing.processes import ParsingProcesses, Request


@register_parser("environment")
class EnvironmentParser:
    """Tells about its process in place of a tree."""

    def __init__(self, options):
        self._device = options.device

    def parse(self, sentences):
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        loaded = [name for name in ("torch", "fairseq", "stanza") if name in sys.modules]
        raise ParserUnavailableError(
            f"{[os.environ.get(name) for name in names]} {loaded} {self._device} {os.getpid()}"
        )


def ask(processes, *texts):
    return sorted(
        (request.payload, answer) for request, answer in processes.answers(Request("words", [text]) for text in texts)
    )


def test_answers_come_back_with_their_requests():
    with ParsingProcesses(ParserOptions(name="toy"), ["cpu", "cpu"]) as processes:
        answers = ask(processes, *"abcdefghij")
        assert answers == [([letter], ([f"(S (NP (T1 {letter})))"], {})) for letter in "abcdefghij"]
        # The same processes go on.
        started = processes._processes
        assert ask(processes, "x") and processes._processes is started and len(started) == 2


def test_without_a_request_nothing_is_started():
    with ParsingProcesses(ParserOptions(name="toy"), ["cpu"]) as processes:
        assert ask(processes) == [] and processes._processes == []


def test_a_process_has_one_thread_and_loads_little():
    with ParsingProcesses(ParserOptions(name="environment"), ["cpu"]) as processes:
        with pytest.raises(ParserUnavailableError, match=r"^\['1', '1', '1'\] \[\] cpu (\d+)$") as raised:
            ask(processes, "a")
    assert int(str(raised.value).split()[-1]) != os.getpid()


def test_errors_keep_their_kind_and_place():
    with ParsingProcesses(ParserOptions(name="brackets"), ["cpu"]) as processes:
        with pytest.raises(TreeFormatError) as raised:
            list(processes.answers([Request("lines", (["(S (NN a)"], 12, "x.txt"))]))
    assert raised.value.line == 12 and raised.value.path == "x.txt"


def test_faults_of_the_program_come_with_their_traceback():
    with ParsingProcesses(ParserOptions(name="toy"), ["cpu"]) as processes:
        with pytest.raises(ParserError, match="KeyError.*nonsense|Traceback"):
            list(processes.answers([Request("nonsense", ["a"])]))


def test_a_process_that_dies_is_reported_and_the_others_end():
    with ParsingProcesses(ParserOptions(name="faulty"), ["cpu", "cpu"]) as processes:
        started = time.monotonic()
        with pytest.raises(WorkerDiedError, match="SIGKILL"):
            ask(processes, "HANG a", "b", "c", "DIE")
        assert time.monotonic() - started < 10
        assert processes._processes == []


def _ask_and_wait(asked):
    processes = ParsingProcesses(ParserOptions(name="toy"), ["cpu", "cpu"])
    ask(processes, "a", "b")
    asked.set()
    time.sleep(600)


def test_processes_end_with_their_parent():
    context = multiprocessing.get_context("fork")
    asked = context.Event()
    parent = context.Process(target=_ask_and_wait, args=(asked,))
    parent.start()
    asked.wait()
    orphans = children(parent.pid)
    assert len(orphans) == 2
    os.kill(parent.pid, signal.SIGKILL)
    parent.join()
    await_end(orphans)
