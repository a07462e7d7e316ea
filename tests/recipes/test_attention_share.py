"""The share of attention on tree nodes, compared with sums position by position."""

from __future__ import annotations

import pytest
import torch

from examples.iwslt14_en_de.attention_share import attention_share, cross_attentions, table, watched
from tests.nn.tiny import EOS, PAD, build, net_input, pairs, stack, stock_flags, tiny_task
from tree_fairseq.errors import ScoringError


def sample(task, *lengths, left_pad=True, seed=0):
    made = pairs(task, *lengths, seed=seed)
    return {"net_input": net_input(made, left_pad), "target": stack([pair.target for pair in made], False)}


def counted_by_hand(model, batches):
    """Loops over layers, sentences, target tokens, heads and positions."""
    shares = []
    for layer in range(len(model.decoder.layers)):
        node = end = node_best = end_best = rows = 0
        for batch in batches:
            with watched(cross_attentions(model)) as weights, torch.no_grad():
                model(**batch["net_input"])
            source = batch["net_input"]["src_tokens"]
            heads, sentences, length, positions = weights[layer].shape
            for b in range(sentences):
                for t in range(length):
                    if batch["target"][b, t] == PAD:
                        continue
                    for h in range(heads):
                        row = weights[layer][h, b, t].tolist()
                        kinds = [
                            "node" if s >= source.shape[1] else "end" if source[b, s] == EOS else "word"
                            for s in range(positions)
                        ]
                        node += sum(weight for weight, kind in zip(row, kinds) if kind == "node")
                        end += sum(weight for weight, kind in zip(row, kinds) if kind == "end")
                        best = kinds[row.index(max(row))]
                        node_best += best == "node"
                        end_best += best == "end"
                        rows += 1
        shares.append((node / rows, end / rows, node_best / rows, end_best / rows))
    return shares


@pytest.mark.parametrize("left_pad", [True, False])
def test_shares_equal_loops_over_positions(left_pad):
    task = tiny_task()
    model = build(task, seed=3)
    batches = [sample(task, 5, 9, 2, left_pad=left_pad), sample(task, 7, seed=1, left_pad=left_pad)]
    shares = attention_share(model, batches, (task.source_dictionary, task.target_dictionary))
    expected = counted_by_hand(model, batches)
    assert len(shares["layers"]) == len(expected) == 2
    for layer, (node, end, node_best, end_best) in zip(shares["layers"], expected):
        assert layer["node_mass"] == pytest.approx(node, rel=1e-5)
        assert layer["end_mass"] == pytest.approx(end, rel=1e-5)
        assert layer["node_argmax"] == pytest.approx(node_best)
        assert layer["end_argmax"] == pytest.approx(end_best)
        assert layer["node_mass_of_tree"] == pytest.approx(node / (1 - end), rel=1e-5)
    assert shares["words"] == 5 + 9 + 2 + 7
    nodes = sum(
        int((b["net_input"]["source_spans"]["end"] > b["net_input"]["source_spans"]["start"]).sum()) for b in batches
    )
    assert shares["node_share"] == pytest.approx(nodes / (nodes + shares["words"]))
    assert shares["mean"]["node_mass"] == pytest.approx(sum(node for node, *_ in expected) / 2, rel=1e-5)
    assert "nodes among words and nodes" in table(shares)


def test_watching_does_not_change_the_model():
    task = tiny_task()
    model = build(task, seed=3)
    batch = sample(task, 5, 9)
    before = model(**batch["net_input"])[0]
    with watched(cross_attentions(model)) as weights:
        during = model(**batch["net_input"])[0]
    assert len(weights) == 2
    assert torch.allclose(before, during, atol=1e-6)
    model(**batch["net_input"])
    assert len(weights) == 2  # the hooks are gone


def test_models_without_trees_are_refused():
    task = tiny_task()
    with pytest.raises(ScoringError, match="does not attend to tree nodes"):
        cross_attentions(build(task, *stock_flags(), arch="transformer"))
