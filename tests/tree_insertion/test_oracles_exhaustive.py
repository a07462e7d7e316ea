"""Slots and allowed sets against a search through all that a step can do, on all small trees."""

from __future__ import annotations

import functools
import itertools

import pytest

from tests.tree_insertion.allowed_sets import allowed_sets
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion.target import (
    ANCESTOR,
    DESCENDANT,
    FIRST_CHILD,
    KINDS,
    NEXT_SIBLING,
    ROOT_LABEL,
    TargetTree,
)
from tree_fairseq.trees.tree import Tree

Insertions = dict[tuple[str, int], str]
"""By label of the slot's node and kind, the label to insert; no two nodes of a tree have the same label here."""

SMALL = 5  # Nodes of the largest trees that are all tried, with all their partial trees; the root comes on top


@functools.cache
def shapes(size: int) -> list[tuple]:
    """All ordered trees of a size, as nested tuples."""
    return forests(size - 1)


def forests(size: int) -> list[tuple]:
    if not size:
        return [()]
    return [(first, *rest) for part in range(1, size + 1) for first in shapes(part) for rest in forests(size - part)]


def numbered(shape: tuple) -> Tree:
    numbers = itertools.count(1)

    def build(children: tuple) -> Tree:
        return Tree(str(next(numbers)), [build(child) for child in children])

    return build(shape)


def part_of(tree: Tree, used: frozenset[str]) -> Tree:
    """The tree of the used nodes, the root among them: each under its nearest used ancestor."""

    def gather(node: Tree, below: list[list[Tree]]) -> list[Tree]:
        children = [tree for trees in below for tree in trees]
        return [Tree(node.label, children)] if node.label in used else children

    return tree.fold(gather)[0]


def step(tree: Tree, insertions: Insertions) -> Tree:
    """Section 3.1, by its words: what the tree becomes if all these insertions are made at once."""
    children = []
    if (tree.label, FIRST_CHILD) in insertions:
        children.append(Tree(insertions[tree.label, FIRST_CHILD]))
    for child in tree.children:
        grown = step(child, insertions)
        if (child.label, ANCESTOR) in insertions:
            grown = Tree(insertions[child.label, ANCESTOR], (grown,))
        children.append(grown)
        if (child.label, NEXT_SIBLING) in insertions:
            children.append(Tree(insertions[child.label, NEXT_SIBLING]))
    if (tree.label, DESCENDANT) in insertions:
        children = [Tree(insertions[tree.label, DESCENDANT], children)]
    return Tree(tree.label, children)


def open_slots(tree: Tree) -> list[tuple[str, int]]:
    slots = [(node.label, DESCENDANT) for node in tree.preorder()]
    for node in tree.preorder():
        if node.children:
            slots.append((node.label, FIRST_CHILD))
        for child in node.children:
            slots.append((child.label, NEXT_SIBLING))
            if len(node.children) > 1:
                slots.append((child.label, ANCESTOR))
    return slots


def only_child_beside(tree: Tree, slot: tuple[str, int]) -> str | None:
    for node in tree.preorder():
        if len(node.children) == 1 and slot in ((node.label, FIRST_CHILD), (node.children[0].label, NEXT_SIBLING)):
            return node.children[0].label
    return None


class Search:
    """Tries everything: in each step all sets of insertions that make a part of the target.

    Only nodes from under its parent in the target may come beside an only child, as in the paper.
    """

    def __init__(self, tree: Tree):
        self.tree = Tree(ROOT_LABEL, (tree,))
        self.below = {
            child.label: {node.label for node in parent.preorder()}
            for parent in self.tree.preorder()
            for child in parent.children
        }
        self.all = frozenset(node.label for node in self.tree.preorder())
        self.known = {self.all: True}

    def reaches(self, used: frozenset[str]) -> bool:
        """Whether some steps lead to the target."""
        if used not in self.known:
            self.known[used] = any(self.reaches(used | set(found.values())) for found in self.steps(used))
        return self.known[used]

    def steps(self, used: frozenset[str]):
        here = part_of(self.tree, used)
        fitting = [[None, *self.fitting(used, slot)] for slot in open_slots(here)]
        for labels in itertools.product(*fitting):
            insertions = {slot: label for slot, label in zip_equal(open_slots(here), labels) if label is not None}
            after = used | set(insertions.values())
            different = len(after) == len(used) + len(insertions) > len(used)
            if different and step(here, insertions) == part_of(self.tree, after):
                yield insertions

    def fitting(self, used: frozenset[str], slot: tuple[str, int]) -> list[str]:
        here = part_of(self.tree, used)
        labels = self.all - used
        if only := only_child_beside(here, slot):
            labels &= self.below[only]
        return [label for label in labels if step(here, {slot: label}) == part_of(self.tree, used | {label})]

    def allowed(self, used: frozenset[str]) -> set[tuple[tuple[str, int], str]]:
        """All insertions after which the target can still be reached."""
        return {
            (slot, label)
            for slot in open_slots(part_of(self.tree, used))
            for label in self.fitting(used, slot)
            if self.reaches(used | {label})
        }


def insertions_of(target: TargetTree, state) -> set[tuple[tuple[str, int], str]]:
    return {
        ((target.labels[state.nodes[slot // KINDS]], slot % KINDS), target.labels[node])
        for slot, node in zip_equal(state.slots.tolist(), state.candidates.tolist())
    }


@pytest.mark.parametrize("size", range(1, SMALL + 1))
def test_all_partial_trees_of_all_small_trees(size):
    for shape in shapes(size):
        tree = numbered(shape)
        search, target = Search(tree), TargetTree.of(tree)
        for marks in itertools.product((False, True), repeat=size):
            used = (True, *marks)
            labels = frozenset(itertools.compress(target.labels, used))
            if not search.reaches(labels):
                with pytest.raises(ValueError, match="a parent of their own"):
                    allowed_sets(target, used)
                continue
            state = allowed_sets(target, used)
            assert insertions_of(target, state) == search.allowed(labels)
            assert set(state.region_slots) == set(state.slots.tolist())
