"""What parents say about depths, subtrees and siblings, against walking."""

from __future__ import annotations

from hypothesis import given, settings

from tests.tree_insertion.partial_trees import batches, path_to_root, preorder, rows, siblings


@settings(max_examples=40, deadline=None)
@given(batch=batches())
def test_depths_subtrees_and_ranks(batch):
    trees = preorder(batch)
    assert trees.places.tolist() == list(range(batch["labels"].size(1)))
    for row, parents in enumerate(rows(batch)):
        for node in range(len(parents)):
            below = [other for other in range(len(parents)) if node in path_to_root(parents, other)]
            assert trees.depths[row, node] == len(path_to_root(parents, node)) - 1
            assert trees.ends[row, node] == max(below) + 1
            assert trees.dominates[row, node].nonzero().flatten().tolist() == below
            assert trees.is_inner[row, node] == (len(below) > 1)
            assert trees.ranks[row, node] == siblings(parents, node).index(node)
