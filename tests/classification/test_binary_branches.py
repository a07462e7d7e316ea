"""Binarised arrays of spans against binarised trees."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nn.tree_rows import PAD, collate_documents, row_trees
from tree_fairseq.classification.tree_lstm_classifier import BinaryBranches
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.trees.transforms import INTERMEDIATE, binarize
from tree_fairseq.trees.tree import Tree


def view(rows: dict[str, torch.Tensor]) -> TreeBatch:
    return TreeBatch.from_net_input(rows, rows["tokens"], PAD)


def column_labels(rows: dict[str, torch.Tensor], binary: BinaryBranches) -> list[list[str]]:
    """The label of each column, as in a binarised tree."""
    label = rows["label"].tolist()
    labels = []
    for row, tokens in enumerate(rows["tokens"].tolist()):
        put_in = [INTERMEDIATE + str(label[row][node]) if label[row] else "" for node in binary.divided[row].tolist()]
        labels.append([*map(str, tokens), *map(str, label[row]), *put_in])
    return labels


def tree_below(column: int, labels: list[str], parents: list[int], branches: list[int]) -> Tree:
    """The tree that the columns make, whose branches are all in use."""
    children = sorted((branches[child], child) for child, parent in enumerate(parents) if parent == column)
    assert [branch for branch, _ in children] == list(range(len(children)))
    return Tree(labels[column], [tree_below(child, labels, parents, branches) for _, child in children])


@settings(max_examples=40, deadline=None)
@given(trees=st.lists(row_trees(), min_size=1, max_size=4), extra=st.integers(0, 2), seed=st.integers(0, 99))
def test_they_are_the_binarised_trees(trees, extra, seed):
    rows = collate_documents([[tree] for tree in trees], extra)
    order = torch.randperm(rows["label"].size(1), generator=torch.Generator().manual_seed(seed))
    rows.update((name, rows[name][:, order]) for name in ("label", "start", "end", "depth"))
    binary = BinaryBranches.of(view(rows))
    labels = column_labels(rows, binary)
    for row, tree in enumerate(trees):
        expected = binarize(tree)
        root, parents, branches = int(binary.root[row]), binary.parents[row].tolist(), binary.branches[row].tolist()
        assert parents[root] == -1
        assert tree_below(root, labels[row], parents, branches) == expected
        # Nothing else is a node.
        assert binary.mask[row].sum() == len(list(expected.preorder()))
        outside = ~binary.mask[row]
        assert (binary.parents[row][outside] == -1).all() and (binary.branches[row][outside] == -1).all()
        is_child = binary.parents[row] >= 0
        assert is_child.sum() == binary.mask[row].sum() - 1
        assert torch.equal(binary.branches[row] >= 0, is_child)


def test_columns_are_leaves_then_nodes_then_intermediate_nodes():
    # (4 a (5 b c) d e) of the leaves a, b, c, d, e
    tree = Tree("4", [Tree("6"), Tree("5", [Tree("6"), Tree("6")]), Tree("7"), Tree("7")])
    binary = BinaryBranches.of(view(collate_documents([[tree]])))
    # Over (5 b c) and what follows it: column 7 + 6; over d and e: column 7 + 3.
    assert binary.mask[0].nonzero().squeeze(1).tolist() == [*range(7), 7 + 3, 7 + 6]
    assert binary.parents[0].tolist() == [5, 6, 6, 10, 10, -1, 13, -1, -1, -1, 13, -1, -1, 5]
    assert binary.branches[0].tolist() == [0, 0, 1, 0, 1, -1, 0, -1, -1, -1, 1, -1, -1, 1]
