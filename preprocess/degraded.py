"""Degraded parses: parsers a share of whose constituents, single words among them, is attached elsewhere at random.

``--tree-parser preprocess.degraded:stanza-0.4`` gives Stanza's trees with a share of 0.4. The words keep their order,
and the words of a sentence alone decide which constituents move, so neither the order of the sentences nor the number
of processes matters.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from functools import partial
from typing import Any

from tree_fairseq.parsing.parsers import ParserOptions, build_parser, register_parser, registered_parser
from tree_fairseq.trees.tree import Tree, tree_from_nested

_PARSERS = ("stanza", "right-branching")


class DegradedParser:
    """A parser with a share of its constituents attached elsewhere."""

    def __init__(self, name: str, share: float, options: ParserOptions) -> None:
        self._parser = build_parser(options.replace(name=name))
        self._share = share
        self.inventory = self._parser.inventory
        self.tags = getattr(self._parser, "tags", self._parser.inventory)

    def identity(self) -> dict[str, Any]:
        return {**self._parser.identity(), "degraded": self._share}

    def parse(self, sentences: list[list[str]]) -> Sequence[Tree | None]:
        return [tree and self._degraded(tree) for tree in self._parser.parse(sentences)]

    def _degraded(self, tree: Tree) -> Tree:
        key = json.dumps(["noise", 0, tree.leaves()]).encode()
        return reattach(tree, self._share, random.Random(hashlib.sha256(key).digest()))


for _name in _PARSERS:
    _, _expensive, _devices = registered_parser(_name)
    for _share in (percent / 100 for percent in range(1, 101)):
        _register = register_parser(f"{_name}-{_share:g}", expensive=_expensive, devices=_devices)
        _register(partial(DegradedParser, _name, _share))


class _Node:
    """A node of a tree that changes; a word has no children."""

    __slots__ = ("children", "label", "parent")

    def __init__(self, label: str, parent: _Node | None) -> None:
        self.label = label
        self.parent = parent
        self.children: list[_Node] = []

    @property
    def is_phrase(self) -> bool:
        """Whether constituents can be attached: not to a word or its tag."""
        return any(child.children for child in self.children)


def reattach(tree: Tree, share: float, generator: random.Random) -> Tree:
    """Attaches random constituents elsewhere.

    The constituents below the root, which include words with their tags, are visited in preorder, and each is moved
    with probability ``share``. Its new parent is drawn uniformly from the phrases under which the order of the words
    stays the same: phrases that end where the constituent begins, phrases that begin where it ends, and the ancestors
    of which it is at the edge. An only child stays in its place, and so does a word in a flat tree. Every constituent
    keeps its label.

    Every constituent takes two numbers from the generator. So a larger share moves the same constituents and more.
    """
    root, nodes = _copy(tree)
    for node in nodes[1:]:
        drawn, place = generator.random(), generator.random()
        if drawn < share and (places := _places(node)):
            _move(node, *places[int(place * len(places))])
    return tree_from_nested(root, lambda node: (node.label, node.children))


def _copy(tree: Tree) -> tuple[_Node, list[_Node]]:
    """Copies a tree; also returns its constituents in preorder, without words."""
    root = _Node(tree.label, None)
    nodes, stack = [], [(tree, root)]
    while stack:
        own, copy = stack.pop()
        if own.children:
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
