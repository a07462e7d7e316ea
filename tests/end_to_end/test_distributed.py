"""Two processes that train together on the CPU, by fairseq's own distribution."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from tests.end_to_end.commands import logged
from tests.end_to_end.ranks import train_together


def weights(path: Path) -> dict[str, torch.Tensor]:
    state = torch.load(path, weights_only=True)
    return {**state["model"], "updates": torch.tensor(state["optimizer_history"][-1]["num_updates"])}


@pytest.fixture(scope="module")
def one(data_bin, tmp_path_factory) -> tuple[str, Path]:
    """The log and the checkpoints of one process with two batches an update; three epochs of three updates."""
    folder = tmp_path_factory.mktemp("one") / "checkpoints"
    arguments = ("--update-freq", 2, "--max-epoch", 3)
    return train_together(data_bin, folder, *arguments, ranks=1), folder


def test_from_one_rank_to_two_and_back(data_bin, one, tmp_path):
    folder = tmp_path / "resumed"
    folder.mkdir()
    shutil.copy(one[1] / "checkpoint1.pt", folder / "checkpoint_last.pt")
    together = train_together(data_bin, folder, "--max-epoch", 2)
    assert "Loaded checkpoint" in together and "training on 2 devices" in together
    back = train_together(data_bin, folder, "--max-epoch", 3, "--update-freq", 2, ranks=1)
    assert "Loaded checkpoint" in back
    assert logged("loss", back)[-1] == pytest.approx(logged("loss", one[0])[-1], abs=1e-3)
    found, expected = weights(folder / "checkpoint3.pt"), weights(one[1] / "checkpoint3.pt")
    for name, weight in expected.items():
        torch.testing.assert_close(found[name], weight, rtol=1e-3, atol=1e-3)
