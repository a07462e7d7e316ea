"""Inverses of the transforms, for round trips."""

from __future__ import annotations

import re

from tree_fairseq.trees.transforms import INTERMEDIATE
from tree_fairseq.trees.tree import Tree


def split_label(label: str) -> list[str]:
    """The inverse of ``join_labels``: the labels of a joined unary chain, from its top down."""
    parts = [""]
    for escaped, joiner, plain in re.findall(r"\\(.)|(\+)|(.)", label, re.DOTALL):
        if joiner:
            parts.append("")
        else:
            parts[-1] += escaped or plain
    return parts


def debinarize(tree: Tree) -> Tree:
    """The inverse of ``binarize``: the children of an intermediate node go to its parent."""

    def restore(node: Tree, children: list[list[Tree]]) -> list[Tree]:
        if not children:
            return [node]
        inner = [tree for trees in children for tree in trees]
        return inner if node.label.startswith(INTERMEDIATE) else [Tree(node.label.removeprefix("\\"), inner)]

    (root,) = tree.fold(restore)
    return root
