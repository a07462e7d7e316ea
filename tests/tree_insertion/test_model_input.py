"""Partial trees as models read them: sequences of brackets against walking, and trees that are very deep."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from tests.tree_insertion.partial_trees import PAD, batches, rows, shapes_of
from tree_fairseq.tree_insertion.tree_shapes import CLOSING, OPENING, bracket_sequences

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
    brackets, places = bracket_sequences(shapes_of(batch))
    labels, width = batch["labels"][batch["labels"] != PAD].tolist(), brackets.shape[1]
    tokens = np.full(brackets.shape, PAD)
    tokens[brackets == OPENING], tokens[brackets == CLOSING] = OPEN, CLOSE
    tokens.ravel()[places] = labels
    longest, columns = 0, iter((places % width).tolist())
    for row, parents in enumerate(rows(batch)):
        expected, stands = bracketed(parents, batch["labels"][row].tolist())
        longest = max(longest, len(expected))
        assert tokens[row].tolist() == expected + [PAD] * (width - len(expected))
        assert [next(columns) for _ in parents] == stands
    assert width == longest
