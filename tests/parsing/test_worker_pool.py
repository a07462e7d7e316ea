"""Worker processes fail when one is killed and end with their parent."""

from __future__ import annotations

import os
import signal
import time

import pytest
from fairseq import binarizer
from fairseq.data import dictionary

from tests.data_bin.corpora import in_child
from tree_fairseq.errors import WorkerDiedError
from tree_fairseq.parsing.worker_pool import FailFastPool, failing_fast, worker_processes


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def add(first: int, second: int = 0) -> int:
    return first + second


def sleep_long(path: str) -> None:
    with open(path, "w") as file:
        file.write(str(os.getpid()))
    time.sleep(600)


def test_results_and_exceptions_come_back():
    pool = FailFastPool(processes=2)
    results = [pool.apply_async(add, args=(number,), kwds={"second": 1}) for number in range(5)]
    wrong = pool.apply_async(add, args=("a",))
    pool.close()
    pool.join()
    assert [result.get() for result in results] == [1, 2, 3, 4, 5]
    with pytest.raises(TypeError):
        wrong.get()


def test_a_killed_process_ends_the_waiting():
    started = time.monotonic()
    pool = FailFastPool(processes=2)
    results = [pool.apply_async(add, args=(1,)), pool.apply_async(die)]
    pool.close()
    pool.join()
    with pytest.raises(WorkerDiedError, match="killed"):
        for result in results:
            result.get()
    assert time.monotonic() - started < 10


def test_fairseq_gets_the_pool_and_its_own_back():
    stock = binarizer.Pool, dictionary.Pool
    with pytest.raises(KeyError), failing_fast():
        assert binarizer.Pool is FailFastPool and dictionary.Pool is FailFastPool
        raise KeyError
    assert (binarizer.Pool, dictionary.Pool) == stock and FailFastPool not in stock


def is_running(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as file:
            # An orphan that nobody waits for is dead all the same.
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_workers_end_when_their_parent_is_killed(tmp_path):
    def parent():
        with worker_processes(2) as executor:
            for number in range(2):
                executor.submit(sleep_long, str(tmp_path / f"{number}"))
            while len([path for path in tmp_path.iterdir() if path.read_text()]) < 2:
                time.sleep(0.05)
            die()

    assert in_child(parent) == "killed"
    workers = [int(path.read_text()) for path in tmp_path.iterdir()]
    deadline = time.monotonic() + 20
    while any(map(is_running, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(is_running, workers))
