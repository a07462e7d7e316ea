"""The Tree-Transformer in training and in generation: what may and what may not change its output."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from tests.nn.tiny import PAD, build, logits, net_input, pairs, random_tree, tiny_task
from tree_fairseq.nn.tree_batch import NodeArrays

TASK = tiny_task()
LENGTHS = (7, 1, 4, 11, 2)  # one of them a single leaf, hence without a node


@pytest.fixture(scope="module")
def model():
    return build(TASK)


def test_the_order_of_nodes_changes_nothing(model):
    pair = pairs(TASK, 9)[0]
    expected = logits(model, net_input([pair]))
    order = np.random.default_rng(1).permutation(len(pair.tree))
    pair.tree = NodeArrays(*(getattr(pair.tree, field.name)[order] for field in dataclasses.fields(NodeArrays)))
    torch.testing.assert_close(logits(model, net_input([pair])), expected, rtol=1e-4, atol=1e-5)


def test_tree_and_labels_are_read(model):
    """The tests of independence would pass if trees were ignored."""
    pair = pairs(TASK, 9)[0]
    expected = logits(model, net_input([pair]))
    relabelled = dataclasses.replace(pair.tree, label=np.roll(pair.tree.label, 1))
    other = random_tree(np.random.default_rng(5), 9, len(TASK.label_dictionary))
    for tree in (relabelled, other):
        pair.tree = tree
        assert not torch.allclose(logits(model, net_input([pair])), expected, atol=1e-3)


def test_attention_has_the_width_of_the_leaves(model):
    """``--print-alignment`` and ``--replace-unk`` look for the greatest weight among source tokens."""
    inputs = net_input(pairs(TASK, 7, 3))
    attention = model(**inputs)[1]["attn"][0]
    assert attention.shape == (*inputs["prev_output_tokens"].shape, inputs["src_tokens"].size(1))
    assert not attention[1, :, inputs["src_tokens"][1].eq(PAD)].any()
    assert (attention.sum(-1) < 1).all() and attention[1, :, -4:].any()  # the rest lies on nodes


# Generation


def generate(model, batch, beam: int = 4, **options) -> list[list[dict]]:
    inputs = net_input(batch)
    del inputs["prev_output_tokens"]
    generator = SequenceGenerator([model], TASK.target_dictionary, beam_size=beam, max_len_b=8, **options)
    return generator.generate([model], {"id": torch.arange(len(batch)), "net_input": inputs})


def test_nodes_are_accumulated_once_per_sentence_and_layer():
    model = build(TASK)
    calls = {"encoder": [], "decoder": []}
    for side, attention in (("encoder", "self_attn"), ("decoder", "encoder_attn")):
        for layer in getattr(model, side).layers:
            accumulation = getattr(layer, attention).accumulation
            accumulation.register_forward_pre_hook(lambda _, inputs, side=side: calls[side].append(inputs[1].size(0)))
    generate(model, pairs(TASK, *LENGTHS), beam=5)
    # Each entry is the number of sentences of one call: not times the beam, and no call at later steps.
    assert calls == {"encoder": [5, 5], "decoder": [5, 5]}


def test_a_generator_s_beam_does_not_disturb_training():
    """--eval-bleu searches with the model that is being trained."""
    model = build(TASK)
    batch = pairs(TASK, *LENGTHS)
    before = logits(model, net_input(batch))
    generate(model, batch, beam=5)
    assert torch.equal(logits(model, net_input(batch)), before)
    assert len(generate(model, batch, beam=1)[0]) == 1
