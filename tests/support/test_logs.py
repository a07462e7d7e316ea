"""The form of logs, and what is kept out of them."""

from __future__ import annotations

import logging
import sys
import warnings

import pytest

from tree_fairseq.support import logs


@pytest.fixture
def root(monkeypatch):
    """The root logger, as fairseq-fixed leaves it: with a handler and the level of debugging."""
    root = logging.getLogger()
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
    monkeypatch.setattr(root, "handlers", [handler])
    monkeypatch.setattr(root, "level", logging.DEBUG)
    monkeypatch.delenv("LOGLEVEL", raising=False)
    with warnings.catch_warnings():
        yield root


def shown(root: logging.Logger, text: str) -> str:
    record = logging.LogRecord("fairseq_cli.generate", logging.INFO, "generate.py", 1, text, (), None)
    return root.handlers[0].format(record)


@pytest.mark.parametrize(
    "program, begin", [("/bin/fairseq-generate", logs.keep_clean), ("report.py", logs.log_to_standard_error)]
)
def test_commands_and_programs_of_ours_log_as_fairseq_means_to(root, monkeypatch, program, begin):
    """matplotlib says much at the level of debugging."""
    monkeypatch.setattr(sys, "argv", [program])
    begin()
    assert shown(root, "loading").endswith(" | INFO | fairseq_cli.generate | loading")
    assert root.level == logging.INFO


def test_another_program_keeps_its_own_form(root, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["own_program.py"])
    logs.keep_clean()
    assert shown(root, "loading") == "INFO:fairseq_cli.generate:loading" and root.level == logging.DEBUG


def test_a_form_that_was_chosen_is_kept(root, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/bin/fairseq-generate"])
    root.handlers[0].setFormatter(logging.Formatter("%(message)s"))
    logs.keep_clean()
    assert shown(root, "loading") == "loading" and root.level == logging.DEBUG


def test_lines_for_developers_are_left_out_and_no_others(caplog):
    logs.keep_clean()
    logs.keep_clean()
    for name, beginnings in logs.FOR_DEVELOPERS.items():
        logger = logging.getLogger(name)
        assert len(logger.filters) == 1
        with caplog.at_level(logging.DEBUG, logger=name):
            for beginning in beginnings:
                logger.info(f"{beginning}1")
            assert caplog.text == ""
            logger.warning("mind this")
        assert "mind this" in caplog.text
        caplog.clear()
