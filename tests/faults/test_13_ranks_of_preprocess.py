"""Fault 13 with ranks of fairseq-preprocess: some are killed, paused, late, or meet a full disk; the bytes are equal.

``TREE_FAIRSEQ_LONG_TESTS=1`` adds more random runs, and pauses of a minute.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.data_bin.corpora import folder_bytes, prefixes, run_preprocess, write_lines
from tests.faults.test_14_disk_full import limit_file_size
from tests.parsing.children import finish, kill
from tests.parsing.conftest import parse_log, toy_lines  # noqa: F401 (a fixture)
from tests.parsing.fake_parsers import LOG_VARIABLE, SLEEP_VARIABLE, noted
from tree_fairseq.commands.check import check_folder
from tree_fairseq.errors import TreeFairseqError
from tree_fairseq.parsing import corpus, ranks
from tree_fairseq.support import progress

IS_LONG = bool(os.environ.get("TREE_FAIRSEQ_LONG_TESTS"))
long_test = pytest.mark.skipif(not IS_LONG, reason="takes minutes; set TREE_FAIRSEQ_LONG_TESTS=1 to run it")
CONTEXT = multiprocessing.get_context("fork")
BATCH = 3


def answer_here(parser, pool, job):
    """A parser costs its sleep alone: no process is started for it."""
    return lambda requests: ((request, parser.answer(request.kind, request.payload)) for request in requests)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    for seed, (split, lines) in enumerate({"train": 140, "valid": 20}.items()):
        write_lines(folder / f"{split}.en", toy_lines(lines, seed=seed))
        write_lines(folder / f"{split}.de", toy_lines(lines, seed=seed + 7))
    return folder


def run(text: Path, folder: Path, rank: int, world_size: int, file_size: int | None = None, *more: str) -> None:
    if file_size is not None:
        limit_file_size(file_size)
    folder.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(folder / f"rank-{rank}.log")
    logging.getLogger("tree_fairseq").addHandler(handler)
    if world_size > 1:
        os.environ.update(TORCHELASTIC_RUN_ID="test", RANK=str(rank), WORLD_SIZE=str(world_size))
    flags = ["--tree-parser", "toy-batch", "--tree-batch-size", BATCH, "--tree-lang", "en", *more]
    try:
        run_preprocess(*prefixes(text, "train", "valid"), *flags, "--destdir", folder / "bin")
    except TreeFairseqError as error:
        logging.getLogger("tree_fairseq").error("%s", error)
        os._exit(3)


def start(text: Path, folder: Path, rank: int, world_size: int, *more) -> multiprocessing.Process:
    process = CONTEXT.Process(target=run, args=(text, folder, rank, world_size, *more), daemon=False)
    process.start()
    return process


@pytest.fixture(scope="module")
def whole(text):
    """The bytes of an unbroken run without torchrun, and the number of its different sentences."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOG_VARIABLE, str(text / "log"))
        patch.setattr(corpus, "_where_answered", answer_here)
        patch.setattr(corpus, "_FEWEST_IN_ORDER", 5)
        finish([start(text, text / "whole", 0, 1)])
    assert check_folder(text / "whole/bin") == []
    return folder_bytes(text / "whole/bin"), len(noted(text / "log"))


@pytest.fixture
def expected(whole, monkeypatch):
    """The same, for runs in which a batch takes a tenth of a second, and a rank of eight has seven of them."""
    monkeypatch.setattr(corpus, "_where_answered", answer_here)
    monkeypatch.setattr(corpus, "_FEWEST_IN_ORDER", 5)
    monkeypatch.setattr(ranks, "_POLL_SECONDS", 0.05)
    monkeypatch.setenv(SLEEP_VARIABLE, "0.1")
    return whole


def check(folder: Path, expected: tuple[dict[str, bytes], int], log: Path, batches_lost: int = 0) -> None:
    """The bytes are right, nothing is left beside them, and no more was parsed twice than the batches in hand."""
    files, distinct = expected
    assert folder_bytes(folder / "bin") == files
    assert not (folder / "bin.building").exists()
    assert distinct <= len(noted(log)) <= distinct + batches_lost * BATCH
    assert batches_lost or set(Counter(noted(log)).values()) == {1}


