"""Training that was interrupted in the middle of an epoch ends where the unbroken one did."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import torch

from tests.end_to_end.commands import logged
from tests.end_to_end.fixtures import train


def stats(log: str, epoch: int) -> dict[str, float]:
    line = re.search(rf"\| train \| (epoch 0*{epoch} \|.*)", log)[1]
    found = dict(re.findall(r"(loss|nll_loss|ppl|gnorm|num_updates|lr) ([\d.]+)", line))
    return {name: float(value) for name, value in found.items()}


def interrupted(trained, folder: Path, checkpoint: str) -> Path:
    folder.mkdir()
    shutil.copy(trained.folder / checkpoint, folder / "checkpoint_last.pt")
    return folder


@pytest.mark.parametrize("checkpoint", ["checkpoint_1_3.pt", "checkpoint_2_6.pt", "checkpoint2.pt"])
def test_the_end_is_that_of_an_unbroken_run(trained, tmp_path, checkpoint):
    folder = interrupted(trained, tmp_path / "resumed", checkpoint)
    resumed = train(trained.data, folder, "--max-epoch", 4, "--save-interval-updates", 3)
    assert "Loaded checkpoint" in resumed.log
    for epoch in (3, 4):
        assert stats(resumed.log, epoch) == pytest.approx(stats(trained.log, epoch), rel=1e-4)
    assert logged("loss", resumed.log)[-1] == pytest.approx(logged("loss", trained.log)[-1], abs=1e-4)
    states = [torch.load(path / "checkpoint4.pt", weights_only=True) for path in (folder, trained.folder)]
    for name, weight in states[0]["model"].items():
        torch.testing.assert_close(weight, states[1]["model"][name], rtol=1e-4, atol=1e-4)
    assert states[0]["extra_state"]["train_iterator"] == states[1]["extra_state"]["train_iterator"]


def test_other_batches_between_epochs(trained, tmp_path):
    folder = interrupted(trained, tmp_path / "resumed", "checkpoint1.pt")
    resumed = train(trained.data, folder, "--max-epoch", 2, "--max-tokens", 160, "--no-save")
    assert "Loaded checkpoint" in resumed.log
