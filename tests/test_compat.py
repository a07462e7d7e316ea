"""What depends on versions of fairseq and torch; checkpoints that are torn or could run code are in ``faults``."""

from __future__ import annotations

import logging

import pytest
from fairseq.logging import progress_bar

import tree_fairseq  # noqa: F401


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
