"""The pool of processes: ordered results, errors that reach the caller, and processes that end with their command."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from tests.data_bin.corpora import in_child
from tests.parsing import fake_parsers  # noqa: F401 (registers)
from tests.parsing.children import await_end, children, is_running
from tree_fairseq.errors import ParserError, ParserUnavailableError, TreeFormatError, WorkerDiedError
from tree_fairseq.parsing.corpus import work_in_process
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions, registered_parser
from tree_fairseq.support.processes import ProcessPool


def parse(*lines: str, first_line: int = 1):
    return partial(LineParser.parse_lines, lines=lines, first_line=first_line, path="x.txt")


def request(parser, work, **options):
    return (ParserOptions(name=parser, **options), registered_parser(parser).factory.__module__, None, work)


def ask(pool, parser, *texts, devices=None):
    calls = ((request(parser, parse(text)), text) for text in texts)
    return sorted((text, line.written) for text, [line] in pool.stream(work_in_process, calls, "parsed x", devices))


def fail(parser):
    raise KeyError("nonsense")


def double(number: int) -> int:
    """Doubles a number; later tasks finish sooner."""
    time.sleep(0.05 if number % 4 == 0 else 0)
    return 2 * number


def process_of(number: int) -> int:
    time.sleep(0.02)
    return os.getpid()


def fail_at(failing: set[int], log: str, number: int) -> int:
    with open(log, "a") as file:
        file.write(f"{number}\n")
    # The first task that fails takes longest.
    time.sleep(0.1 if number == min(failing) else 0.01)
    if number in failing:
        raise KeyError(number)
    return number


def die_at(number: int, other: int) -> int:
    if number == other:
        os.kill(os.getpid(), signal.SIGKILL)
    return other


def leave(number: int) -> None:
    os._exit(number)


def kill_command(task: tuple[Path, int]) -> None:
    """Kills the command when both of its processes are at work, and goes on."""
    folder, number = task
    (folder / f"{number}").write_text(str(os.getpid()))
    while len(list(folder.iterdir())) < 2:
        time.sleep(0.02)
    if number == 0:
        os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)


class Stubborn(Exception):
    """An error that cannot be pickled."""

    def __reduce__(self):
        raise TypeError("not me")


def raise_stubborn(number: int) -> None:
    raise Stubborn(f"number {number}")


class TestForked:
    @pytest.mark.parametrize("workers", [1, 3])
    def test_results_have_the_order_of_the_tasks(self, workers):
        with ProcessPool(workers) as pool:
            assert list(pool.map(double, range(40), "doubled")) == [2 * number for number in range(40)]
            assert list(pool.map(double, [], "doubled")) == []

    def test_processes_are_reused(self):
        with ProcessPool(2) as pool:
            first = set(pool.map(process_of, range(8), "slept"))
            assert len(first) == 2 and os.getpid() not in first
            assert set(pool.map(process_of, range(8), "slept")) == first
            # A single task runs in this process.
            assert list(pool.map(process_of, [0], "slept")) == [os.getpid()]
        await_end(list(first), seconds=1)

    @pytest.mark.parametrize("failing", [{5}, {5, 6}, {5, 6, 7, 30}])
    def test_the_first_failure_is_reported_and_no_other_task_starts(self, tmp_path, failing):
        got = []
        with ProcessPool(3) as pool:
            with pytest.raises(KeyError, match="5") as raised:
                for number in pool.map(partial(fail_at, failing, str(tmp_path / "log")), range(200), "failed"):
                    got.append(number)
            assert "in fail_at" in str(raised.value.__cause__)
            assert got == [0, 1, 2, 3, 4]
            assert len((tmp_path / "log").read_text().splitlines()) < 100
            # The pool still works.
            assert list(pool.map(double, range(4), "doubled")) == [0, 2, 4, 6]

    def test_errors_that_cannot_be_pickled_are_sent_as_text(self):
        with ProcessPool(2) as pool, pytest.raises(RuntimeError, match="Stubborn: number 0") as raised:
            list(pool.map(raise_stubborn, range(3), "raised"))
        assert "in raise_stubborn" in str(raised.value.__cause__)

    def test_waiting_ends_if_a_process_is_killed(self):
        started = time.monotonic()
        with ProcessPool(2) as pool:
            with pytest.raises(WorkerDiedError, match=r"that encoded x \(pid \d+\) was killed by SIGKILL.*--workers"):
                list(pool.map(partial(die_at, 7), range(40), "encoded x"))
            # New processes replace the dead ones.
            assert list(pool.map(double, range(4), "doubled")) == [0, 2, 4, 6]
            with pytest.raises(WorkerDiedError, match="ended with exit status 3"):
                list(pool.map(leave, [3, 3], "left"))
        assert time.monotonic() - started < 10

    def test_processes_end_when_their_command_is_killed(self, tmp_path):
        def command():
            with ProcessPool(2) as pool:
                list(pool.map(kill_command, [(tmp_path, number) for number in range(2)], "waited"))

        assert in_child(command) == "killed"
        workers = [int((tmp_path / f"{number}").read_text()) for number in range(2)]
        await_end(workers, seconds=5)


class TestFresh:
    def test_answers_belong_to_their_requests(self):
        with ProcessPool(2) as pool:
            answers = ask(pool, "toy", *"abcdefghij")
            assert answers == [(letter, f"(S (NP (T1 {letter})))") for letter in "abcdefghij"]
            started = children(program="spawn_main")
            assert len(started) == 2
            # The same processes answer again.
            assert ask(pool, "toy", "x") and children(program="spawn_main") == started
            pool.end_fresh()
            assert children(program="spawn_main") == []

    def test_a_process_has_one_thread_and_loads_little(self):
        with ProcessPool(1) as pool:
            with pytest.raises(ParserUnavailableError, match=r"^\['1', '1', '1'\] \[\] cpu (\d+)$") as raised:
                ask(pool, "environment", "a")
        assert int(str(raised.value).split()[-1]) != os.getpid()

    def test_a_process_is_started_for_each_device(self):
        with ProcessPool(1) as pool:
            with pytest.raises(ParserUnavailableError, match=r"cuda:3 (\d+)$"):
                ask(pool, "environment", "a", devices=["cuda:3"])
            with pytest.raises(ParserUnavailableError, match=r"cpu (\d+)$"):
                ask(pool, "environment", "a")

    def test_errors_keep_their_class_and_place(self):
        with ProcessPool(1) as pool:
            call = request("brackets", parse("(S (NN a)", first_line=12)), None
            with pytest.raises(TreeFormatError) as raised:
                list(pool.stream(work_in_process, [call], "read x"))
        assert raised.value.line == 12 and raised.value.path == "x.txt"

    def test_unexpected_errors_have_their_traceback(self):
        with ProcessPool(1) as pool, pytest.raises(ParserError, match="KeyError.*nonsense|Traceback"):
            list(pool.stream(work_in_process, [(request("toy", fail), None)], "parsed x"))

    def test_a_process_that_dies_is_reported_and_the_others_end(self):
        with ProcessPool(2) as pool:
            started = time.monotonic()
            with pytest.raises(WorkerDiedError, match="SIGKILL.*--tree-batch-size"):
                ask(pool, "faulty", "HANG a", "b", "c", "DIE")
            assert time.monotonic() - started < 10
            assert children(program="spawn_main") == []

    def test_processes_end_when_their_command_is_killed(self, tmp_path):
        def command():
            with ProcessPool(2) as pool:
                ask(pool, "toy", *"abcd")
                # Processes that are forked later inherit the connections of the earlier ones.
                list(pool.map(double, range(4), "doubled"))
                (tmp_path / "pids").write_text(" ".join(map(str, children())))
                os.kill(os.getpid(), signal.SIGKILL)

        assert in_child(command) == "killed"
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        assert len(pids) == 4
        await_end(pids, seconds=5)
        assert not any(map(is_running, pids))
