"""Checkpoints load with what fairseq stores in them; those that are damaged or could run code are in ``faults``."""

from __future__ import annotations

import argparse
import os
import pickle
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed_utils
from fairseq.trainer import Trainer
from omegaconf import DictConfig, OmegaConf

from tree_fairseq.errors import CheckpointError, DictionaryMismatchError
from tree_fairseq.repairs import checkpoint_loading
from tree_fairseq.support.python_versions import environment

STATE = {
    "args": None, "model": {}, "best": np.float64(1.5),
    "cfg": {"model": argparse.Namespace(arch="transformer"), "task": {"data": "runs(1)"}},
    "optimizer_history": [{"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 3}],
    "extra_state": {"train_iterator": {"epoch": 1}}, "task_state": {"hash": "abc"},
}  # fmt: skip


def test_checkpoints_load_with_fairseqs_own_classes(tmp_path):
    torch.save(STATE, tmp_path / "checkpoint_last.pt")
    state = checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "checkpoint_last.pt"))
    assert state["best"] == 1.5 and state["cfg"]["model"].arch == "transformer"
    (tmp_path / "checkpoint_last.pt").rename(tmp_path / "checkpoint1.pt")
    (tmp_path / "checkpoint_last.pt").write_bytes(b"PK")
    assert checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "checkpoint_last.pt"))["best"] == 1.5


def test_torch_still_refuses_classes_in_fairseqs_checkpoints(tmp_path):
    allowed = torch.serialization.get_safe_globals()
    path = tmp_path / "checkpoint.pt"
    torch.save(STATE, path)
    try:
        torch.serialization.clear_safe_globals()
        with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
            torch.load(path, weights_only=True)
    finally:
        torch.serialization.add_safe_globals(allowed)
    assert torch.load(path, weights_only=True)["cfg"]["model"].arch == "transformer"


@pytest.mark.parametrize("core", ["core", "_core"])
def test_numbers_that_an_earlier_or_later_numpy_saved(tmp_path, core):
    """numpy 2 has its functions in ``numpy._core``, numpy 1 in ``numpy.core``; checkpoints name them so."""
    path = tmp_path / "checkpoint.pt"
    # The older format is pickles without checksums, in which a name can be replaced.
    torch.save({"best": np.float64(1.5), "counts": np.arange(3)}, path, _use_new_zipfile_serialization=False)
    renamed = f"numpy.{core}.multiarray".encode()
    path.write_bytes(re.sub(rb"numpy\._?core\.multiarray", renamed, path.read_bytes()))
    assert renamed in path.read_bytes()
    loaded = torch.load(path, weights_only=True)
    assert loaded["best"] == 1.5 and loaded["counts"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("before", [None, "0"])
def test_torch_before_2_6_loads_weights_only(monkeypatch, before):
    name = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    monkeypatch.delenv(name, raising=False)
    if before:
        monkeypatch.setenv(name, before)
    for is_needed in (True, False):
        with environment(name, is_needed):
            assert os.environ.get(name) == ("1" if is_needed else before)
        assert os.environ.get(name) == before


@pytest.mark.parametrize("text", ["[(512, 3)] * 20", "(0.9, 0.98)", "{'beam': 5}", "data(1", "True", "a house (old)"])
def test_settings_that_call_nothing_are_loaded(text):
    state = {"cfg": OmegaConf.create({"model": {"layers": text}}), "args": None}
    checkpoint_loading._refuse_code(state, "a.pt")


@pytest.mark.parametrize("text", ["[print('a')]", "().__class__.mro()", "[f() for f in x]", b"[(8, 3)]"])
def test_settings_that_call_something_are_refused(text):
    with pytest.raises(CheckpointError, match="could run code"):
        checkpoint_loading._refuse_code({"args": argparse.Namespace(layers=[text])}, "a.pt")


class StrictTask:
    """Refuses the state of a checkpoint."""

    def require_same_data(self, state: dict, fine_tuning: bool) -> None:
        raise DictionaryMismatchError(f"{state['hash']} {fine_tuning}")


@pytest.mark.parametrize("new_format", [True, False])
@pytest.mark.parametrize(("save_dir", "way_out"), [("", "; a new training needs another --save-dir"), ("other", "")])
def test_training_compares_its_data_with_the_checkpoint(tmp_path, new_format, save_dir, way_out):
    path = str(tmp_path / "checkpoint.pt")
    torch.save(STATE, path, _use_new_zipfile_serialization=new_format)
    cfg = SimpleNamespace(checkpoint=SimpleNamespace(save_dir=str(tmp_path / save_dir)))
    with pytest.raises(DictionaryMismatchError, match=f"{re.escape(path)}: abc True{way_out}$"):
        Trainer.load_checkpoint(SimpleNamespace(task=StrictTask(), cfg=cfg), path, reset_optimizer=True)


def test_a_second_process_receives_a_checkpoint(monkeypatch):
    """The options in it, which torch 2.6 and later refuse to load, are none of torch's."""
    sent: list[torch.Tensor] = []
    monkeypatch.setattr(distributed_utils, "get_rank", lambda group: rank)
    monkeypatch.setattr(
        distributed_utils,
        "broadcast",
        lambda tensor, src, group: sent.append(tensor.clone()) if rank == src else tensor.copy_(sent.pop(0)),
    )
    for rank in (0, 1):
        received = distributed_utils._broadcast_object_slow(
            {"cfg": DictConfig({"seed": 1})} if rank == 0 else None, 0, None, torch.device("cpu")
        )
    assert received == {"cfg": {"seed": 1}} and not sent
