"""Old versions are refused; models of fairseq 0.12.2 and 0.12.3 have the same tensors and compute the same."""

from __future__ import annotations

import importlib
import inspect
import logging
import re
import sys

import fairseq
import pytest
import torch
from fairseq.modules import SinusoidalPositionalEmbedding
from torch import nn

import tree_fairseq
from tests.nn.tiny import build, stock_flags, tiny_task
from tree_fairseq.errors import VersionError
from tree_fairseq.repairs import fairseq_versions


def tiny_transformer(seed: int = 0):
    return build(tiny_task(), *stock_flags(), arch="transformer", seed=seed)


@pytest.mark.parametrize(
    ("package", "version", "message"),
    [
        (
            torch,
            "1.12.1+cu113",
            "needs torch 2.4 or later, and torch 1.12.1.cu113 is installed: pip install 'torch>=2.4'",
        ),
        (torch, "2.3.1", "needs torch 2.4 or later, and torch 2.3.1 is installed"),
        (fairseq, "0.10.2", "needs fairseq 0.12.2 or later, and fairseq 0.10.2 is installed"),
        (fairseq, "0.12.1", "needs fairseq 0.12.2 or later"),
    ],
)
def test_old_versions_are_refused_in_one_sentence(monkeypatch, package, version, message):
    monkeypatch.setattr(package, "__version__", version)
    with pytest.raises(VersionError, match=message) as caught:
        tree_fairseq.register()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", ["2.4.0", "2.5.1+cu124", "2.13.0+cpu", "2.14.0a0+git1234", "3.0"])
def test_newer_torch_is_taken(monkeypatch, caplog, version):
    monkeypatch.setattr(torch, "__version__", version)
    fairseq_versions.require_versions()
    assert not caplog.records


@pytest.mark.parametrize(
    ("version", "is_known"),
    [("0.12.2", True), ("0.12.3.1", True), ("0.12.3", True), ("0.13.0", False), ("1.0.0a0+3c1f4a2", False)],
)
def test_unknown_versions_of_fairseq_are_warned_of(monkeypatch, caplog, version, is_known):
    monkeypatch.setattr(fairseq, "__version__", version)
    with caplog.at_level(logging.WARNING):
        fairseq_versions.require_versions()
    assert [f"fairseq {version} may have changed" in record.getMessage() for record in caplog.records] == [True] * (
        not is_known
    )


def test_a_stock_model_has_the_tensors_of_0_12_3():
    names = set(tiny_transformer().state_dict())
    own = {name for name in names if name.startswith("encoder.layers.0.")}
    assert {name.removeprefix("encoder.layers.0.").rpartition(".")[0] for name in own} == {
        *(f"self_attn.{part}_proj" for part in ("q", "k", "v", "out")),
        *("self_attn_layer_norm", "fc1", "fc2", "final_layer_norm"),
    }
    assert not [name for name in names if "_float_tensor" in name or "embed_positions" in name]
    assert {name for name, _ in tiny_transformer().named_parameters()} <= names


def test_checkpoints_with_the_tensors_of_0_12_2_load():
    """Also those that fairseq 0.12.2 saved without this plugin."""
    model, other = tiny_transformer(), tiny_transformer(seed=1)
    state = model.state_dict()
    attention, layer = "encoder.layers.0.self_attn.", "encoder.layers.0."
    written = {
        **state,
        **{f"{side}.embed_positions._float_tensor": torch.tensor([float("nan")]) for side in ("encoder", "decoder")},
    }
    if fairseq_versions.HAS_COPIES:
        width = state[f"{attention}q_proj.weight"].size(0)
        written[f"{layer}in_proj_weight"] = torch.zeros(3 * width, width)
        written[f"{layer}out_proj_bias"] = torch.zeros(width)
    other.load_state_dict(written, strict=True)
    assert all(torch.equal(other.state_dict()[name], tensor) for name, tensor in state.items())


def test_sinusoidal_positions_ignore_what_old_versions_saved():
    positions = SinusoidalPositionalEmbedding(8, padding_idx=1, init_size=12)
    assert positions.state_dict() == {}
    positions.load_state_dict({"weights": torch.zeros(12, 8), "_float_tensor": torch.zeros(1)})
    assert positions.weights.abs().sum() > 0


def test_layers_without_copies_are_left_alone(monkeypatch):
    monkeypatch.setattr(fairseq_versions, "HAS_COPIES", False)
    assert fairseq_versions.without_copies(len) is len and fairseq_versions.load_without_copies(len) is len


class LayerOfOfficialFairseq(nn.Module):
    """Has copies of its weights, and enters them into what it loads, as a layer of 0.12.2 does."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 2)
        for name in fairseq_versions._COPIES:
            setattr(self, name, nn.Parameter(torch.zeros(2)))
        self.can_use_fastpath = True

    def _load_from_state_dict(self, state_dict, prefix, *args):
        state_dict[f"{prefix}in_proj_weight"] = torch.zeros(2)
        super()._load_from_state_dict(state_dict, prefix, *args)


def test_a_layer_loses_its_copies(monkeypatch):
    monkeypatch.setattr(fairseq_versions, "HAS_COPIES", True)
    layer = LayerOfOfficialFairseq
    written = layer().state_dict()
    monkeypatch.setattr(
        layer, "_load_from_state_dict", fairseq_versions.load_without_copies(layer._load_from_state_dict)
    )
    monkeypatch.setattr(layer, "__init__", fairseq_versions.without_copies(layer.__init__))
    mended = layer()
    assert set(mended.state_dict()) == {"fc1.weight", "fc1.bias"} and not mended.can_use_fastpath
    mended.load_state_dict(written)
    assert torch.equal(mended.fc1.weight, written["fc1.weight"])


def test_transformers_still_imports_any_torchaudio():
    """``stand_in_for_broken_torchaudio`` can go when this fails."""
    pytest.importorskip("transformers")
    found = inspect.getsource(importlib.import_module("transformers.utils.import_utils"))
    assert re.search(r"_is_package_available\(\"torchaudio\"", found)


def test_a_broken_torchaudio_is_replaced(monkeypatch):
    def broken(name):
        raise OSError("made for another torch")

    monkeypatch.setitem(sys.modules, "torchaudio", None)
    monkeypatch.setattr(fairseq_versions.importlib, "import_module", broken)
    fairseq_versions.stand_in_for_broken_torchaudio()
    assert sys.modules["torchaudio"].__spec__.name == "torchaudio"
