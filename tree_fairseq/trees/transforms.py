"""Functions that change the shape or the labels of a tree. The words keep their order."""

from __future__ import annotations

import hashlib
import json
import random

from tree_fairseq.trees.subwords import SUBWORD_SUFFIX
from tree_fairseq.trees.tree import Forest, Tree, tree_from_nested

INTERMEDIATE = "@"  # the first character of the labels of the nodes that `binarize` inserts


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


class _Node:
    """A node of a tree that changes; a word has no children."""

    __slots__ = ("children", "label", "parent")

    def __init__(self, label: str, parent: _Node | None) -> None:
        self.label = label
        self.parent = parent
        self.children: list[_Node] = []

    @property
    def is_phrase(self) -> bool:
        """Whether constituents can be attached: not to a word, its tag, or the node over the pieces of a word."""
        return any(child.children and not child.label.endswith(SUBWORD_SUFFIX) for child in self.children)


def reattach(tree: Tree, share: float, generator: random.Random) -> Tree:
    """Attaches random constituents elsewhere.

    The constituents below the root, which include words with their tags, are visited in preorder, and each is moved
    with probability ``share``. Its new parent is drawn uniformly from the phrases under which the order of the words
    stays the same: phrases that end where the constituent begins, phrases that begin where it ends, and the ancestors
    of which it is at the edge. An only child stays in its place, and so does a word in a flat tree. Every constituent
    keeps its label, and the pieces of a word stay together.

    Every constituent takes two numbers from the generator. So a larger share moves the same constituents and more.
    """
    root, nodes = _copy(tree)
    for node in nodes[1:]:
        drawn, place = generator.random(), generator.random()
        if drawn < share and (places := _places(node)):
            _move(node, *places[int(place * len(places))])
    return tree_from_nested(root, lambda node: (node.label, node.children))


def degrade(forest: Forest, share: float) -> Forest:
    """Attaches a share of the constituents of each tree elsewhere (`reattach`); the words of a tree decide which."""
    if not share:
        return forest
    keys = (json.dumps(["noise", 0, tree.leaves()]).encode() for tree in forest)
    generators = (random.Random(hashlib.sha256(key).digest()) for key in keys)
    return tuple(reattach(tree, share, generator) for tree, generator in zip(forest, generators))


def _copy(tree: Tree) -> tuple[_Node, list[_Node]]:
    """Copies a tree; also returns its constituents in preorder, without words and pieces of words."""
    root = _Node(tree.label, None)
    nodes, stack = [], [(tree, root)]
    while stack:
        own, copy = stack.pop()
        if own.children and not own.label.endswith(SUBWORD_SUFFIX):
            nodes.append(copy)
        copy.children = [_Node(child.label, copy) for child in own.children]
        stack += reversed(list(zip(own.children, copy.children)))
    return root, nodes


def _places(node: _Node) -> list[tuple[_Node, int]]:
    """The phrases under which a node can stand, each with the node's place among the children."""
    parent = node.parent
    if parent is None or len(parent.children) == 1:
        return []
    places: list[tuple[_Node, int]] = []
    for side in (0, -1):
        # Up, as long as the node is at this edge of each phrase.
        below, above = node, parent
        while above.children[side] is below and above.parent is not None:
            below, above = above, above.parent
            places.append((above, above.children.index(below) + (side == -1)))
        if above.children[side] is below:
            continue
        # Down along the near edge of what is beside it.
        beside = above.children[above.children.index(below) + (1 if side else -1)]
        while beside.is_phrase:
            places.append((beside, 0 if side else len(beside.children)))
            beside = beside.children[0 if side else -1]
    return places


def _move(node: _Node, phrase: _Node, place: int) -> None:
    # A new place is never under the old parent, so the numbers of places there do not change.
    if node.parent is not None:
        node.parent.children.remove(node)
    phrase.children.insert(place, node)
    node.parent = phrase
