"""Attention with relations against the paper's equations, pair by pair."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings

from tests.tree_insertion.partial_trees import batches, preorder, random_batch, rows
from tree_fairseq.tree_insertion.relations import TreeRelationAttention, TreeRelations, pair_relations

WIDTH, HEADS = 12, 3


def build(child_relations: bool = True):
    torch.manual_seed(0)
    attention = TreeRelationAttention(WIDTH, HEADS, self_attention=True).double().eval()
    return attention, TreeRelations(WIDTH // HEADS, child_relations).double()


def direct(attention, relations, states, batch, child_relations) -> list[list[torch.Tensor]]:
    """Equations of section 3.2.2 for each head and pair; ``[N, B, D]`` to the states of the nodes of each tree."""
    kinds = pair_relations(preorder(batch), child_relations)
    embedding = lambda table, picked: sum(table[row - 1] for row in picked if row)
    size = WIDTH // HEADS
    output = []
    for row, parents in enumerate(rows(batch)):
        nodes = range(len(parents))
        query, key, value = (
            [layer(states[node, row]).split(size) for node in nodes]
            for layer in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        output.append([])
        for i in nodes:
            heads = []
            for head in range(HEADS):
                scores = torch.stack(
                    [
                        query[i][head]
                        @ (key[j][head] + embedding(relations.keys, kinds[:, row, i, j].tolist()))
                        / size**0.5
                        for j in nodes
                    ]
                )
                shares = scores.softmax(0)
                heads.append(
                    sum(
                        shares[j] * (value[j][head] + embedding(relations.values, kinds[:, row, i, j].tolist()))
                        for j in nodes
                    )
                )
            output[-1].append(attention.out_proj(torch.cat(heads)))
    return output


@pytest.mark.parametrize("child_relations", [True, False])
@settings(max_examples=15, deadline=None)
@given(batch=batches(max_nodes=6))
def test_values_and_gradients_are_those_of_the_equations(child_relations, batch):
    attention, relations = build(child_relations)
    states = torch.randn(batch["labels"].size(1), len(batch["labels"]), WIDTH, dtype=torch.float64, requires_grad=True)
    parameters = [
        states,
        relations.keys,
        relations.values,
        attention.q_proj.weight,
        attention.k_proj.weight,
        attention.v_proj.weight,
    ]
    found, weights = attention(states, states, states, key_padding_mask=relations(preorder(batch)))
    assert weights is None
    expected = direct(attention, relations, states, batch, child_relations)
    scale = torch.randn(WIDTH, dtype=torch.float64)
    losses = []
    for made in (found, None):
        total = 0
        for row, nodes in enumerate(expected):
            for node, state in enumerate(nodes):
                if made is not None:
                    torch.testing.assert_close(made[node, row], state)
                total = total + (scale * (state if made is None else made[node, row]) ** 2).sum()
        losses.append(torch.autograd.grad(total, parameters))
    for fast, slow in zip(*losses, strict=True):
        torch.testing.assert_close(fast, slow)


def test_dropout_is_of_weights():
    attention, relations = build()
    attention.dropout_module.p = 0.5
    batch = random_batch(1, [6, 4])
    states = torch.randn(6, 2, WIDTH, dtype=torch.float64)
    known = relations(preorder(batch))
    still = attention(states, states, states, key_padding_mask=known)[0]
    torch.testing.assert_close(still, attention(states, states, states, key_padding_mask=known)[0], rtol=0, atol=0)
    attention.train()
    assert not torch.allclose(still, attention(states, states, states, key_padding_mask=known)[0])


def test_half_precision_is_close():
    attention, relations = build()
    batch = random_batch(2, [9, 5, 1])
    states = torch.randn(9, 3, WIDTH, dtype=torch.float64)
    known = relations(preorder(batch))
    exact = attention(states, states, states, key_padding_mask=known)[0]
    attention, relations, states = attention.float(), relations.float(), states.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = attention(states, states, states, key_padding_mask=relations(preorder(batch)))[0]
    assert rough.dtype == torch.bfloat16
    torch.testing.assert_close(rough.double(), exact, rtol=0.1, atol=0.05)
