"""Training that was interrupted in the middle of an epoch ends where the unbroken one did."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import torch
from fairseq.data.iterators import EpochBatchIterator
from torch.utils.data import TensorDataset

from tests.end_to_end.fixtures import train

WARNING = "the checkpoint was saved after"


def valid_losses(log: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"valid on 'valid' subset \| loss ([\d.]+)", log)]


def stats(log: str, epoch: int) -> dict[str, float]:
    """What is printed at the end of an epoch, less times and speeds."""
    line = re.search(rf"\| train \| (epoch 0*{epoch} \|.*)", log)[1]
    found = dict(re.findall(r"(loss|nll_loss|ppl|gnorm|num_updates|lr) ([\d.]+)", line))
    return {name: float(value) for name, value in found.items()}


def interrupted(trained, folder: Path, checkpoint: str) -> Path:
    """A folder in which a training ended with a certain checkpoint."""
    folder.mkdir()
    shutil.copy(trained.folder / checkpoint, folder / "checkpoint_last.pt")
    return folder


@pytest.mark.parametrize("checkpoint", ["checkpoint_1_3.pt", "checkpoint_2_6.pt", "checkpoint2.pt"])
def test_the_end_is_that_of_an_unbroken_run(trained, tmp_path, checkpoint):
    folder = interrupted(trained, tmp_path / "resumed", checkpoint)
    resumed = train(trained.data, folder, "--max-epoch", 4, "--save-interval-updates", 3)
    assert "Loaded checkpoint" in resumed.log and WARNING not in resumed.log
    for epoch in (3, 4):
        assert stats(resumed.log, epoch) == pytest.approx(stats(trained.log, epoch), rel=1e-4)
    assert valid_losses(resumed.log)[-1] == pytest.approx(valid_losses(trained.log)[-1], abs=1e-4)
    states = [torch.load(path / "checkpoint4.pt", weights_only=True) for path in (folder, trained.folder)]
    for name, weight in states[0]["model"].items():
        torch.testing.assert_close(weight, states[1]["model"][name], rtol=1e-4, atol=1e-4)
    assert states[0]["extra_state"]["train_iterator"] == states[1]["extra_state"]["train_iterator"]


@pytest.mark.parametrize("max_tokens", [160, 1600], ids=["more batches", "fewer batches"])
def test_other_batches_are_noticed(trained, tmp_path, max_tokens):
    """3 of 5 batches were done; fairseq would skip 3 of the new ones, or find that there are none left."""
    folder = interrupted(trained, tmp_path / "resumed", "checkpoint_1_3.pt")
    resumed = train(trained.data, folder, "--max-epoch", 2, "--max-tokens", max_tokens, "--no-save")
    told = re.search(
        WARNING + r" 3 of (\d+) batches of epoch 1, which has (\d+) .* going on after (\d+) of them", resumed.log
    )
    before, now, start = map(int, told.groups())
    assert before != now and start == min(3 * now // before, now - 1)
    per_epoch = [stats(resumed.log, epoch)["num_updates"] for epoch in (1, 2)]
    assert per_epoch == [3 + now - start, 3 + now - start + now]


@pytest.mark.parametrize(("processes", "start"), [(2, 1), (3, 1)])
def test_another_number_of_processes_is_noticed(processes, start, caplog):
    """Each process has its share of the batches, so there are fewer for each."""

    def batches(shards: int) -> EpochBatchIterator:
        return EpochBatchIterator(TensorDataset(torch.arange(10)), list, [[n] for n in range(5)], num_shards=shards)

    alone = batches(1)
    epoch = alone.next_epoch_itr()
    assert [len(next(epoch)) for _ in range(3)] == [1, 1, 1]
    state = alone.state_dict()
    together = batches(processes)
    together.load_state_dict(state)
    assert together.iterations_in_epoch == start
    assert f"{WARNING} 3 of 5 batches of epoch 1, which has {len(together)}" in caplog.text

    caplog.clear()
    again = batches(1)
    again.load_state_dict(state)
    assert again.iterations_in_epoch == 3 and not caplog.text
    old = {
        name: value for name, value in state.items() if name != "batches"
    }  # of a checkpoint that another program wrote
    batches(1).load_state_dict(old)
    assert not caplog.text


def test_between_epochs_other_batches_need_no_word(trained, tmp_path):
    folder = interrupted(trained, tmp_path / "resumed", "checkpoint1.pt")
    resumed = train(trained.data, folder, "--max-epoch", 2, "--max-tokens", 160, "--no-save")
    assert WARNING not in resumed.log and "Loaded checkpoint" in resumed.log
