"""One of several processes that train together is killed or stands still: the others end with one line.

All of them started again go on from the last checkpoint. With ``TREE_FAIRSEQ_LONG_TESTS=1`` every process is a command
of its own, four of them train, too, and the moments are random.
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from pathlib import Path

import pytest
import torch

from tests.end_to_end.ranks import IS_LONG, Rank, long_test, train_together, training

EPOCHS = ("--max-epoch", 4, "--save-interval-updates", 2)
LOST = re.compile(r"^(?:\[rank\d+\]: )?process \d of \d has lost another one: .*goes on from the last checkpoint", re.M)
IN_TIME = 60
"""Seconds in which the others have to end on a busy machine; they take one or two."""


def last_loss(log: str) -> float:
    return float(re.findall(r"valid on 'valid' subset \| loss ([\d.]+)", log)[-1])


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return torch.load(folder / "checkpoint4.pt", weights_only=True)["model"]


@pytest.fixture(scope="module")
def unbroken(data_bin, tmp_path_factory) -> tuple[str, Path]:
    """The log and the checkpoints of two processes that nothing happens to."""
    folder = tmp_path_factory.mktemp("unbroken") / "two"
    return train_together(data_bin, folder, *EPOCHS), folder


def ends_with_one_line(rank: Rank, started: float) -> None:
    """Not with a traceback either."""
    assert rank.wait(IN_TIME) == 1, rank.log
    assert time.monotonic() - started < IN_TIME
    assert len(LOST.findall(rank.log)) == 1 and "Traceback" not in rank.log, rank.log
    assert rank.log.rstrip().endswith("a training goes on from the last checkpoint of --save-dir.")


def check_goes_on(data_bin: Path, folder: Path, unbroken: tuple[str, Path], *flags: object) -> None:
    log = train_together(data_bin, folder, *EPOCHS, *flags)
    assert "Loaded checkpoint" in log
    assert last_loss(log) == pytest.approx(last_loss(unbroken[0]), abs=1e-4)
    expected = weights(unbroken[1])
    for name, weight in weights(folder).items():
        torch.testing.assert_close(weight, expected[name], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("lost", [pytest.param(0, marks=long_test), 1])
def test_a_killed_process(data_bin, tmp_path, unbroken, lost):
    folder = tmp_path / "killed"
    with training(data_bin, folder, *EPOCHS, own=IS_LONG) as ranks:
        # In the middle of an epoch, after a checkpoint.
        ranks[0].await_line("end of epoch 2 (")
        os.kill(ranks[lost].pid, signal.SIGKILL)
        ends_with_one_line(ranks[1 - lost], time.monotonic())
        assert ranks[lost].wait() == 137
    assert not (folder / "checkpoint4.pt").exists()
    check_goes_on(data_bin, folder, unbroken)


def test_a_process_that_stands_still(data_bin, tmp_path):
    """It is not dead, so that only time tells; when it wakes up, it ends as well."""
    with training(data_bin, tmp_path / "still", "--max-epoch", 10000, "--no-save", "--heartbeat-timeout", 4) as ranks:
        ranks[0].await_line("end of epoch 2 (")
        os.kill(still := ranks[1].pid, signal.SIGSTOP)
        started = time.monotonic()
        assert ranks[0].wait(IN_TIME) == 1, ranks[0].log
        assert time.monotonic() - started > 3 and len(LOST.findall(ranks[0].log)) == 1
        os.kill(still, signal.SIGCONT)
        # It finds that the other has gone, or that it was still itself.
        assert ranks[1].wait(IN_TIME) in (1, 130), ranks[1].log
        assert LOST.search(ranks[1].log) or "Killing job for not making progress in 4 seconds" in ranks[1].log
        assert not any("Traceback" in rank.log for rank in ranks)


@long_test
def test_a_killed_process_that_fairseq_has_started(data_bin, tmp_path):
    """The process that started the others ends them and says what happened."""
    flags = ("--max-epoch", 10000, "--no-save", "--distributed-world-size", 2)
    with training(data_bin, tmp_path / "started", *flags, ranks=1, own=True) as [first]:
        first.await_line("end of epoch 1 (", 400)
        children = Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()
        processes = [pid for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(int(processes[1]), signal.SIGKILL)
        assert first.wait(IN_TIME) == 1, first.log
        assert "one of 2 processes has ended: " in first.log and "Traceback" not in first.log
        assert not any(Path(f"/proc/{pid}").exists() for pid in processes)


@long_test
@pytest.mark.parametrize("seed", range(4))
def test_a_killed_process_of_four(data_bin, tmp_path, seed):
    """Random processes at random moments, several times; c10d and legacy_ddp."""
    chance = random.Random(seed)
    flags = ("--ddp-backend", ("c10d", "legacy_ddp")[seed % 2])
    together = train_together(data_bin, tmp_path / "whole", *EPOCHS, *flags, ranks=4)
    folder = tmp_path / "killed"
    for _ in range(3):
        with training(data_bin, folder, *EPOCHS, *flags, ranks=4) as ranks:
            ranks[0].await_line("begin training epoch")
            time.sleep(chance.uniform(0, 2))
            lost = chance.randrange(4)
            os.kill(ranks[lost].pid, signal.SIGKILL)
            others = [rank for rank in ranks if rank is not ranks[lost]]
            # Unless it has ended before.
            if ranks[lost].wait() == 137:
                for rank in others:
                    ends_with_one_line(rank, time.monotonic())
    log = train_together(data_bin, folder, *EPOCHS, *flags, ranks=4)
    assert last_loss(log) == pytest.approx(last_loss(together), abs=1e-4)
    expected = weights(tmp_path / "whole")
    for name, weight in weights(folder).items():
        torch.testing.assert_close(weight, expected[name], rtol=1e-4, atol=1e-4)
