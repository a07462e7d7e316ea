r"""Changes of shape and label.

========================  ====================================================================
transform                 effect
========================  ====================================================================
`collapse_unary`          a chain of only children becomes one node, ``VP`` or ``S+VP``
`binarize`                no node has more than two children
`strip_function_tags`     ``NP-SBJ=2`` becomes ``NP``
========================  ====================================================================

Joined and intermediate labels are escaped with backslashes, so that the first two can be inverted whatever the labels
are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tree_fairseq.trees.tree import Tree, tree_from_preorder

INTERMEDIATE = "@"
"""Begins the labels of the nodes that binarization inserts."""

_FUNCTION_TAG = re.compile(r"[-=].*", re.DOTALL)


def join_labels(labels: Iterable[str]) -> str:
    r"""One label for a unary chain, from its top down: ``S+VP``. ``+`` and ``\`` in a label are escaped."""
    return "+".join(re.sub(r"[+\\]", r"\\\g<0>", label) for label in labels)


def collapse_unary(tree: Tree, keep: str = "lowest", include_tags: bool = False) -> Tree:
    """Replaces each chain of only children by one node.

    Args:
        tree: a constituency tree
        keep: ``"lowest"`` keeps the lowest label of a chain, ``"join"`` joins the labels with `join_labels`
        include_tags: whether a chain extends to the preterminal instead of ending above it

    Raises:
        ValueError: ``keep`` is neither of the two
    """
    if keep not in ("lowest", "join"):
        raise ValueError(f"keep is 'lowest' or 'join', not {keep!r}")

    def collapse(node: Tree, children: list[_Chain]) -> _Chain:
        if len(children) == 1 and node.children[0].children and (include_tags or not node.children[0].is_preterminal):
            children[0].labels.append(node.label)
            return children[0]
        return _Chain([node.label], [finish(chain) for chain in children])

    def finish(chain: _Chain) -> Tree:
        if keep == "lowest" or not chain.children:
            return Tree(chain.labels[0], chain.children)
        return Tree(join_labels(reversed(chain.labels)), chain.children)

    return finish(tree.fold(collapse))


@dataclass
class _Chain:
    """A unary chain: its labels from the lowest up, and the children of the lowest node."""

    labels: list[str]
    children: list[Tree]


def binarize(tree: Tree, form: str) -> Tree:
    r"""Gives every node at most two children. A label that begins with ``@`` or ``\`` already is escaped by ``\``.

    Args:
        tree: any tree
        form: ``"right"`` makes ``(A b (@A c d))`` of ``(A b c d)``, and ``"left"`` makes ``(A (@A b c) d)``

    Raises:
        ValueError: the form is unknown
    """
    if form not in ("left", "right"):
        raise ValueError(f"a tree is binarized 'left' or 'right', not {form!r}")
    labels: list[str] = []
    child_counts: list[int] = []
    # A node with the range of children that it or an intermediate node below it has to cover.
    stack = [(tree, 0, len(tree.children))]
    while stack:
        node, start, end = stack.pop()
        if not node.children:
            labels.append(node.label)
        elif end - start == len(node.children):
            labels.append("\\" + node.label if node.label.startswith((INTERMEDIATE, "\\")) else node.label)
        else:
            labels.append(INTERMEDIATE + node.label)
        if end - start <= 2:
            items = [(child, 0, len(child.children)) for child in node.children[start:end]]
        elif form == "right":
            first = node.children[start]
            items = [(first, 0, len(first.children)), (node, start + 1, end)]
        else:
            last = node.children[end - 1]
            items = [(node, start, end - 1), (last, 0, len(last.children))]
        child_counts.append(len(items))
        stack += reversed(items)
    return tree_from_preorder(labels, child_counts)


def strip_function_tags(tree: Tree) -> Tree:
    """Cuts labels and tags at the first ``-`` or ``=``: ``NP-SBJ=2`` becomes ``NP``; ``-NONE-`` and ``-LRB-`` stay."""
    return tree.map_labels(
        lambda label: label if label.startswith(("-", "=")) else label[:1] + _FUNCTION_TAG.sub("", label[1:])
    )
