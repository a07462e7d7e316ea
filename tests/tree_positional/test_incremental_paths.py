"""Paths column by column against those of whole trees."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tree_positional.symbol_batches import ENCODINGS, EOS, PAD, SymbolBatch, symbol_trees
from tree_fairseq.tasks.pair_dataset import collate_symbol_trees
from tree_fairseq.tree_positional.decoder import IncrementalPaths, padded_paths
from tree_fairseq.tree_positional.positions import paths_of_batch
from tree_fairseq.trees.tree import Tree

LEVELS = 10


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    return torch.equal(padded_paths(left, LEVELS), padded_paths(right, LEVELS))


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: f"{encoding.traversal}-{encoding.binarization}")
@settings(max_examples=25, deadline=None)
@given(trees=st.lists(symbol_trees(), min_size=1, max_size=4), levels=st.integers(1, LEVELS), spare=st.integers(0, 2))
def test_growing_trees_have_the_paths_of_whole_ones(encoding, trees, levels, spare):
    batch = SymbolBatch.of(trees, encoding)
    tokens = batch.tokens(EOS, spare=spare)
    whole = paths_of_batch(collate_symbol_trees(tokens, batch.table), levels)
    growing = IncrementalPaths(len(trees), batch.table, levels, tokens.device)
    for place, column in enumerate(tokens.t(), 1):
        growing.append(column)
        if place < tokens.size(1):
            assert same(growing.next, whole[:, place])
    assert same(growing.columns, whole)
    assert (growing.next == -1).all(), "all trees are complete"


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: f"{encoding.traversal}-{encoding.binarization}")
@settings(max_examples=15, deadline=None)
@given(trees=st.lists(symbol_trees(), min_size=2, max_size=3), data=st.data())
def test_rows_are_moved_repeated_and_left_out(encoding, trees, data):
    batch = SymbolBatch.of(trees, encoding)
    tokens = batch.tokens(EOS)
    whole = paths_of_batch(collate_symbol_trees(tokens, batch.table), LEVELS)
    growing = IncrementalPaths(len(trees), batch.table, LEVELS, tokens.device)
    rows = torch.arange(len(trees))
    for place in range(tokens.size(1)):
        growing.append(tokens[rows, place])
        assert same(growing.columns, whole[rows, : place + 1])
        order = torch.tensor(data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=4)))
        growing.reorder(order)
        rows = rows[order]


def test_padding_before_start_and_columns_that_are_no_symbols():
    batch = SymbolBatch.of([Tree("a", [Tree("b"), Tree("c")]), Tree("a")], ENCODINGS[1])
    tokens = batch.tokens(EOS, left_pad=True)
    assert tokens[1, 0] == PAD
    growing = IncrementalPaths(2, batch.table, LEVELS, tokens.device)
    for column in tokens.t():
        growing.append(column)
    assert same(growing.columns, paths_of_batch(collate_symbol_trees(tokens, batch.table), LEVELS))
