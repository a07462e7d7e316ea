"""Random symbol trees, as places in a tree and as batches of tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from fairseq.data import Dictionary
from hypothesis import strategies as st

from tree_fairseq.data_bin.symbol_dictionary import SymbolTable
from tree_fairseq.trees.symbols import BINARIZATIONS, TRAVERSALS, SymbolEncoding
from tree_fairseq.trees.tree import Tree

PAD, EOS = 1, 2
ENCODINGS = [SymbolEncoding(traversal, binarization) for traversal in TRAVERSALS for binarization in BINARIZATIONS]


@st.composite
def places(draw, branches: int, max_nodes: int = 9) -> list[tuple[int, int] | None]:
    """The parent and the branch of each node of a tree; the first one is the root, which has None."""
    size = draw(st.integers(1, max_nodes))
    # Mostly the node before, so that trees are deep.
    parents = [draw(st.integers(max(0, node - 2), node - 1)) for node in range(1, size)]
    return [None, *((parent, draw(st.integers(0, branches - 1))) for parent in parents)]


def columns_of(
    trees: list[list[tuple[int, int] | None]], orders: list[list[int]], width: int
) -> tuple[dict, torch.Tensor]:
    """The batch of trees whose nodes stand in any columns.

    Trees are those of :func:`places`; ``orders`` has the columns of their nodes, and others are padding.
    """
    parents, branches = (torch.full((len(trees), width), -1) for _ in range(2))
    is_node = torch.zeros(len(trees), width, dtype=torch.bool)
    for row, (tree, order) in enumerate(zip(trees, orders)):
        for place, column in zip(tree, order):
            is_node[row, column] = True
            if place is not None:
                parents[row, column], branches[row, column] = order[place[0]], place[1]
    return {"parents": parents, "branches": branches}, is_node


@dataclass(frozen=True)
class SymbolBatch:
    dictionary: Dictionary  # of their symbols
    table: SymbolTable  # what the ids mean
    sequences: list[list[int]]  # the ids of each tree

    @classmethod
    def of(cls, trees: list[Tree], encoding: SymbolEncoding) -> SymbolBatch:
        symbols = [encoding.encode(tree) for tree in trees]
        dictionary = Dictionary()
        for symbol in sorted({symbol for sequence in symbols for symbol in sequence}):
            dictionary.add_symbol(symbol)
        table = SymbolTable.from_symbols(dictionary.symbols, encoding)
        return cls(dictionary, table, [[dictionary.index(symbol) for symbol in sequence] for sequence in symbols])

    def tokens(self, *before: int, left_pad: bool = False, spare: int = 0) -> torch.Tensor:
        """``[B, N]``: the sequences, each after the ids ``before``, with ``spare`` columns of padding at least."""
        rows = [[*before, *sequence] for sequence in self.sequences]
        tokens = torch.full((len(rows), max(map(len, rows)) + spare), PAD)
        for row, ids in enumerate(rows):
            first = tokens.size(1) - len(ids) if left_pad else 0
            tokens[row, first : first + len(ids)] = torch.tensor(ids)
        return tokens
