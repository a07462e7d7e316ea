"""Recorded attention weights against the equations, in double precision."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.explorer.untrained import matrix_values
from tree_fairseq.drawing.views import Explained
from tree_fairseq.explorer.cross_attention import cross_attention_view, recorded_attention
from tree_fairseq.nn.shared_memory import ProjectedMemory, SharedMemoryAttention
from tree_fairseq.tree_insertion.tree_shapes import read_partial_trees
from tree_fairseq.tree_transformer.model import TreeSelfAttention
from tree_fairseq.tree_transformer.views import TreeNodes, accumulation_view, recorded_nodes
from tree_fairseq.treeformer.views import PHRASES_SHOWN

TREE = "(S (NP (DT the) (JJ old) (NN man)) (VP (VBZ sees) (NP (DT a) (NN (NN_sub light@@) (NN_sub house)))) (. .))"
FOREST = "(S (NP (DT the) (NN man)) (VP (VBZ sleeps))) (S (NP (PRP it)) (VP (VBZ sings)) (. .))"


def softmax_over(logits: dict[int, float], size: int) -> np.ndarray:
    weights = np.zeros(size)
    for place, logit in logits.items():
        weights[place] = np.exp(logit)
    return weights / weights.sum()


def direct_weights(attention: TreeSelfAttention, states: Tensor, nodes: list[dict], leaves: int) -> np.ndarray:
    """Eqs. 11, 14 and 18 for one sentence and all heads, node by node: ``[H, M, S]``; a node sees its subtree alone."""
    width = attention.head_dim
    found = np.zeros((attention.num_heads, len(nodes), leaves + len(nodes)))
    queries, keys = (project(states[:, 0]).detach().numpy() for project in (attention.q_proj, attention.k_proj))
    for number, node in enumerate(nodes):
        below = list(range(node["start"], node["end"]))
        for other in range(len(nodes)):
            above = other
            while above >= 0 and above != number:
                above = nodes[above]["parent"]
            if above == number:
                below.append(leaves + other)
        for head in range(attention.num_heads):
            own = slice(head * width, (head + 1) * width)
            logits = {place: queries[leaves + number, own] @ keys[place, own] / width**0.5 for place in below}
            found[head, number] = softmax_over(logits, leaves + len(nodes))
    return found


def doubled(system):
    return copy.deepcopy(system.models[0]).double()


@pytest.mark.parametrize("line", [TREE, FOREST])
def test_nodes_attend_as_the_equations_say(tree_system, line):
    sentence = tree_system.reader.read_line(line)
    model, inputs = doubled(tree_system), sentence.sample["net_input"]
    nodes = TreeNodes(inputs["source_spans"], tree_system.task.source_side.labels)
    seen: list[Tensor] = []
    for layer in model.encoder.layers:
        layer.self_attn.register_forward_hook(
            lambda module, args, kwargs, _: seen.append(kwargs["query"]), with_kwargs=True
        )
    with recorded_nodes(model) as record, torch.no_grad():
        model.encoder(inputs["src_tokens"], inputs["src_lengths"], source_spans=inputs["source_spans"])
    leaves = inputs["src_tokens"].size(1)
    view = accumulation_view(record, nodes, leaves - 1)
    assert len(nodes) >= 2 and view["layers"] == len(seen) == 2 and view["heads"] == 4
    shown = matrix_values(view["weights"])
    for number, (layer, states) in enumerate(zip(model.encoder.layers, seen)):
        expected = direct_weights(layer.self_attn, states, nodes.records, leaves).mean(0)
        np.testing.assert_allclose(record[number].weights[0].numpy(), expected, atol=1e-12)
        without_eos = np.delete(expected, leaves - 1, axis=1)
        np.testing.assert_allclose(shown[number], without_eos, atol=0.5 / 255 + 1e-6)


def test_nodes_of_a_forest_have_their_own_roots(tree_system):
    sentence = tree_system.reader.read_line(FOREST)
    view = tree_system.explain(sentence).views["accumulation"]
    assert [node["parent"] for node in view["nodes"]].count(-1) == 2
    assert [(node["label"], node["start"], node["end"]) for node in view["nodes"]][0] == ("S", 0, 3)
    weights = matrix_values(view["weights"])
    second = next(number for number, node in enumerate(view["nodes"]) if node["start"] == 3)
    assert not weights[:, 0, 3:6].any() and not weights[:, second, :3].any()


def direct_cross_attention(attention: SharedMemoryAttention, query: Tensor, memory: ProjectedMemory) -> Tensor:
    """Weights ``[T, S]`` of one sentence, the mean over heads, query by query."""
    width, found = attention.head_dim, []
    for state in query[:, 0]:
        projected, heads = attention.q_proj(state), []
        for head in range(attention.num_heads):
            logits = memory.keys[0, head] @ projected[head * width : (head + 1) * width] / width**0.5
            heads.append((logits if memory.bias is None else logits + memory.bias[0, head]).softmax(-1))
        found.append(torch.stack(heads).mean(0))
    return torch.stack(found)


@pytest.mark.parametrize("name", ["tree_system", "chart_system"])
def test_decoders_attend_as_the_equation_says(request, name):
    system = request.getfixturevalue(name)
    sentence = next(system.reader.read_split("test"))
    model = doubled(system)
    inputs = {name: value for name, value in sentence.sample["net_input"].items() if name != "prev_output_tokens"}
    expected = []

    def compute(module, args, kwargs, _):
        memory = module.project(kwargs["key"], kwargs["key_padding_mask"])
        expected.append(direct_cross_attention(module, kwargs["query"], memory))

    for layer in model.decoder.layers:
        layer.encoder_attn.register_forward_hook(compute, with_kwargs=True)
    eos = system.task.target_dictionary.eos()
    with recorded_attention(model) as record, torch.no_grad():
        model(**inputs, prev_output_tokens=torch.tensor([[eos, 7, 8, 9]]))
    assert len(record) == len(expected) == 2
    for layer, weights in zip(record, expected):
        torch.testing.assert_close(layer.weights, weights)
        torch.testing.assert_close(layer.weights.sum(1), torch.ones(4, dtype=torch.float64))


def test_a_memory_that_was_projected_beforehand_is_attended_to_as_the_equation_says(insertion_system):
    sentence = next(insertion_system.reader.read_split("test"))
    model, dictionary, expected = doubled(insertion_system), insertion_system.task.target_dictionary, []
    for layer in model.decoder.layers:
        layer.encoder_attn.register_forward_hook(
            lambda module, args, kwargs, _: expected.append(
                direct_cross_attention(module, kwargs["query"], kwargs["key"])
            ),
            with_kwargs=True,
        )
    partial = {"labels": torch.tensor([[dictionary.root, 6, 7]]), "parents": torch.tensor([[-1, 0, 0]])}
    inputs = sentence.sample["net_input"]
    with recorded_attention(model) as record, torch.no_grad():
        memory = model.encode(inputs["src_tokens"], inputs["src_lengths"])
        model.decode(memory, read_partial_trees(partial, dictionary.pad()))
    assert len(record) == len(expected) == 2
    for layer, weights in zip(record, expected):
        torch.testing.assert_close(layer.weights, weights)


def test_nothing_stays_behind_on_the_model(tree_system):
    model = tree_system.models[0]
    with recorded_attention(model):
        pass
    modules = [layer.self_attn for layer in model.encoder.layers] + [
        layer.encoder_attn for layer in model.decoder.layers
    ]
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in modules)


def test_columns_are_words_eos_and_nodes(tree_system):
    sentence = tree_system.reader.read_line(TREE)
    view = tree_system.explain(sentence).views["cross_attention"]
    kinds = [column["kind"] for column in view["columns"]]
    assert kinds == ["word"] * 8 + ["eos"] + ["node"] * kinds.count("node")
    assert {"kind": "node", "label": "NP", "start": 0, "end": 3} in view["columns"]
    weights = matrix_values(view["weights"])
    assert weights.shape == (2, len(view["rows"]), len(kinds)) and view["rows"][-1] == "</s>"
    np.testing.assert_allclose(weights.sum(2), 1, atol=len(kinds) * 0.5 / 255)


def test_columns_of_a_chart_are_all_tokens_and_the_phrases_with_most_attention(chart_system):
    line = "the old man sees a small green dog in the old garden near the small woman ."
    sentence = chart_system.reader.read_line(line)
    view = chart_system.explain(sentence).views["cross_attention"]
    kinds = [column["kind"] for column in view["columns"]]
    tokens = len(line.split())
    assert kinds == ["word"] * tokens + ["eos"] + ["phrase"] * PHRASES_SHOWN
    phrase = view["columns"][-1]
    assert phrase["label"].split() == [*line.split(), "</s>"][phrase["start"] : phrase["end"]]


def test_without_known_places_there_is_no_view(stock_system):
    sentence = next(stock_system.reader.read_split("test"))
    explained = Explained(sentence.sample, ["one"], ["one", "two"], [], (), [], [7, 8])
    with recorded_attention(stock_system.models[0]) as explained.cross:
        explained.rows = stock_system._read_output(explained)
    assert len(explained.cross) == 2 and cross_attention_view(explained, []) is None
