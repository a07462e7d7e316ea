"""The bias by distance in the encoders of all models that offer it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from fairseq.modules import LayerDropModuleList
from torch import nn
from torch.nn import functional

from tests.nn.tiny import build, net_input, pairs, stock_flags, tiny_task
from tree_fairseq.errors import InputError
from tree_fairseq.nn import extended_transformer  # noqa: F401  (registers the architectures)
from tree_fairseq.nn.distance_bias import DistanceAttention, DistanceBias, DistanceBiasConfig, give_rows, leaf_distances
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.tree_transformer.model import INITIAL_ANCESTOR_BIAS
from tree_fairseq.treeformer import model  # noqa: F401

TASK = tiny_task()
LENGTHS = (7, 1, 4, 11, 2)
BASELINE = "transformer_distance_bias_tiny"
ARCHITECTURES = (BASELINE, "tree_transformer_tiny", "treeformer_tiny", "source_encoder_transformer_tiny")
MODELS = [(arch, "linear") for arch in ARCHITECTURES] + [("tree_transformer_tiny", kind) for kind in ("tree", "both")]


def tables(model) -> dict[str, torch.nn.Parameter]:
    return {name: weight for name, weight in model.named_parameters() if ".distance_bias." in name}


def fill(model, seed: int = 3) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for table in tables(model).values():
            table.copy_(torch.randn(table.shape, generator=generator))


def inputs(model, batch, **options) -> dict:
    """The arguments of a model: trees only if it reads them, as a task gives them."""
    given = net_input(batch, **options)
    return {name: value for name, value in given.items() if name != "source_spans" or name in model.tree_inputs}


def logits(model, batch, **options) -> torch.Tensor:
    with torch.no_grad():
        return model(**inputs(model, batch, **options))[0]


def direct(attention, states, padding, rows: dict) -> torch.Tensor:
    """Self-attention word by word: softmax over j of q_i k_j / sqrt(d) + the tables' entries for i and j."""
    length, batch, width = states.shape
    heads, bias = attention.num_heads, attention.distance_bias
    states_after = []
    for b in range(batch):
        query, key, value = (
            functional.linear(states[:, b], part.weight, part.bias).view(length, heads, -1)
            for part in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        for i in range(length):
            outputs = []
            for h in range(heads):
                scores, seen = [], [j for j in range(length) if not padding[b, j]]
                for j in seen:
                    score = query[i, h] @ key[j, h] / (width // heads) ** 0.5
                    for name, table in bias.named_parameters():
                        own = rows[name]
                        score = score + table[own[length - 1 + j - i] if name == "linear" else own[b, i, j], h]
                    scores.append(score)
                outputs.append(torch.stack(scores).softmax(0) @ value[seen, h])
            states_after.append(attention.out_proj(torch.cat(outputs)))
    return torch.stack(states_after).view(batch, length, width).transpose(0, 1)


@pytest.mark.parametrize("kind", ("linear", "tree", "both"))
def test_attention_equals_attention_word_by_word(kind):
    torch.manual_seed(1)
    attention = DistanceAttention(8, 2, DistanceBiasConfig(distance_bias=kind)).double()
    fill(attention)
    batch = net_input(pairs(TASK, 6, 3, 1))
    tokens = batch["src_tokens"]
    padding = tokens.eq(1)
    trees = TreeBatch.from_net_input(batch["source_spans"], tokens, 1)
    linear = torch.arange(1 - tokens.size(1), tokens.size(1))
    rows = {"linear": linear.abs(), "tree": leaf_distances(trees.covers(), 16)}
    attention.distance_bias.given = rows
    states = torch.randn(*tokens.t().shape, 8, dtype=torch.float64, requires_grad=True)
    weights = torch.randn_like(states)
    weights[padding.t()] = 0
    results = []
    for output in (attention(states, states, states, padding)[0], direct(attention, states, padding, rows)):
        gradients = torch.autograd.grad((output * weights).sum(), [states, *attention.parameters()])
        results.append([output * weights, *gradients])
    for fast, slow in zip(*results):
        torch.testing.assert_close(fast, slow)


@pytest.mark.parametrize("arch, kind", MODELS)
def test_tables_of_zeros_change_nothing(arch, kind):
    if arch == BASELINE:
        plain = build(TASK, *stock_flags(), arch="source_encoder_transformer_tiny")
    else:
        plain = build(TASK, arch=arch)
    model, batch = build(TASK, "--distance-bias", kind, arch=arch), pairs(TASK, *LENGTHS)
    assert len(tables(model)) == 2 * (1 + (kind == "both")) and not any(table.any() for table in tables(model).values())
    # All other weights were drawn alike.
    own = model.state_dict()
    assert all(torch.equal(own[name], weight) for name, weight in plain.state_dict().items())
    torch.testing.assert_close(logits(model, batch), logits(plain, batch), rtol=1e-6, atol=1e-6)
    fill(model)
    assert not torch.allclose(logits(model, batch), logits(plain, batch), atol=1e-3)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_sentences_are_independent_of_their_batch(arch):
    reads_trees = arch == "tree_transformer_tiny"
    model = build(TASK, "--distance-bias", "both" if reads_trees else "linear", arch=arch)
    batch = pairs(TASK, *LENGTHS)
    assert len(tables(model)) == (4 if reads_trees else 2)
    fill(model)
    for left_pad in (True, False):
        together = logits(model, batch, left_pad=left_pad, width=14)
        for row, pair in enumerate(batch):
            alone = logits(model, [pair])[0]
            torch.testing.assert_close(together[row, : len(alone)], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("flags", [(), ("--no-subtree-mask",), ("--leaves-to-ancestors",)])
def test_a_bias_of_the_tree_transformer_is_for_leaves_alone(flags):
    model, batch = build(TASK, "--distance-bias", "both", *flags), pairs(TASK, *LENGTHS)
    given = inputs(model, batch)
    with torch.no_grad():
        model.encoder(**{name: given[name] for name in ("src_tokens", "src_lengths", "source_spans")})
    fill(model)
    attention = model.encoder.layers[0].self_attn
    structure = model.encoder(**{name: value for name, value in given.items() if "prev" not in name})["tree_structure"][
        0
    ]
    first = attention.bias_of_leaves(structure.masks[0]) - structure.masks[0].bias
    num_leaves = structure.num_leaves
    leaves = first[:, :, :num_leaves, :num_leaves]
    real = ~structure.padding[:, None, None, :num_leaves].expand_as(leaves)
    expected = attention.distance_bias().expand_as(leaves)
    torch.testing.assert_close(leaves[real], expected[real])
    of_nodes = first[..., num_leaves:].nan_to_num()  # -inf minus -inf is nan
    assert not first[:, :, num_leaves:].nan_to_num().any()
    if "--leaves-to-ancestors" in flags:
        assert set(of_nodes.unique().tolist()) == {INITIAL_ANCESTOR_BIAS, 0.0}
    else:
        assert not of_nodes.any()


@pytest.mark.parametrize("arch, kind", MODELS)
def test_checkpoints_without_tables_load(arch, kind):
    plain = build(TASK, arch=arch if arch != BASELINE else "source_encoder_transformer_tiny")
    model, batch = build(TASK, "--distance-bias", kind, arch=arch, seed=1), pairs(TASK, *LENGTHS)
    model.load_state_dict(plain.state_dict())
    torch.testing.assert_close(logits(model, batch), logits(plain, batch), rtol=1e-6, atol=1e-6)


def test_half_precision_keeps_the_gradients_of_frequent_distances():
    bias = DistanceBias(1, DistanceBiasConfig(distance_bias="linear")).half()
    bias.given = {"linear": torch.zeros(127, dtype=torch.int32)}
    bias().half().sum().backward()
    # Sums of ones in half precision stop at 2048.
    assert bias.linear.grad[0].item() == 64 * 64


def test_the_baseline_without_a_bias_is_refused():
    with pytest.raises(InputError, match="is fairseq's transformer"):
        build(TASK, "--distance-bias", "none", arch=BASELINE)


@pytest.mark.parametrize("flag", ("--distance-bias tree", "--distance-bias both"))
@pytest.mark.parametrize("arch", [arch for arch in ARCHITECTURES if arch != "tree_transformer_tiny"])
def test_paths_in_trees_are_for_the_tree_transformer(arch, flag):
    with pytest.raises(InputError, match=f"{flag} measures paths in trees, which the encoder '.*' does not read"):
        build(TASK, *flag.split(), arch=arch)


def test_layers_that_may_be_dropped_have_the_rows_of_the_batch():
    attention = [SimpleNamespace(distance_bias=SimpleNamespace(given=None)) for _ in range(8)]
    layers = LayerDropModuleList(p=0.9)
    for own in attention:
        layer = nn.Module()
        layer.self_attn = own
        layers.append(layer)
    give_rows(layers.train(), SimpleNamespace(distance_bias="linear"), torch.zeros(2, 5))
    assert all(own.distance_bias.given["linear"].shape == (9,) for own in attention)
