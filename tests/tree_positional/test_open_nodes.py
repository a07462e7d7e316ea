"""Open nodes as tensors, against a list for each tree."""

from __future__ import annotations

from collections import deque

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.tree_positional.hypotheses import OpenNodes
from tree_fairseq.trees.symbols import BINARIZATIONS, NULL, TRAVERSALS, SymbolEncoding

EOS, PAD = 0, 1
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
