"""Vectors of slots, compared with loops over nodes and their neighbours."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings

from tests.tree_insertion.partial_trees import PAD, batches, rows, siblings, slot_mask
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion.decoder import SlotVectors
from tree_fairseq.tree_insertion.target import ANCESTOR, DESCENDANT, FIRST_CHILD, KINDS, NEXT_SIBLING
from tree_fairseq.tree_insertion.tree_shapes import AS_ANCESTOR, AS_DESCENDANT, AS_LEFT, AS_PARENT, AS_RIGHT

WIDTH = 5


def neighbours_of(parents: list[int], node: int, kind: int) -> list[tuple[int, int]]:
    """The nodes beside a slot and how it sees them."""
    if kind == DESCENDANT:
        return [(node, AS_ANCESTOR)]
    if kind == ANCESTOR:
        return [(node, AS_DESCENDANT)]
    if kind == FIRST_CHILD:
        return [(node, AS_PARENT), (parents.index(node), AS_RIGHT)]
    assert kind == NEXT_SIBLING
    seen = [(parents[node], AS_PARENT), (node, AS_LEFT)]
    later = [other for other in siblings(parents, node) if other > node]
    return seen + [(other, AS_RIGHT) for other in later[:1]]


def direct(module: SlotVectors, states: torch.Tensor, batch) -> tuple[list[int], torch.Tensor]:
    matrices, biases = module.maps.weight.split(WIDTH), module.maps.bias.split(WIDTH)
    numbers, vectors = [], []
    for row, parents in enumerate(rows(batch)):
        for node, kind in np.argwhere(slot_mask(np.array(parents))).tolist():
            numbers.append(KINDS * (row * batch["labels"].size(1) + node) + kind)
            seen = neighbours_of(parents, node, kind)
            vectors.append(sum(matrices[role] @ states[row, other] + biases[role] for other, role in seen))
    return numbers, torch.stack(vectors)


@settings(max_examples=40, deadline=None)
@given(batch=batches())
def test_slots_are_sums_of_their_neighbours(batch):
    module = SlotVectors(WIDTH).double()
    torch.nn.init.normal_(module.maps.bias)
    states = torch.randn(*batch["labels"].shape, WIDTH, dtype=torch.float64, requires_grad=True)
    slots = batch["slots"]
    vectors = module(states[batch["labels"] != PAD], batch["neighbours"])
    numbers, expected = direct(module, states, batch)
    assert slots.tolist() == numbers
    torch.testing.assert_close(vectors, expected)
    parameters = [states, module.maps.weight, module.maps.bias]
    scale = torch.randn_like(expected)
    fast, slow = (torch.autograd.grad((scale * made.square()).sum(), parameters) for made in (vectors, expected))
    for ours, theirs in zip_equal(fast, slow):
        torch.testing.assert_close(ours, theirs)
