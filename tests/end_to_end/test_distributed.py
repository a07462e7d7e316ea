"""Two processes that train together on the CPU, by fairseq's own distribution."""

from __future__ import annotations

import re
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from tests.end_to_end.commands import PLUGIN, run_in_process, script
from tests.end_to_end.fixtures import TASK, train

# No dropout: each rank draws its own.
OPTIONS = ("--dropout", "0", "--max-epoch", "2")


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


def train_together(data: Path, folder: Path, *arguments: str, ranks: int = 2) -> list[subprocess.CompletedProcess]:
    """The ranks' finished processes."""
    port = free_port()
    settings = {
        "--optimizer": "adam", "--lr": "5e-3", "--lr-scheduler": "inverse_sqrt", "--warmup-updates": 8, "--seed": 7,
        "--criterion": "label_smoothed_cross_entropy", "--label-smoothing": 0.1, "--max-tokens": 320,
        "--num-workers": 0,
        "--ddp-backend": "legacy_ddp", "--distributed-init-method": f"tcp://127.0.0.1:{port}",
        "--distributed-backend": "gloo",
        "--distributed-world-size": ranks, "--arch": "tree_transformer_tiny", "--save-dir": folder,
        "--user-dir": PLUGIN, "--log-format": "simple",
    }  # fmt: skip
    command = [script("fairseq-train"), data, *TASK, "--cpu", "--distributed-no-spawn", *arguments]
    command += [part for setting in settings.items() for part in setting]
    with ThreadPoolExecutor(ranks) as pool:
        return list(pool.map(lambda rank: run_in_process([*command, "--distributed-rank", rank]), range(ranks)))


def test_two_ranks_equal_one_with_twice_the_batches(data_bin, tmp_path):
    finished = train_together(data_bin, tmp_path / "two", *OPTIONS)
    for rank in finished:
        assert rank.returncode == 0, rank.stdout
    log = finished[0].stdout
    assert "distributed init (rank 0)" in log or "distributed_world_size': 2" in log

    one = train(data_bin, tmp_path / "one", *OPTIONS, "--update-freq", 2)
    together, alone = (
        torch.load(path / "checkpoint2.pt", weights_only=True) for path in (tmp_path / "two", one.folder)
    )
    assert together["optimizer_history"][-1]["num_updates"] == alone["optimizer_history"][-1]["num_updates"] == 6
    for name, weight in alone["model"].items():
        torch.testing.assert_close(together["model"][name], weight, rtol=1e-3, atol=1e-3)
    losses = [re.findall(r"valid on 'valid' subset \| loss ([\d.]+)", text) for text in (log, one.log)]
    assert [abs(float(left) - float(right)) < 2e-3 for left, right in zip(*losses)] == [True, True]
