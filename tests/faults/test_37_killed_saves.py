"""Averaging, exporting, releasing and saving are killed at any file operation; a rerun gives the same bytes.

Preprocessing and annotating are in test_13_killed_preprocess. With ``TREE_FAIRSEQ_ALL_KILLS=1`` every operation is a
moment to be killed at, otherwise a few of them are.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Callable

import pytest
import torch

from tests.data_bin.corpora import in_child
from tests.end_to_end.fixtures import train
from tests.faults.test_13_killed_preprocess import kill_at
from tests.faults.test_14_disk_full import limit_file_size
from tests.fork_server import import_optimisers
from tree_fairseq.commands import average, export, release

ALL = os.environ.get("TREE_FAIRSEQ_ALL_KILLS", "0") != "0"


def moments_of(action: Callable[[], object], folder: Path, reset: Callable[[], None]) -> list[int]:
    """The moments to try: how often an action touches a folder, or a few of these numbers."""
    total = 0
    while in_child(action, lambda: kill_at(total, folder)) != 0:
        reset()
        total += 1 if ALL else 4
    reset()
    return list(range(total)) if ALL else sorted({0, 1, total // 2, max(0, total - 5), max(0, total - 2)})


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("command", ["average", "export", "release"])
def test_a_command_at_any_moment(trained, tmp_path, command):
    output = tmp_path / "output"
    if command == "release":
        pytest.importorskip("safetensors")

    def action() -> None:
        if command == "average":
            inputs = [str(trained.folder / name) for name in ("checkpoint2.pt", "checkpoint1.pt")]
            status = average.main([*inputs, "--output", str(output / "average.pt")])
        elif command == "export":
            status = export.main([str(trained.data), "--split", "test", "--output", str(output / "trees")])
        else:
            status = release.main([str(trained.data), str(trained.best), "--output", str(output)])
        assert not status

    def reset() -> None:
        shutil.rmtree(output, ignore_errors=True)
        if command != "release":
            output.mkdir()

    reset()
    assert in_child(action) == 0
    expected = contents(output)
    reset()
    for moment in moments_of(action, output, reset):
        reset()
        assert in_child(action, lambda: kill_at(moment, output)) in ("killed", 0)
        # Nothing is half-written under a final name.
        for name, content in contents(output).items() if output.exists() else ():
            assert name.endswith(".tmp") or content == expected[name], (moment, name)
        if command == "release":
            shutil.rmtree(output, ignore_errors=True)
        assert in_child(action) == 0
        found = contents(output)
        assert {name: found[name] for name in expected} == expected, moment


def test_training_at_any_moment_of_its_saves(trained, tmp_path):
    """The killed training goes on, and its weights are in the end those of the unbroken one."""
    folder = tmp_path / "checkpoints"

    def action() -> None:
        train(trained.data, folder, "--max-update", 4, "--save-interval-updates", 2, "--keep-interval-updates", 1)

    def reset() -> None:
        shutil.rmtree(folder, ignore_errors=True)

    import_optimisers()
    assert in_child(action) == 0
    expected = torch.load(folder / "checkpoint_last.pt", weights_only=True)["model"]
    reset()
    for moment in range(400) if ALL else (9, 21):
        reset()
        if in_child(action, lambda: kill_at(moment, folder)) == 0:
            break
        for path in folder.glob("*.pt"):
            torch.load(path, weights_only=True)  # whole
        assert in_child(action) == 0
        found = torch.load(folder / "checkpoint_last.pt", weights_only=True)["model"]
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_a_checkpoint_without_room(trained, tmp_path, monkeypatch):
    folder = tmp_path / "checkpoints"
    monkeypatch.setattr("fairseq.checkpoint_utils.time.sleep", lambda seconds: None)
    assert in_child(lambda: train(trained.data, folder, "--max-update", 2), lambda: limit_file_size(100_000)) != 0
    assert not list(folder.glob("*.pt"))
    assert in_child(lambda: train(trained.data, folder, "--max-update", 2)) == 0
    assert (folder / "checkpoint_last.pt").exists()
