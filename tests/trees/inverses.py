"""Inverses of the transforms, for round trips."""

from __future__ import annotations

from tree_fairseq.trees.tree import INTERMEDIATE, Tree


def debinarize(tree: Tree) -> Tree:
    """The inverse of ``binarize``: the children of an intermediate node go to its parent."""

    def restore(node: Tree, children: list[list[Tree]]) -> list[Tree]:
        if not children:
            return [node]
        inner = [tree for trees in children for tree in trees]
        return inner if node.label.startswith(INTERMEDIATE) else [Tree(node.label.removeprefix("\\"), inner)]

    (root,) = tree.fold(restore)
    return root
