"""Changes of shape and label."""

from __future__ import annotations

import re

from tree_fairseq.trees.tree import Tree

INTERMEDIATE = "@"  # begins the labels of the nodes that binarization inserts


def collapse_unary(tree: Tree) -> Tree:
    """Replaces each chain of only children, preterminals included, by its lowest node."""

    def collapse(node: Tree, children: list[Tree]) -> Tree:
        is_chain = len(children) == 1 and not children[0].is_leaf
        return children[0] if is_chain else Tree(node.label, children)

    return tree.fold(collapse)


def binarize(tree: Tree) -> Tree:
    r"""Gives every node at most two children: ``(A b c d)`` becomes ``(A b (@A c d))``.

    A label that begins with ``@`` or ``\`` already is escaped by ``\``, so that inserted nodes can be removed again.
    """

    def branch(node: Tree, children: list[Tree]) -> Tree:
        while len(children) > 2:
            children[-2:] = [Tree(INTERMEDIATE + node.label, children[-2:])]
        escape = "\\" if node.label.startswith((INTERMEDIATE, "\\")) else ""
        return Tree(escape + node.label, children) if children else node

    return tree.fold(branch)


def strip_function_tags(tree: Tree) -> Tree:
    """Cuts labels and tags at the first ``-`` or ``=``: ``NP-SBJ=2`` becomes ``NP``; ``-NONE-`` and ``-LRB-`` stay."""
    return tree.map_labels(
        lambda label: label if label.startswith(("-", "=")) else re.split("[-=]", label, maxsplit=1)[0]
    )
