"""Open nodes as tensors, against a list for each tree; paths column by column against those of whole trees."""

from __future__ import annotations

from collections import deque

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import symbol_trees
from tests.tree_positional.symbol_batches import ENCODINGS, EOS, PAD, SymbolBatch
from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.tasks.pair_dataset import collate_symbol_trees
from tree_fairseq.tree_positional.decoder import IncrementalPaths, padded_paths
from tree_fairseq.tree_positional.hypotheses import OpenNodes
from tree_fairseq.tree_positional.positions import paths_of_batch
from tree_fairseq.trees.symbols import BINARIZATIONS, NULL, TRAVERSALS, SymbolEncoding
from tree_fairseq.trees.tree import Tree

SPECIAL = ["</s>", "<pad>"]


def table(traversal: str, binarization: str, degree: int = 4) -> SymbolTable:
    encoding = SymbolEncoding(traversal, binarization)
    symbols = [f"a^{arity}" for arity in range(3 if binarization == "lcrs" else degree + 1)]
    return SymbolTable.from_symbols(SPECIAL + symbols + ([NULL] if binarization == "lcrs" else []), encoding)


class SlotList:
    """One growing tree, by the definition: open slots in a list, one for each missing child."""

    def __init__(self, symbols: SymbolTable):
        self.symbols = symbols
        self.open = deque([(-1, -1, -1)])
        self.length = 0

    @property
    def next(self) -> tuple[int, int, int]:
        """Column and branch and symbol of the parent of the next slot."""
        if not self.open:
            return -1, -1, -1
        return self.open[-1 if self.symbols.encoding.traversal == "dfs" else 0]

    def advance(self, token: int) -> None:
        self.length += 1
        arity = int(self.symbols.arity[token])
        if arity < 0 or not self.open:
            return
        first = int(self.symbols.first_branch[token])
        slots = [(self.length, branch, token) for branch in range(first, first + arity)]
        if self.symbols.encoding.traversal == "dfs":
            self.open.pop()
            slots.reverse()
        else:
            self.open.popleft()
        self.open.extend(slots)


def compare(slots: OpenNodes, expected: list[SlotList]) -> None:
    assert slots.count.tolist() == [len(row.open) for row in expected]
    assert list(zip(*(part.tolist() for part in slots.next()))) == [row.next for row in expected]
    assert all(slots.length == row.length for row in expected)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), traversal=st.sampled_from(TRAVERSALS), binarization=st.sampled_from(BINARIZATIONS))
def test_open_nodes_equal_those_of_lists(data, traversal, binarization):
    symbols = table(traversal, binarization)
    rows = data.draw(st.integers(1, 4))
    slots, expected = OpenNodes(rows, symbols, "cpu"), [SlotList(symbols) for _ in range(rows)]
    token = st.integers(0, len(symbols.arity) - 1)
    for _ in range(data.draw(st.integers(0, 25))):
        if data.draw(st.booleans()):
            order = data.draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=5))
            slots.reorder(torch.tensor(order))
            copies = []
            for row in order:
                copy = SlotList(symbols)
                copy.open, copy.length = deque(expected[row].open), expected[row].length
                copies.append(copy)
            expected, rows = copies, len(order)
        tokens = data.draw(st.lists(token, min_size=rows, max_size=rows))
        slots.advance(torch.tensor(tokens))
        for row, written in zip(expected, tokens):
            row.advance(written)
        compare(slots, expected)


def test_a_deep_tree_grows_its_stack():
    symbols = table("dfs", "lcrs")
    slots = OpenNodes(2, symbols, "cpu")
    for _ in range(3000):
        slots.advance(torch.tensor([4, 4]))
    assert slots.count.tolist() == [3001, 3001]
    assert slots.next()[0].tolist() == [3000, 3000]
    for _ in range(3000):
        slots.advance(torch.tensor([2, PAD]))
    assert slots.count.tolist() == [1, 3001]
    parents, branches, _ = slots.next()
    assert parents.tolist() == [1, 3000]
    assert branches.tolist() == [1, 0]


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
@given(trees=st.lists(symbol_trees(max_leaves=8), min_size=2, max_size=3), data=st.data())
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
