"""Fault 13: the parsing of a corpus is killed (SIGKILL) at any moment, and the same command finishes it with the same
bytes. Finished shards are not parsed again.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import uuid

import pytest

from tests.parsing.children import await_end, children
from tests.parsing.conftest import parse_file, parse_log, small_blocks, toy_lines, write_text  # noqa: F401 (fixtures)
from tests.parsing.fake_parsers import SLEEP_VARIABLE, noted
from tree_fairseq.parsing.corpus import finished_report, parser_digest, shards_of
from tree_fairseq.parsing.joining import join_shards
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions

OPTIONS = ParserOptions(name="toy-batch", batch_size=3)
CONTEXT = multiprocessing.get_context("fork")

pytestmark = pytest.mark.usefixtures("small_blocks")


def run(text, folder, workers=0):
    parsed = parse_file(text, folder / "shards", OPTIONS, workers)
    join_shards(parsed.shards, folder / "out.trees")


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
    """Runs, and dies right before the ``step``-th thing that changes a file, which is right after the one before it."""
    steps = [0]

    def counting(owner, name):
        original = getattr(owner, name)

        def wrapped(*args, **kwargs):
            steps[0] += 1
            if steps[0] == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        setattr(owner, name, wrapped)

    for owner, name in ((os, "replace"), (os, "fsync"), (uuid, "uuid4")):
        counting(owner, name)
    run(*arguments)


@pytest.fixture
def text(tmp_path):
    return write_text(tmp_path / "text", toy_lines(17, seed=3))


def sentences_left(text, folder):
    """The number of different sentences in each shard that is not finished, in all."""
    digest = parser_digest(LineParser(OPTIONS))
    missing = [shard for shard in shards_of(text, folder / "shards") if finished_report(shard, digest) is None]
    return sum(len({line for block in shard.blocks() for line in block if line.strip()}) for shard in missing)


def test_killed_at_every_step(text, tmp_path, parse_log):
    run(text, tmp_path / "whole")
    expected = (tmp_path / "whole/out.trees").read_bytes()
    step = 0
    finished = False
    while not finished:
        step += 1
        folder = tmp_path / str(step)
        finished = in_child(die_at, step, text, folder)
        assert finished == (folder / "out.trees").exists() or (folder / "out.trees").read_bytes() == expected
        parse_log.unlink(missing_ok=True)
        left = sentences_left(text, folder)
        run(text, folder)
        assert (folder / "out.trees").read_bytes() == expected, f"killed at step {step}"
        assert len(noted(parse_log)) == left
    assert step > 25


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_time_with_processes(text, tmp_path, parse_log, monkeypatch, seed):
    run(text, tmp_path / "whole")
    monkeypatch.setenv(SLEEP_VARIABLE, "0.05")
    chooser = random.Random(seed)
    folder = tmp_path / "out"
    for _ in range(3):
        if in_child(run, text, folder, 2, kill_after=chooser.uniform(0.3, 1.5)):
            break
    parse_log.unlink(missing_ok=True)
    left = sentences_left(text, folder)
    run(text, folder, 2)
    assert (folder / "out.trees").read_bytes() == (tmp_path / "whole/out.trees").read_bytes()
    assert len(noted(parse_log)) == left