@pytest.mark.parametrize("world_size", [2, 4, 8])
def test_any_number_of_ranks(text, expected, tmp_path, parse_log, world_size):
    finish([start(text, tmp_path / "out", rank, world_size) for rank in range(world_size)])
    check(tmp_path / "out", expected, parse_log)
    logs = [(tmp_path / f"out/rank-{rank}.log").read_text() for rank in range(world_size)]
    # Every rank had a part, and rank 0 alone writes.
    assert all(f"rank {rank}: rank 0 has all parses" in logs[rank] for rank in range(1, world_size))
    assert [rank for rank, log in enumerate(logs) if "[trees] done" in log] == [0]
    shares = [sum(map(int, part.split(",")[0].split()[0:1])) for log in logs[1:] for part in log.split(".en, ")[1:]]
    assert len(shares) == 2 * (world_size - 1) and sum(shares) > 160 * (world_size - 1) // world_size - 20


@pytest.mark.parametrize("seed", range(20 if IS_LONG else 2))
def test_three_of_eight_are_killed(text, expected, tmp_path, parse_log, seed):
    chooser, folder = random.Random(seed), tmp_path / "out"
    processes = [start(text, folder, rank, 8) for rank in range(8)]
    # Rank 0 is among the killed of every second run.
    killed = chooser.sample(range(1, 8), 3) if seed % 2 else [0, *chooser.sample(range(1, 8), 2)]
    for rank in killed:
        time.sleep(chooser.uniform(0, 0.15))
        processes[rank].kill()
    time.sleep(chooser.uniform(0, 0.5))
    # The others wait for its sentences.
    assert not (folder / "bin").exists()
    kill(processes)
    assert not (folder / "bin").exists()
    world_size = chooser.choice([1, 2, 5, 8])
    finish([start(text, folder, rank, world_size) for rank in range(world_size)])
    check(folder, expected, parse_log, batches_lost=8)


def test_rank_0_names_the_shards_that_a_dead_rank_owes(text, expected, tmp_path, parse_log, monkeypatch):
    """Without torchrun nobody ends the others, nor does torchrun on another machine."""
    monkeypatch.setattr(progress, "WARN_SECONDS", 0.5)
    monkeypatch.setattr(progress, "GIVE_UP_SECONDS", 2)
    folder = tmp_path / "out"
    processes = [start(text, folder, rank, 3) for rank in range(3)]
    time.sleep(0.2)
    processes[2].kill()
    log, deadline = folder / "rank-0.log", time.monotonic() + 60
    while "rank 2 of 3 has not finished" not in (log.read_text() if log.exists() else ""):
        assert time.monotonic() < deadline and processes[0].is_alive()
        time.sleep(0.05)
    assert "has not finished shards 2, 5, 8, 11, ... (of 5 lines each) of " in log.read_text()
    assert "nothing has changed for " in log.read_text() and "what is parsed is kept" in log.read_text()
    # In the end it gives up.
    processes[0].join(60)
    assert processes[0].exitcode == 3 and "Give the same command again to all ranks" in log.read_text()
    kill(processes)
    finish([start(text, folder, rank, 2) for rank in range(2)])
    check(folder, expected, parse_log, batches_lost=3)


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("seconds", [1, pytest.param(60, marks=long_test)])
def test_a_paused_rank_goes_on(text, expected, tmp_path, parse_log, rank, seconds):
    processes = [start(text, tmp_path / "out", number, 4) for number in range(4)]
    time.sleep(0.3)
    os.kill(processes[rank].pid, signal.SIGSTOP)
    time.sleep(seconds)
    assert processes[0].is_alive()
    os.kill(processes[rank].pid, signal.SIGCONT)
    finish(processes)
    check(tmp_path / "out", expected, parse_log)


