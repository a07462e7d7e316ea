r"""Changes of shape and label, with their inverses.

========================  ======================  ==========================================================
transform                 inverse                 what it does
========================  ======================  ==========================================================
`collapse_unary` (join)   `restore_unary`         a chain of only children becomes one node, ``S+VP``
`collapse_unary` (lowest) none                    of each chain the lowest node stays
`binarize`                `debinarize`            no node has more than two children
`strip_function_tags`     none                    ``NP-SBJ=2`` becomes ``NP``
`drop_empty_elements`     none                    traces and what holds nothing else disappear
========================  ======================  ==========================================================

Labels that hold a sign with a meaning here are escaped by a backslash, so that the inverses hold for every label.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tree_fairseq.errors import TreeFormatError
from tree_fairseq.trees.tree import Tree, tree_from_preorder

Item = TypeVar("Item")

UNARY_JOINER = "+"
"""Stands between the labels of a joined unary chain."""

EMPTY_TAG = "-NONE-"
"""The tag of empty elements (traces) in the Penn treebank."""

INTERMEDIATE = "@"
"""Begins the label of the nodes that left and right binarisation put in."""

MISSING = Tree("<nil>")
"""Stands for an absent child in the left-child right-sibling form, where every other node has two children."""

_FUNCTION_TAG = re.compile(r"[-=].*", re.DOTALL)


def join_labels(labels: Iterable[str], joiner: str = UNARY_JOINER) -> str:
    """One label for a unary chain, from its top down; `split_label` takes it apart.

    Raises:
        ValueError: the joiner is empty or holds a backslash.
    """
    return joiner.join(re.sub(_special(joiner), r"\\\g<0>", label) for label in labels)


def split_label(label: str, joiner: str = UNARY_JOINER) -> list[str]:
    """The labels of a joined unary chain, from its top down."""
    parts = [""]
    for found in re.finditer(rf"\\(.)|({re.escape(_checked(joiner))})|(.)", label, re.DOTALL):
        if found[2]:
            parts.append("")
        else:
            parts[-1] += found[1] or found[3]
    return parts


def _checked(joiner: str) -> str:
    if not joiner or "\\" in joiner:
        raise ValueError(f"a joiner is not empty and holds no backslash, unlike {joiner!r}")
    return joiner


def _special(joiner: str) -> str:
    """The characters to escape in a label, as a pattern: every one of the joiner's, as a label could end in half of it."""
    return "[" + re.escape("\\" + _checked(joiner)) + "]"


def collapse_unary(tree: Tree, keep: str = "lowest", joiner: str = UNARY_JOINER, include_tags: bool = False) -> Tree:
    """Make one node of each chain of only children.

    Args:
        tree: a constituency tree.
        keep: ``"lowest"`` keeps the lowest node of a chain, ``"join"`` joins the labels as `join_labels` does.
        joiner: stands between joined labels.
        include_tags: whether a chain goes down to the preterminal; otherwise it ends above it.

    Raises:
        ValueError: ``keep`` is neither of the two, or the joiner is not usable.
    """
    if keep not in ("lowest", "join"):
        raise ValueError(f"keep is 'lowest' or 'join', not {keep!r}")

    def collapse(node: Tree, children: list[_Chain]) -> _Chain:
        if len(children) == 1 and _continues_chain(node.children[0], include_tags):
            children[0].labels.append(node.label)
            return children[0]
        return _Chain([node.label], [finish(chain) for chain in children])

    def finish(chain: _Chain) -> Tree:
        if keep == "lowest" or not chain.children:
            return Tree(chain.labels[0], chain.children)
        return Tree(join_labels(reversed(chain.labels), joiner), chain.children)

    return finish(tree.fold(collapse))


@dataclass
class _Chain:
    """A unary chain: its labels from the lowest up, and the children of the lowest."""

    labels: list[str]
    children: list[Tree]


def _continues_chain(only_child: Tree, include_tags: bool) -> bool:
    return bool(only_child.children) and (include_tags or not only_child.is_preterminal)


def restore_unary(tree: Tree, joiner: str = UNARY_JOINER) -> Tree:
    """The inverse of `collapse_unary` with ``keep="join"`` and the same joiner."""

    def restore(node: Tree, children: list[Tree]) -> Tree:
        if not children:
            return node
        for label in reversed(split_label(node.label, joiner)):
            children = [Tree(label, children)]
        return children[0]

    return tree.fold(restore)


def binarize(tree: Tree, form: str) -> Tree:
    """Give every node two children at most; `debinarize` undoes it.

    Args:
        tree: any tree.
        form: ``"right"`` makes ``(A b (@A c d))`` of ``(A b c d)``, ``"left"`` makes ``(A (@A b c) d)``; ``"lcrs"``
            gives the left-child right-sibling tree, in which words are nodes too and every node but `MISSING` has two
            children: its first child and its next sibling.

    Raises:
        ValueError: there is no such form.
    """
    if form == "right":
        return _unfold((tree, 0, len(tree.children)), partial(_split_off, from_left=True))
    if form == "left":
        return _unfold((tree, 0, len(tree.children)), partial(_split_off, from_left=False))
    if form == "lcrs":
        return _unfold(((tree,), 0), _first_child_and_sibling)
    raise _unknown_form(form)


