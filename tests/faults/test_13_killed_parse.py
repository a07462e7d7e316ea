"""Fault 13: the parsing of a corpus is killed (SIGKILL) at any moment, and the same command finishes it with the same
bytes, parsing nothing twice.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sqlite3
import uuid
from collections import Counter
from pathlib import Path

import pytest

from tests.parsing.children import await_end, children
from tests.parsing.conftest import parse_log, toy_lines, write_text  # noqa: F401 (a fixture)
from tests.parsing.fake_parsers import SLEEP_VARIABLE, noted
from tree_fairseq.parsing import corpus_run, shards
from tree_fairseq.parsing.cache import FILE_NAME, ParseCache
from tree_fairseq.parsing.corpus import parse_corpus
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.shards import join_shards
from tree_fairseq.support import files

OPTIONS = ParserOptions(name="toy-batch", batch_size=3)
CONTEXT = multiprocessing.get_context("fork")


def run(text, folder, workers=0):
    summary = parse_corpus(
        text, folder / "shards", OPTIONS, workers=workers, shard_lines=5, cache=folder / "cache", progress=False
    )
    join_shards(summary.shards, folder / "out.brackets")


def in_child(function, *arguments, kill_after=None):
    """Run in a process of its own; True if it came to its end."""
    child = CONTEXT.Process(target=function, args=arguments)
    child.start()
    orphans = []
    if kill_after is not None:
        child.join(kill_after)
        if child.is_alive():
            orphans = children(child.pid)
            os.kill(child.pid, signal.SIGKILL)
    child.join()
    await_end(orphans)
    assert child.exitcode in (0, -signal.SIGKILL)
    return child.exitcode == 0


def die_at(step, *arguments):
    """Run, and die right before the ``step``-th thing that changes a file; that is also right after the one before
    it.
    """
    steps = [0]

    def counting(owner, name):
        original = getattr(owner, name)

        def wrapped(*args, **kwargs):
            steps[0] += 1
            if steps[0] == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        setattr(owner, name, wrapped)

    for owner, name in (
        (os, "replace"),
        (os, "fsync"),
        (uuid, "uuid4"),
        (Path, "unlink"),
        (ParseCache, "put_many"),
        (ParseCache, "put_fact"),
    ):
        counting(owner, name)
    run(*arguments)


@pytest.fixture
def text(tmp_path):
    return write_text(tmp_path / "text", toy_lines(13, seed=3))


def known(folder):
    """The number of sentences that the cache has."""
    if not (folder / "cache" / FILE_NAME).exists():
        return 0
    with ParseCache(folder / "cache") as cache:
        return cache._connection.execute("SELECT count(*) FROM parses").fetchone()[0]


def test_killed_at_every_step(text, tmp_path, parse_log):
    run(text, tmp_path / "whole")
    expected = (tmp_path / "whole/out.brackets").read_bytes()
    distinct = len(noted(parse_log))
    step = 0
    finished = False
    while not finished:
        step += 1
        folder = tmp_path / str(step)
        parse_log.unlink(missing_ok=True)
        finished = in_child(die_at, step, text, folder)
        assert finished == (folder / "out.brackets").exists() or (folder / "out.brackets").read_bytes() == expected
        kept, parsed = known(folder), len(noted(parse_log))
        run(text, folder)
        assert (folder / "out.brackets").read_bytes() == expected, f"killed at step {step}"
        # Nothing that was kept is parsed again, and all but the batch in hand was kept.
        assert len(noted(parse_log)) - parsed == distinct - kept and parsed - kept <= OPTIONS.batch_size
        assert not [name for name in os.listdir(folder) if name.endswith(".tmp")] or not finished
    assert step > 25


def test_killed_again_and_again(text, tmp_path, parse_log):
    run(text, tmp_path / "whole")
    distinct = len(noted(parse_log))
    parse_log.unlink()
    folder = tmp_path / "out"
    kills = 0
    # Enough for one shard more each time: the note in the cache, three steps of the state, a batch or two, and twice
    # three steps of a shard.
    while kills < 50 and not in_child(die_at, 13, text, folder):
        kills += 1
    run(text, folder)
    assert 1 < kills < 50
    assert (folder / "out.brackets").read_bytes() == (tmp_path / "whole/out.brackets").read_bytes()
    assert sum(Counter(noted(parse_log)).values()) <= distinct + kills * OPTIONS.batch_size


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_any_time_with_processes(text, tmp_path, parse_log, monkeypatch, seed):
    run(text, tmp_path / "whole")
    distinct = len(noted(parse_log))
    monkeypatch.setenv(SLEEP_VARIABLE, "0.05")
    chooser = random.Random(seed)
    folder = tmp_path / "out"
    for _ in range(3):
        if in_child(run, text, folder, 2, kill_after=chooser.uniform(0.3, 1.5)):
            break
    parse_log.unlink(missing_ok=True)
    kept = known(folder)
    run(text, folder, 2)
    assert (folder / "out.brackets").read_bytes() == (tmp_path / "whole/out.brackets").read_bytes()
    assert len(noted(parse_log)) == distinct - kept


def test_the_cache_is_sound_after_a_kill(text, tmp_path):
    in_child(die_at, 12, text, tmp_path / "out")
    with sqlite3.connect(tmp_path / "out/cache" / FILE_NAME) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_the_steps_are_those_of_the_program():
    """What `die_at` counts is what the program does: these names are looked up when they are called."""
    assert files.os is os and files.uuid is shards.uuid is uuid and corpus_run.ParseCache is ParseCache