def test_a_rank_that_waits_on_a_killed_attempt_joins_the_next_one(tmp_path, monkeypatch):
    """Also if it looks while rank 0 is about to write its attempt."""
    monkeypatch.setattr(ranks, "_POLL_SECONDS", 0.01)
    folder, write = tmp_path / "ranks", ranks.write_json
    folder.mkdir()
    write(folder / "attempt.json", {"attempt": "killed", "command": "command"})
    write(folder / "text-1.json", {"job": {"world_size": 3}})  # it had more ranks, so its shares are others

    def write_slowly(path: Path, content: object) -> None:
        time.sleep(0.2)
        write(path, content)

    helper = threading.Thread(target=ranks.help_parsing, args=(folder, "command", 1, 2, lambda text: None))
    helper.start()
    while not (folder / "hello-1.json").exists():
        time.sleep(0.01)
    monkeypatch.setattr(ranks, "write_json", write_slowly)
    with ranks.LeadingRank(folder, "command", 2) as leading:
        assert helper.is_alive() and not (folder / "text-1.json").exists()
        leading.dismiss()
    helper.join(10)
    assert not helper.is_alive() and not folder.exists()


@pytest.mark.parametrize("rank", [0, 3])
def test_a_rank_may_be_late(text, expected, tmp_path, parse_log, rank):
    """Also beside what a killed run left."""
    folder = tmp_path / "out"
    processes = [start(text, folder, number, 4) for number in range(4)]
    time.sleep(0.3)
    kill(processes)
    processes = [start(text, folder, number, 4) for number in range(4) if number != rank]
    time.sleep(1)
    processes.append(start(text, folder, rank, 4))
    finish(processes)
    check(folder, expected, parse_log, batches_lost=4)


def test_ready_made_trees_need_no_other_rank(text, tmp_path):
    """A rank has nothing to do, but ends in order; also one that comes when all is done but that."""
    for split in ("train", "valid"):
        lines = [f"(S (X the) (X {word}))" for word in ("man", "boat", "lighthouse")]
        write_lines(tmp_path / f"{split}.en", lines)
        write_lines(tmp_path / f"{split}.de", lines)
    folder = tmp_path / "out"
    more = (None, "--tree-parser", "brackets")
    processes = [start(tmp_path, folder, 0, 2, *more)]
    time.sleep(1)
    processes.append(start(tmp_path, folder, 1, 2, *more))
    finish(processes)
    assert check_folder(folder / "bin") == [] and not (folder / "bin.building").exists()


def test_a_rank_meets_a_full_disk(text, expected, tmp_path, parse_log):
    folder = tmp_path / "out"
    processes = [start(text, folder, rank, 3, 10_000 if rank == 1 else None) for rank in range(3)]
    processes[1].join(60)
    assert processes[1].exitcode == 3 and "give the same command again" in (folder / "rank-1.log").read_text()
    kill(processes)
    assert not (folder / "bin").exists()
    finish([start(text, folder, rank, 2) for rank in range(2)])
    check(folder, expected, parse_log, batches_lost=3)


def test_ranks_with_other_options_do_not_wait_for_ever(text, expected, tmp_path, parse_log, monkeypatch):
    monkeypatch.setattr(ranks, "WARN_SECONDS", 0.5)
    folder = tmp_path / "out"
    leading, other = start(text, folder, 0, 2), start(text, folder, 1, 2, None, "--joined-dictionary")
    other.join(60)
    assert other.exitcode == 3
    assert "rank 0 builds this folder from other files or options" in (folder / "rank-1.log").read_text()
    kill([leading])
    assert not (folder / "bin").exists()


@long_test
def test_under_torchrun(text, tmp_path):
    """The command of the documentation, with real ranks and a parser of the package."""
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)}
    flags = ["--user-dir", root / "tree_fairseq", "-s", "en", "-t", "de", *prefixes(text, "train", "valid")]
    flags += ["--tree-parser", "random", "--tree-lang", "en"]
    for name, launcher in (
        ("alone", []),
        ("ranks", ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]),
    ):
        command = [sys.executable, *launcher, "-m", "fairseq_cli.preprocess", *flags, "--destdir", tmp_path / name]
        done = subprocess.run(
            list(map(str, command)), env=environment, timeout=400, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert done.returncode == 0, done.stdout.decode()
    assert folder_bytes(tmp_path / "ranks") == folder_bytes(tmp_path / "alone")
    assert not (tmp_path / "ranks.building").exists()
