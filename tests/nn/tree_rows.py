"""Random trees of any branching whose words and labels are ids, and the rows from which models read them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from hypothesis import strategies as st

from tree_fairseq.nn.tree_batch import NodeArrays, collate_trees
from tree_fairseq.trees.tree import Tree

PAD, BOS, SYMBOLS = 1, 0, 9


def row_trees(max_leaves: int = 10) -> st.SearchStrategy[Tree]:
    """Trees without preterminals; chains of constituents are among them, and single words."""
    symbol = st.integers(4, SYMBOLS - 1).map(str)
    trees = st.recursive(
        symbol.map(Tree),
        lambda below: st.builds(Tree, symbol, st.lists(below, min_size=1, max_size=5)),
        max_leaves=max_leaves,
    )
    return trees.map(lambda tree: tree.fold(_without_preterminal))


def _without_preterminal(node: Tree, children: list[Tree]) -> Tree:
    return children[0] if len(children) == 1 and children[0].is_leaf else Tree(node.label, children)


def tree_of(nested: Sequence | str) -> Tree:
    """Makes the tree of a word, or of a label and its children."""
    return Tree(nested) if isinstance(nested, str) else Tree(nested[0], map(tree_of, nested[1:]))


def node_arrays(tree: Tree) -> NodeArrays:
    rows, leaf = [], 0

    def visit(node: Tree, depth: int) -> None:
        nonlocal leaf
        if node.is_leaf:
            leaf += 1
            return
        place, start = len(rows), leaf
        rows.append(())
        for child in node.children:
            visit(child, depth + 1)
        rows[place] = (int(node.label), start, leaf, depth)

    visit(tree, 0)
    return NodeArrays(*np.array(rows, np.int32).reshape(-1, 4).T)


def collate_documents(documents: Sequence[Sequence[Tree]], extra: int = 0) -> dict[str, torch.Tensor]:
    """Collates the inputs of encoders of documents."""
    trees = [tree for document in documents for tree in document]
    words = [[int(word) for word in tree.leaves()] for tree in trees]
    tokens = torch.full((len(trees), max(map(len, words)) + extra), PAD)
    for row, text in enumerate(words):
        tokens[row, : len(text)] = torch.tensor(text)
    document = torch.tensor([b for b, own in enumerate(documents) for _ in own])
    return {"tokens": tokens, "document": document, **collate_trees([node_arrays(tree) for tree in trees], PAD)}
