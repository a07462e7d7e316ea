"""Fault 13 with ranks: some are killed, paused, late, or meet a full disk; the bytes are those of an unbroken run.

``TREE_FAIRSEQ_LONG_TESTS=1`` adds more random runs, and pauses of a minute.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.test_14_disk_full import limit_file_size
from tests.parsing.children import finish, kill
from tests.parsing.conftest import parse_log, toy_lines, write_text  # noqa: F401 (a fixture)
from tests.parsing.fake_parsers import LOG_VARIABLE, SLEEP_VARIABLE, noted
from tree_fairseq.errors import TreeFairseqError
from tree_fairseq.parsing import corpus, corpus_run, shards
from tree_fairseq.parsing.corpus import lines_of_shards, parse_corpus
from tree_fairseq.parsing.corpus_run import CorpusJob
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.shards import join_shards

IS_LONG = bool(os.environ.get("TREE_FAIRSEQ_LONG_TESTS"))
long_test = pytest.mark.skipif(not IS_LONG, reason="takes minutes; set TREE_FAIRSEQ_LONG_TESTS=1 to run it")
# A tree tells the batch that its sentence was in, as the last digits of a real parser's scores do.
OPTIONS = ParserOptions(name="toy-batch", batch_size=3)
CONTEXT = multiprocessing.get_context("fork")


def run(text: Path, folder: Path, rank: int = 0, world_size: int = 1, file_size: int | None = None) -> None:
    if file_size is not None:
        limit_file_size(file_size)
    try:
        summary = parse_corpus(
            text,
            folder / "shards",
            OPTIONS,
            workers=0,
            shard_lines=5,
            cache=folder / "cache",
            progress=False,
            rank=rank,
            world_size=world_size,
        )
    except TreeFairseqError:
        os._exit(3)
    if rank == 0:
        join_shards(summary.shards, folder / "out.brackets")


def start(text: Path, folder: Path, rank: int, world_size: int, **more) -> multiprocessing.Process:
    process = CONTEXT.Process(target=run, args=(text, folder, rank, world_size), kwargs=more, daemon=True)
    process.start()
    return process


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_text(tmp_path_factory.mktemp("ranks") / "text", toy_lines(160, seed=5))


@pytest.fixture(scope="module")
def whole(text):
    """The bytes of an unbroken run and the number of its different sentences."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOG_VARIABLE, str(text.parent / "log"))
        run(text, text.parent)
    return (text.parent / "out.brackets").read_bytes(), len(noted(text.parent / "log"))


@pytest.fixture
def expected(whole, monkeypatch):
    """The same, for runs in which a batch takes a tenth of a second, and a rank of eight has seven of them."""
    for module in (corpus, corpus_run, shards):
        monkeypatch.setattr(module, "_POLL_SECONDS", 0.05)
    monkeypatch.setenv(SLEEP_VARIABLE, "0.1")
    return whole


def check(folder: Path, expected: tuple[bytes, int], log: Path, batches_lost: int = 0) -> None:
    """The bytes are right, and no more was parsed twice than the batches that were in hand."""
    content, distinct = expected
    assert (folder / "out.brackets").read_bytes() == content
    assert distinct <= len(noted(log)) <= distinct + batches_lost * OPTIONS.batch_size
    assert batches_lost or set(Counter(noted(log)).values()) == {1}


@pytest.mark.parametrize("world_size", [2, 4])
def test_any_number_of_ranks(text, expected, tmp_path, parse_log, world_size):
    finish([start(text, tmp_path / "out", rank, world_size) for rank in range(world_size)])
    check(tmp_path / "out", expected, parse_log)


@pytest.mark.parametrize("seed", range(30 if IS_LONG else 3))
def test_three_of_eight_are_killed(text, expected, tmp_path, parse_log, seed):
    chooser, folder = random.Random(seed), tmp_path / "out"
    ranks = [start(text, folder, rank, 8) for rank in range(8)]
    # Rank 0 is among the killed of every second run.
    killed = chooser.sample(range(1, 8), 3) if seed % 2 else [0, *chooser.sample(range(1, 8), 2)]
    for rank in killed:
        time.sleep(chooser.uniform(0, 0.15))
        ranks[rank].kill()
    for rank in killed:
        ranks[rank].join()
        # The others wait for its sentences.
        assert ranks[rank].exitcode == -signal.SIGKILL
    time.sleep(chooser.uniform(0, 0.5))
    assert not (folder / "out.brackets").exists()
    kill(ranks)
    world_size = chooser.choice([1, 2, 5, 8])
    finish([start(text, folder, rank, world_size) for rank in range(world_size)])
    check(folder, expected, parse_log, batches_lost=8)


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("seconds", [1, pytest.param(60, marks=long_test)])
def test_a_paused_rank_goes_on(text, expected, tmp_path, parse_log, rank, seconds):
    ranks = [start(text, tmp_path / "out", number, 4) for number in range(4)]
    time.sleep(0.3)
    os.kill(ranks[rank].pid, signal.SIGSTOP)
    time.sleep(seconds)
    assert any(each.is_alive() for each in ranks)
    os.kill(ranks[rank].pid, signal.SIGCONT)
    finish(ranks)
    check(tmp_path / "out", expected, parse_log)


@pytest.mark.parametrize("rank", [0, 3])
def test_a_rank_may_be_late(text, expected, tmp_path, parse_log, rank):
    ranks = [start(text, tmp_path / "out", number, 4) for number in range(4) if number != rank]
    time.sleep(1)
    ranks.append(start(text, tmp_path / "out", rank, 4))
    finish(ranks)
    check(tmp_path / "out", expected, parse_log)


@pytest.mark.parametrize("file_size", [200, 10_000])
def test_a_rank_meets_a_full_disk(text, expected, tmp_path, parse_log, file_size):
    folder = tmp_path / "out"
    ranks = [start(text, folder, rank, 3, file_size=file_size if rank == 1 else None) for rank in range(3)]
    ranks[1].join(60)
    assert ranks[1].exitcode == 3
    kill(ranks)
    assert not (folder / "out.brackets").exists()
    finish([start(text, folder, rank, 2) for rank in range(2)])
    check(folder, expected, parse_log, batches_lost=3)


def test_short_files_have_work_for_every_rank():
    for lines, ranks in ((800, 8), (1_200, 8), (3_200, 32), (100_000, 32)):
        job = CorpusJob(Path("text"), lines, lines_of_shards(lines))
        own = [CorpusJob(Path("text"), lines, job.shard_lines, rank, ranks).own_lines() for rank in range(ranks)]
        assert sum(own) == lines and min(own) > 0 and max(own) <= 2.1 * lines / ranks
    assert lines_of_shards(0) > 0 and lines_of_shards(10**9) == corpus.SHARD_LINES
