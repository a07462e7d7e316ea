"""Sequences of labels and brackets against those of walking."""

from __future__ import annotations

from hypothesis import given, settings

from tests.tree_insertion.partial_trees import PAD, batches, preorder, rows
from tree_fairseq.tree_insertion.relations import structure_tokens

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
    tokens, places = structure_tokens(batch["labels"], preorder(batch), OPEN, CLOSE, PAD)
    longest = 0
    for row, parents in enumerate(rows(batch)):
        expected, stands = bracketed(parents, batch["labels"][row].tolist())
        longest = max(longest, len(expected))
        assert tokens[row].tolist() == expected + [PAD] * (tokens.size(1) - len(expected))
        assert places[row].tolist() == stands + [0] * (places.size(1) - len(stands))
    assert tokens.size(1) == longest