def debinarize(tree: Tree, form: str) -> Tree:
    """The inverse of `binarize`.

    Raises:
        ValueError: there is no such form.
        TreeFormatError: the tree is not one that `binarize` gives.
    """
    if form in ("left", "right"):
        if _is_intermediate(tree):
            raise TreeFormatError(f"the root {tree.label!r} of a binarised tree is an intermediate node")
        return _unfold(tree, _without_intermediates)
    if form == "lcrs":
        if len(tree.children) != 2 or tree.children[1].children:
            raise TreeFormatError("the root of a left-child right-sibling tree is missing or has a sibling")
        return _unfold(tree, _all_children)
    raise _unknown_form(form)


def _unknown_form(form: str) -> ValueError:
    return ValueError(f"a tree is binarised 'left', 'right' or 'lcrs', not {form!r}")


def _unfold(root: Item, expand: Callable[[Item], tuple[str, Sequence[Item]]]) -> Tree:
    """Build a tree from the root down: ``expand`` gives the label of an item and the items of its children."""
    labels: list[str] = []
    child_counts: list[int] = []
    stack = [root]
    while stack:
        label, items = expand(stack.pop())
        labels.append(label)
        child_counts.append(len(items))
        stack.extend(reversed(items))
    return tree_from_preorder(labels, child_counts)


def _split_off(item: tuple[Tree, int, int], from_left: bool) -> tuple[str, list[tuple[Tree, int, int]]]:
    """Expand a node that stands for the children ``[start, end)`` of its original: all, or those not yet split off."""
    node, start, end = item
    if not node.children:
        return node.label, []
    whole = end - start == len(node.children)
    label = _escape_intermediate(node.label) if whole else INTERMEDIATE + node.label
    if end - start <= 2:
        return label, [_whole(child) for child in node.children[start:end]]
    if from_left:
        return label, [_whole(node.children[start]), (node, start + 1, end)]
    return label, [(node, start, end - 1), _whole(node.children[end - 1])]


def _whole(node: Tree) -> tuple[Tree, int, int]:
    return node, 0, len(node.children)


def _escape_intermediate(label: str) -> str:
    return "\\" + label if label.startswith((INTERMEDIATE, "\\")) else label


def _is_intermediate(node: Tree) -> bool:
    return bool(node.children) and node.label.startswith(INTERMEDIATE)


def _without_intermediates(node: Tree) -> tuple[str, list[Tree]]:
    if not node.children:
        return node.label, []
    children: list[Tree] = []
    stack = list(reversed(node.children))
    while stack:
        child = stack.pop()
        if _is_intermediate(child):
            stack.extend(reversed(child.children))
        else:
            children.append(child)
    return node.label.removeprefix("\\"), children


def _first_child_and_sibling(item: tuple[Sequence[Tree], int]) -> tuple[str, list[tuple[Sequence[Tree], int]]]:
    """Expand a place among siblings; the place behind the last of them holds nothing."""
    siblings, place = item
    if place == len(siblings):
        return MISSING.label, []
    return siblings[place].label, [(siblings[place].children, 0), (siblings, place + 1)]


def _all_children(node: Tree) -> tuple[str, list[Tree]]:
    """Collect the first child of a node and that child's chain of siblings."""
    children: list[Tree] = []
    child = node.children[0]
    while child.children:
        if len(child.children) != 2:
            count = len(child.children)
            raise TreeFormatError(f"the node {child.label!r} of a left-child right-sibling tree has {count} children")
        children.append(child)
        child = child.children[1]
    return node.label, children


def strip_function_tags(tree: Tree) -> Tree:
    """Cut labels and tags at the first ``-`` or ``=``: ``NP-SBJ=2`` becomes ``NP``; ``-NONE-`` and ``-LRB-`` stay."""
    return tree.map_labels(_without_function_tag)


def _without_function_tag(label: str) -> str:
    return label[:1] + _FUNCTION_TAG.sub("", label[1:]) if label[:1] not in ("-", "=") else label


def drop_empty_elements(tree: Tree, tag: str = EMPTY_TAG) -> Tree | None:
    """Remove the words of this tag and every constituent that holds no other word.

    Returns:
        what is left of the tree, None if nothing is.
    """

    def keep(node: Tree, children: list[Tree | None]) -> Tree | None:
        if not node.children:
            return node
        if node.is_preterminal and node.label == tag:
            return None
        remaining = [child for child in children if child is not None]
        return Tree(node.label, remaining) if remaining else None

    return tree.fold(keep)
