"""Collated trees, and their spans over padded leaves."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fairseq import utils
from hypothesis import given, settings
from hypothesis import strategies as st

from tree_fairseq.nn.tree_batch import NodeArrays, TreeBatch, collate_trees

PAD, EOS = 1, 2


def nodes(*rows: tuple[int, int, int, int]) -> NodeArrays:
    """From (label, start, end, depth)."""
    return NodeArrays(*np.array(rows, np.int32).reshape(-1, 4).T)


SMALL = nodes((7, 0, 3, 0), (8, 1, 3, 1))
SINGLE = nodes((9, 0, 2, 0))
NONE = nodes()


def test_collated_trees_are_padded_with_empty_spans():
    batch = collate_trees([SMALL, NONE, SINGLE], PAD)
    del batch["branches"]
    assert all(column.dtype == torch.int64 for column in batch.values())
    assert {name: column.tolist() for name, column in batch.items()} == {
        "label": [[7, 8], [PAD, PAD], [9, PAD]],
        "start": [[0, 1], [0, 0], [0, 0]],
        "end": [[3, 3], [0, 0], [2, 0]],
        "depth": [[0, 1], [0, 0], [0, 0]],
    }


@pytest.mark.parametrize("trees", [[], [NONE], [NONE, NONE]])
def test_an_empty_list_of_trees_is_collated(trees):
    batch = collate_trees(trees, PAD)
    del batch["branches"]
    assert all(column.shape == (len(trees), 0) for column in batch.values())


def test_collated_trees_move_with_a_batch():
    """fairseq moves dicts of tensors and does not cast integers."""
    sample = {"net_input": {"source_spans": collate_trees([SMALL], PAD)}}
    moved = utils.apply_to_sample(lambda tensor: tensor.clone() + 1, sample)
    assert moved["net_input"]["source_spans"]["label"].tolist() == [[8, 9]]


@settings(max_examples=40, deadline=None)
@given(lengths=st.lists(st.integers(2, 5), min_size=1, max_size=4), extra=st.integers(0, 3), left_pad=st.booleans())
def test_spans_cover_the_words_with_padding_on_either_side(lengths, extra, left_pad):
    width = max(lengths) + 1 + extra
    tokens = torch.full((len(lengths), width), PAD)
    for row, length in enumerate(lengths):
        first = width - length - 1 if left_pad else 0
        tokens[row, first : first + length] = torch.arange(100, 100 + length)
        tokens[row, first + length] = EOS
    trees = [nodes((7, 0, length, 0), (8, length - 2, length, 1)) for length in lengths]
    batch = TreeBatch.from_net_input(collate_trees(trees, PAD), tokens, PAD)
    assert torch.equal(batch.is_leaf, tokens.ne(PAD))
    assert batch.is_node.all()
    for row, length in enumerate(lengths):
        for node, first_word in ((0, 100), (1, 100 + length - 2)):
            covered = tokens[row, batch.start[row, node] : batch.end[row, node]]
            assert covered.tolist() == list(range(first_word, 100 + length))  # words, never EOS or padding


def test_padding_does_not_count_as_nodes():
    tokens = torch.tensor([[PAD, 5, 6, EOS], [5, 6, 7, EOS]])
    batch = TreeBatch.from_net_input(collate_trees([SINGLE, SMALL], PAD), tokens, PAD)
    assert batch.is_node.tolist() == [[True, False], [True, True]]
    assert (batch.start == batch.end)[0, 1]
    assert batch.depth.tolist() == [[0, 0], [0, 1]]
