"""A kill in the middle of copying checkpoint_last.pt costs nothing but a warning."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
import torch

from tests.end_to_end.fixtures import train
from tree_fairseq.errors import CheckpointError
from tree_fairseq.repairs import checkpoint_loading


def cut(path: Path, keep: float) -> None:
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.truncate(int(size * keep))


def zeroed(path: Path) -> None:
    """A file of full length whose last blocks were never written."""
    size = path.stat().st_size
    cut(path, 0.5)
    with open(path, "r+b") as file:
        file.truncate(size)


TEARS = {
    "empty": lambda path: cut(path, 0),
    "a tenth": lambda path: cut(path, 0.1),
    "nearly all": lambda path: cut(path, 0.999),
    "zeros": zeroed,
}


@pytest.fixture
def folder(trained, tmp_path) -> Path:
    """Checkpoints of a training, their ages told apart by their times; a copy that is no training's is the youngest."""
    copy = tmp_path / "checkpoints"
    copy.mkdir()
    for age, name in enumerate(("checkpoint1.pt", "checkpoint2.pt", "checkpoint_last.pt", "checkpoint.avg.pt")):
        source = "checkpoint2.pt" if "last" in name else "checkpoint1.pt" if "avg" in name else name
        shutil.copy(trained.folder / source, copy / name)
        os.utime(copy / name, (1_000_000 + age, 1_000_000 + age))
    return copy


def updates(path: Path) -> int:
    return torch.load(path, weights_only=True)["optimizer_history"][-1]["num_updates"]


@pytest.mark.parametrize("tear", TEARS)
def test_the_newest_readable_checkpoint_is_found(folder, tear):
    TEARS[tear](folder / "checkpoint_last.pt")
    assert checkpoint_loading.newest_readable(folder / "checkpoint_last.pt") == folder / "checkpoint2.pt"
    TEARS[tear](folder / "checkpoint2.pt")
    assert checkpoint_loading.newest_readable(folder / "checkpoint_last.pt") == folder / "checkpoint1.pt"
    TEARS[tear](folder / "checkpoint1.pt")
    assert checkpoint_loading.newest_readable(folder / "checkpoint_last.pt") is None


def test_training_goes_on_and_says_so(trained, folder):
    done = updates(folder / "checkpoint2.pt")
    cut(folder / "checkpoint_last.pt", 0.6)
    resumed = train(trained.data, folder, "--max-epoch", 3)
    assert re.search(r"WARNING .*checkpoint_last\.pt cannot be read: .*; going on from .*checkpoint2\.pt", resumed.log)
    assert f"(epoch 3 @ {done} updates)" in resumed.log
    assert updates(folder / "checkpoint_last.pt") == done * 3 // 2


def test_with_nothing_left_training_stops(trained, folder):
    """It must not begin anew and write over what might be saved by hand."""
    for path in folder.iterdir():
        cut(path, 0.5)
    with pytest.raises(CheckpointError, match="checkpoint_last.pt cannot be read"):
        train(trained.data, folder, "--max-epoch", 3)
    assert (folder / "checkpoint_last.pt").stat().st_size < (trained.folder / "checkpoint_last.pt").stat().st_size


def test_a_checkpoint_that_was_asked_for_by_name_is_not_replaced(trained, folder):
    cut(folder / "checkpoint2.pt", 0.5)
    with pytest.raises(CheckpointError, match="checkpoint2.pt cannot be read"):
        train(trained.data, folder, "--restore-file", folder / "checkpoint2.pt", "--max-epoch", 3)
