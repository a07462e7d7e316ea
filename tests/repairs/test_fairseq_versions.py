"""Old versions are refused; models of fairseq 0.12.2 and 0.12.3 have the same tensors and compute the same."""

from __future__ import annotations

import logging

import fairseq
import pytest
import torch
from fairseq.modules import MultiheadAttention, SinusoidalPositionalEmbedding, transformer_layer
from torch import nn

import tree_fairseq
from tests.nn.tiny import build, stock_flags, tiny_task
from tree_fairseq.errors import VersionError
from tree_fairseq.repairs import fairseq_versions

HAS_FAST_PATH = hasattr(transformer_layer.TransformerEncoderLayerBase, "can_use_fastpath")
needs_fast_path = pytest.mark.skipif(not HAS_FAST_PATH, reason="only fairseq 0.12.2 has the fast path")
PADDED = torch.tensor([[1, 1, 5, 6, 2], [7, 8, 9, 10, 2]])


def tiny_transformer(seed: int = 0):
    """fairseq's own transformer, in evaluation mode."""
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
    if HAS_FAST_PATH:
        width = state[f"{attention}q_proj.weight"].size(0)
        written[f"{layer}in_proj_weight"] = torch.zeros(3 * width, width)
        written[f"{layer}out_proj_bias"] = torch.zeros(width)
    other.load_state_dict(written, strict=True)
    assert all(torch.equal(other.state_dict()[name], tensor) for name, tensor in state.items())


@pytest.mark.parametrize("source", [PADDED, PADDED.flip(1), PADDED[1:]], ids=["left", "right", "none"])
def test_the_fast_path_computes_what_the_layers_compute(source, monkeypatch):
    """fairseq pads sources on the left; torch wants to know the kind of such a mask."""
    model, loaded = tiny_transformer(), tiny_transformer(seed=1)
    loaded.load_state_dict(model.state_dict())
    calls = []
    if HAS_FAST_PATH:
        forward = torch._transformer_encoder_layer_fwd
        monkeypatch.setattr(torch, "_transformer_encoder_layer_fwd", lambda *args: calls.append(args) or forward(*args))
    with torch.no_grad():
        slow, fast = (one.encoder(source)["encoder_out"][0] for one in (model, loaded))
    assert bool(calls) == HAS_FAST_PATH
    words = source.ne(1).T
    torch.testing.assert_close(fast[words], slow[words], atol=1e-5, rtol=1e-4)


@needs_fast_path
def test_the_copies_follow_the_weights_and_are_not_trained():
    model = tiny_transformer()
    layer = model.encoder.layers[0]
    assert layer.in_proj_weight is None and layer.can_use_fastpath
    state = {name: torch.randn_like(tensor) for name, tensor in model.state_dict().items()}
    model.load_state_dict(state)
    own = "encoder.layers.0.self_attn."
    assert torch.equal(layer.in_proj_bias, torch.cat([state[f"{own}{part}_proj.bias"] for part in "qkv"]))
    assert not layer.in_proj_weight.requires_grad
    assert "in_proj_weight" not in dict(layer.named_parameters(recurse=False))


@needs_fast_path
def test_another_attention_takes_the_slow_path():
    layer = tiny_transformer().encoder.layers[0]

    class OtherAttention(MultiheadAttention):
        """An attention of a plugin."""

    layer.self_attn.__class__ = OtherAttention
    assert not layer.can_use_fastpath


def test_sinusoidal_positions_ignore_what_old_versions_saved():
    positions = SinusoidalPositionalEmbedding(8, padding_idx=1, init_size=12)
    assert positions.state_dict() == {}
    positions.load_state_dict({"weights": torch.zeros(12, 8), "_float_tensor": torch.zeros(1)})
    assert positions.weights.abs().sum() > 0


def test_another_fairseq_is_left_alone(monkeypatch):
    class Layer(nn.Module):
        """A layer of a version without the fast path."""

    monkeypatch.setattr(transformer_layer, "TransformerEncoderLayerBase", Layer)
    before = dict(vars(Layer))
    fairseq_versions.mend_official_fairseq()
    assert dict(vars(Layer)) == before
