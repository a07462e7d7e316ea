"""What depends on versions of fairseq and torch; checkpoints that are torn or could run code are in ``faults``."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal

import pytest
from fairseq import binarizer
from fairseq.data import dictionary
from fairseq.logging import progress_bar

import tree_fairseq  # noqa: F401
from tree_fairseq import compat
from tree_fairseq.errors import WorkerDiedError
from tree_fairseq.parsing.processes import ProcessPool


@pytest.fixture
def progress_logger():
    """fairseq's logger of progress, which gets its handlers back."""
    logger = progress_bar.logger
    handlers, level = [*logger.handlers], logger.level
    logger.setLevel(logging.INFO)
    yield logger
    for handler in {*logger.handlers} - {*handlers}:
        logger.removeHandler(handler)
        handler.close()
    logger.setLevel(level)


def test_a_log_file_has_each_line_once_however_many_epochs_there_were(tmp_path, progress_logger, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for epoch in range(1, 6):
        bar = progress_bar.progress_bar(
            [], log_format="simple", log_file=("train.log", "./train.log")[epoch % 2], epoch=epoch
        )
        bar.print({"loss": epoch}, tag="train")
    lines = (tmp_path / "train.log").read_text().splitlines()
    assert lines == [f"epoch {epoch:03d} | loss {epoch}" for epoch in range(1, 6)]
    assert sum(isinstance(handler, logging.FileHandler) for handler in progress_logger.handlers) == 1


def test_another_log_file_is_opened_beside_the_first(tmp_path, progress_logger):
    paths = [tmp_path / "first.log", tmp_path / "second.log"]
    for path in paths:
        bar = progress_bar.progress_bar([], "simple", 100, str(path))
    bar.print({"loss": 1})
    assert all(len(path.read_text().splitlines()) == 1 for path in paths)


def test_without_a_log_file_none_is_opened(progress_logger):
    before = len(progress_logger.handlers)
    progress_bar.progress_bar([], log_format="simple")
    assert len(progress_logger.handlers) == before


def add(first: int, second: int = 0) -> int:
    return first + second


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_pool_of_fairseq_still_waits_for_a_killed_process_for_ever():
    """``compat.binarizing_in`` can go when this fails."""
    assert binarizer.Pool == dictionary.Pool == multiprocessing.Pool
    with binarizer.Pool(processes=2) as pool:
        result = pool.apply_async(die)
        pool.close()
        with pytest.raises(multiprocessing.TimeoutError):
            result.get(timeout=2)


def test_fairseq_gets_a_pool_of_ours_and_its_own_back():
    stock = binarizer.Pool, dictionary.Pool
    with ProcessPool(2) as ours:
        with pytest.raises(KeyError), compat.binarizing_in(ours):
            for module in (binarizer, dictionary):
                pool = module.Pool(processes=2)
                results = [pool.apply_async(add, args=(number,), kwds={"second": 1}) for number in range(5)]
                wrong = pool.apply_async(add, args=("a",))
                pool.close()
                pool.join()
                assert [result.get() for result in results] == [1, 2, 3, 4, 5]
                with pytest.raises(TypeError):
                    wrong.get()
            killed = pool.apply_async(die)
            with pytest.raises(WorkerDiedError, match="that binarized text .* was killed"):
                killed.get()
            raise KeyError
    assert (binarizer.Pool, dictionary.Pool) == stock
