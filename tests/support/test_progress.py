"""Progress of long steps: a bar in a terminal, lines elsewhere, and nothing for what is over soon."""

from __future__ import annotations

import io
import re
import sys

import pytest

from tree_fairseq.support import progress
from tree_fairseq.support.processes import ProcessPool


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch):
    """The time that tqdm reads, in seconds; the test sets it."""
    seconds = [1000.0]
    monkeypatch.setattr("tqdm.std.time", lambda: seconds[0])
    return seconds


def steps(clock: list[float], seconds: float, count: int = 10) -> list[int]:
    done = []
    for item in progress.with_progress(list(range(count)), "train.en", unit="lines"):
        clock[0] += seconds
        done.append(item)
    return done


def test_a_log_gets_a_line_every_ten_seconds_with_the_time_that_is_left(clock, capsys):
    assert steps(clock, 6) == list(range(10))
    lines = capsys.readouterr().err.splitlines()
    assert 4 <= len(lines) <= 6
    assert re.fullmatch(r"train\.en: 2 of 10 lines, +0\.1\d lines/s, 00:48 left", lines[0])
    assert lines[-1].startswith("train.en: 10 of 10 lines, ")
    assert "\r" not in "".join(lines)


def test_what_is_over_soon_shows_nothing(clock, monkeypatch, capsys):
    steps(clock, 0.5)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys, "stderr", Terminal())
    steps(clock, 0.01)
    assert sys.stderr.getvalue() == ""


def test_a_terminal_gets_a_bar_that_moves(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    steps(clock, 6)
    drawn = sys.stderr.getvalue().split("\r")
    assert len(drawn) > 8 and "30%" in "".join(drawn) and "100%" in drawn[-1]


def test_it_may_be_hidden_and_the_number_of_items_unknown(clock, capsys):
    bar = progress.progress_bar("train.en", None, "lines", shown=False)
    clock[0] += 60
    bar.update(3)
    bar.close()
    assert capsys.readouterr().err == ""
    for _ in progress.with_progress(iter("abc"), "export", unit="lines"):
        clock[0] += 11
    assert capsys.readouterr().err.splitlines()[0].startswith("export: 1 lines, ")


def test_parallel_work_shows_how_many_parts_are_done(clock, capsys):
    def slow(part: int) -> int:
        clock[0] += 20
        return part

    with ProcessPool(1) as pool:
        assert list(pool.map(slow, [1, 2, 3], "encoded text/train.en")) == [1, 2, 3]
        assert re.match(r"train\.en: 1 of 3 parts, .* 00:40 left", capsys.readouterr().err.splitlines()[0])
        assert list(pool.map(slow, [1, 2], "encoded text/train.en", progress=False)) == [1, 2]
        assert capsys.readouterr().err == ""
