"""Averaging checkpoints: values, choice of files, refusals, atomic writing."""

from __future__ import annotations

import argparse

import pytest
import torch

from tree_fairseq.commands.average import average_weights, last_checkpoints, main


def save(path, value, names=("w", "b"), **more):
    """A checkpoint as fairseq writes it, every weight filled with ``value``."""
    model = {name: torch.full((2, 3), float(value)) for name in names}
    model["tied"] = model[names[0]]
    model["half"] = torch.full((2,), float(value), dtype=torch.float16)
    model["steps"] = torch.tensor([value])
    state = {
        "model": model,
        "args": argparse.Namespace(arch="x"),
        "last_optimizer_state": {"m": torch.zeros(9)},
        **more,
    }
    torch.save(state, path)


def test_mean_of_the_last_epochs(tmp_path):
    for epoch in range(1, 12):
        save(tmp_path / f"checkpoint{epoch}.pt", epoch, optimizer_history=[{"num_updates": 10 * epoch}])
    save(tmp_path / "checkpoint_best.pt", 99)
    save(tmp_path / "checkpoint_2_500.pt", 99)
    output = tmp_path / "average.pt"
    assert main([str(tmp_path), "--last-epochs", "3", "--output", str(output)]) == 0
    state = torch.load(output, weights_only=True)
    assert torch.equal(state["model"]["w"], torch.full((2, 3), 10.0))  # 9, 10, 11: by number, not by name
    assert torch.equal(state["model"]["tied"], state["model"]["w"])
    assert state["model"]["half"].dtype == torch.float16
    assert state["model"]["steps"].item() == 11  # integers come from the newest
    assert state["optimizer_history"] == [{"num_updates": 110}]
    assert state["last_optimizer_state"] is None
    assert not [path for path in tmp_path.iterdir() if path.suffix not in (".pt",)]


def test_choice_of_files(tmp_path, caplog):
    for name in ("checkpoint1.pt", "checkpoint2.pt", "checkpoint10.pt", "checkpoint_1_50.pt", "checkpoint_2_100.pt"):
        save(tmp_path / name, 1)
    assert [path.name for path in last_checkpoints(tmp_path, 2)] == ["checkpoint10.pt", "checkpoint2.pt"]
    assert len(last_checkpoints(tmp_path, 7)) == 3
    assert "3 of the 7" in caplog.text
    output = tmp_path / "average.pt"
    assert main([str(tmp_path), "--last-updates", "2", "--output", str(output)]) == 0


def test_sum_is_formed_in_double_precision(tmp_path):
    big, small = 2.0**24, 1.0
    paths = []
    for number, value in enumerate([big, *[small] * 7]):
        paths.append(tmp_path / f"checkpoint{number}.pt")
        torch.save({"model": {"w": torch.tensor([value])}}, paths[-1])
    assert (
        average_weights(paths)["w"].item() == torch.tensor((big + 7) / 8).item()
    )  # in single precision each 1 would be lost


def test_different_models_are_refused(tmp_path, caplog):
    save(tmp_path / "a.pt", 1)
    save(tmp_path / "b.pt", 1, names=("w", "c"))
    output = tmp_path / "average.pt"
    assert main([str(tmp_path / "a.pt"), str(tmp_path / "b.pt"), "--output", str(output)]) == 1
    assert "different parameters" in caplog.text and not output.exists()


def test_torn_and_foreign_files_are_named(tmp_path, caplog):
    save(tmp_path / "checkpoint1.pt", 1)
    content = (tmp_path / "checkpoint1.pt").read_bytes()
    (tmp_path / "checkpoint2.pt").write_bytes(content[: len(content) // 2])
    assert main([str(tmp_path), "--last-epochs", "2", "--output", str(tmp_path / "average.pt")]) == 1
    assert "checkpoint2.pt cannot be read" in caplog.text
    torch.save([1, 2], tmp_path / "checkpoint2.pt")
    assert main([str(tmp_path), "--last-epochs", "2", "--output", str(tmp_path / "average.pt")]) == 1
    assert "is not a checkpoint of fairseq" in caplog.text


@pytest.mark.parametrize("arguments", [["--last-epochs", "0"], ["--last-epochs", "2", "--last-updates", "2"], []])
def test_arguments_that_say_nothing_are_refused(tmp_path, arguments):
    with pytest.raises(SystemExit):
        main([str(tmp_path), "--output", str(tmp_path / "a.pt"), *arguments])


def test_empty_folder_is_named(tmp_path, caplog):
    assert main([str(tmp_path), "--last-epochs", "2", "--output", str(tmp_path / "a.pt")]) == 1
    assert "has no checkpoint whose name matches" in caplog.text
