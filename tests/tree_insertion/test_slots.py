"""Slots of batches against one tree after the other: insertions, vectors; and sequences of brackets against walking."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tree_insertion.partial_trees import (
    KEEP,
    PAD,
    ChangedTrees,
    batches,
    insert,
    inserted,
    rows,
    same,
    shapes_of,
    siblings,
    slot_mask,
)
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion import tree_shapes
from tree_fairseq.tree_insertion.decoder import TreeRelationAttention
from tree_fairseq.tree_insertion.slots import SlotTokens, SlotVectors
from tree_fairseq.tree_insertion.target import ANCESTOR, DESCENDANT, FIRST_CHILD, KINDS, NEXT_SIBLING


def draw_answers(batch, seed: int, share: float) -> tuple[torch.Tensor, torch.Tensor]:
    """All slots of a batch, and what to insert in some of them."""
    generator = torch.Generator().manual_seed(seed)
    slots = batch["slots"]
    answers = torch.randint(5, 10, slots.shape, generator=generator)
    return slots, answers.masked_fill(torch.rand(slots.shape, generator=generator) >= share, KEEP)


def padded(rows_of_labels, rows_of_parents, rows_of_sources) -> ChangedTrees:
    width = max(map(len, rows_of_labels))
    made = []
    for values, filling in ((rows_of_labels, PAD), (rows_of_parents, -1), (rows_of_sources, -1)):
        made.append(torch.tensor([[*row, *[filling] * (width - len(row))] for row in values]))
    return ChangedTrees(*made)


def insert_row_by_row(batch, slots, answers) -> ChangedTrees:
    width = KINDS * batch["labels"].size(1)
    labels, new_parents, old = [], [], []
    for row, parents in enumerate(rows(batch)):
        chosen = [
            (slot % width, answer)
            for slot, answer in zip(slots.tolist(), answers.tolist())
            if slot // width == row and answer != KEEP
        ]
        sources, after = insert(np.array(parents), [slot for slot, _ in chosen])
        names = batch["labels"][row, : len(parents)].tolist() + [answer for _, answer in chosen]
        labels.append([names[source] for source in sources])
        new_parents.append(after.tolist())
        old.append([source if source < len(parents) else -1 for source in sources.tolist()])
    return padded(labels, new_parents, old)


@settings(max_examples=60, deadline=None)
@given(batch=batches(), seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.0, 0.2, 0.5, 1.0]))
def test_insertions_are_those_row_by_row(batch, seed, share):
    slots, answers = draw_answers(batch, seed, share)
    found, expected = inserted(batch, slots, answers), insert_row_by_row(batch, slots, answers)
    for ours, theirs in zip_equal(found, expected):
        same(ours, theirs)


WIDTH = 5


def neighbours_of(parents: list[int], node: int, kind: int) -> list[tuple[int, int]]:
    """The nodes beside a slot and how it sees them."""
    if kind == DESCENDANT:
        return [(node, tree_shapes.AS_ANCESTOR)]
    if kind == ANCESTOR:
        return [(node, tree_shapes.AS_DESCENDANT)]
    if kind == FIRST_CHILD:
        return [(node, tree_shapes.AS_PARENT), (parents.index(node), tree_shapes.AS_RIGHT)]
    assert kind == NEXT_SIBLING
    seen = [(parents[node], tree_shapes.AS_PARENT), (node, tree_shapes.AS_LEFT)]
    later = [other for other in siblings(parents, node) if other > node]
    return seen + [(other, tree_shapes.AS_RIGHT) for other in later[:1]]


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


@settings(max_examples=15, deadline=None)
@given(batch=batches(max_nodes=7))
def test_slots_that_are_tokens_attend_to_their_neighbours_alone(batch):
    """Equations of section 3.2.2 with the mask of section 3.2.3, slot by slot and head by head."""
    heads, size = 2, 4
    attention = TreeRelationAttention(heads * size, heads, self_attention=True).double().eval()
    tokens = SlotTokens(heads * size, size).double()
    queries, states = (
        torch.randn(count, 1, heads * size, dtype=torch.float64, requires_grad=True)
        for count in (len(batch["slots"]), int((batch["labels"] != PAD).sum()))
    )
    found = attention(queries, None, None, key_padding_mask=tokens.neighbours(states, batch["neighbours"]))[0]
    expected, first, place = [], 0, 0
    for parents in rows(batch):
        for node, kind in np.argwhere(slot_mask(np.array(parents))).tolist():
            seen = neighbours_of(parents, node, kind)
            query = attention.q_proj(queries[place, 0]).split(size)
            parts = []
            for head in range(heads):
                key, value = (
                    torch.stack(
                        [layer(states[first + other, 0]).split(size)[head] + table[role] for other, role in seen]
                    )
                    for layer, table in ((attention.k_proj, tokens.keys), (attention.v_proj, tokens.values))
                )
                parts.append((query[head] @ key.T / size**0.5).softmax(0) @ value)
            expected.append(attention.out_proj(torch.cat(parts)))
            place += 1
        first += len(parents)
    torch.testing.assert_close(found.squeeze(1), torch.stack(expected))
    parameters = [queries, states, tokens.keys, tokens.values, *attention.parameters()]
    fast, slow = (torch.autograd.grad(each.square().sum(), parameters) for each in (found, torch.stack(expected)))
    for ours, theirs in zip_equal(fast, slow):
        torch.testing.assert_close(ours, theirs)


OPEN, CLOSE = 98, 99


def bracketed(parents: list[int], labels: list[int]) -> tuple[list[int], list[int]]:
    """A tree between brackets, node by node, and where its nodes stand."""
    tokens, places, path = [], [], []
    for node, parent in enumerate(parents):
        while path and path[-1] != parent:
            if path.pop() in parents:
                tokens.append(CLOSE)
        if node in parents:
            tokens.append(OPEN)
        places.append(len(tokens))
        tokens.append(labels[node])
        path.append(node)
    return tokens + [CLOSE for node in path if node in parents], places


@settings(max_examples=60, deadline=None)
@given(batch=batches())
def test_brackets_are_those_of_walking(batch):
    brackets, places = tree_shapes.bracket_sequences(shapes_of(batch))
    labels, width = batch["labels"][batch["labels"] != PAD].tolist(), brackets.shape[1]
    tokens = np.full(brackets.shape, PAD)
    tokens[brackets == tree_shapes.OPENING], tokens[brackets == tree_shapes.CLOSING] = OPEN, CLOSE
    tokens.ravel()[places] = labels
    longest, columns = 0, iter((places % width).tolist())
    for row, parents in enumerate(rows(batch)):
        expected, stands = bracketed(parents, batch["labels"][row].tolist())
        longest = max(longest, len(expected))
        assert tokens[row].tolist() == expected + [PAD] * (width - len(expected))
        assert [next(columns) for _ in parents] == stands
    assert width == longest
