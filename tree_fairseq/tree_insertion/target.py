r"""Insertion-based tree decoding (Lukovnikov & Fischer 2021): trees to be decoded, slots of growing trees, and insertions.

A tree grows from its root alone. Between the nodes of a *partial tree* there are slots, at most four a node:

==============  ====  =====================================================================================
slot            sign  a node inserted there
==============  ====  =====================================================================================
`DESCENDANT`    v     becomes the only child of the slot's node and takes all its children over
`ANCESTOR`      ^     stands between the slot's node and its parent; an only child and the root have none
`FIRST_CHILD`   \-    becomes the first child of the slot's node, which has children
`NEXT_SIBLING`  \-    becomes the next sibling of the slot's node, which is not the root
==============  ====  =====================================================================================

One step fills any number of slots, with one node each. A slot of node i (in preorder of the partial tree) and kind k has the
number ``4 i + k``. N is the number of nodes of the target, n of the partial tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from tree_fairseq.trees.tree import Tree

KINDS = 4
DESCENDANT, ANCESTOR, FIRST_CHILD, NEXT_SIBLING = range(KINDS)

ROOT_LABEL = "@R@"
"""The label of the root that every decoding begins with; the tree asked for is its only child."""


class TargetTree:
    """A tree to be decoded, under the root that decoding begins with; its nodes are numbered in preorder.

    Attributes, lists of N integers but for ``labels``:
        labels: labels of the nodes; node 0 is the added root
        parents: parents of the nodes, -1 for the root
        depths: numbers of edges to the root
        ends: first node after the subtree of each node
        ranks: places among their siblings
        children: the children of each node
    """

    def __init__(self, tree: Tree, root_label: str = ROOT_LABEL):
        self.labels: list[str] = []
        self.parents: list[int] = []
        self.depths: list[int] = []
        self.ranks: list[int] = []
        self.children: list[list[int]] = []
        stack = [(Tree(root_label, (tree,)), -1, -1, 0)]
        while stack:
            node, parent, depth, rank = stack.pop()
            place = len(self.labels)
            self.labels.append(node.label)
            self.parents.append(parent)
            self.depths.append(depth + 1)
            self.ranks.append(rank)
            self.children.append([])
            if place:
                self.children[parent].append(place)
            last = len(node.children) - 1
            stack.extend((child, place, depth + 1, last - back) for back, child in enumerate(reversed(node.children)))
        self.ends = list(range(1, len(self.labels) + 1))
        for place in range(len(self.labels) - 1, 0, -1):
            parent = self.parents[place]
            self.ends[parent] = max(self.ends[parent], self.ends[place])

    def __len__(self) -> int:
        return len(self.labels)

    def path(self, top: int, bottom: int) -> list[int]:
        """The nodes between two nodes, the lower one first; neither is among them."""
        found = []
        node = self.parents[bottom]
        while node != top:
            found.append(node)
            node = self.parents[node]
        return found

    def branch(self, top: int, node: int) -> int:
        """The child of an ancestor that a node is, or lies under."""
        while self.parents[node] != top:
            node = self.parents[node]
        return node

    @cached_property
    def label_places(self) -> list[int]:
        """The alphabetical places of the labels."""
        places = {label: place for place, label in enumerate(sorted(set(self.labels)))}
        return [places[label] for label in self.labels]


def slot_mask(parents: np.ndarray) -> np.ndarray:
    """Which slots there are.

    Args:
        parents: [n] places of the parents in preorder, -1 for the root

    Returns:
        [n, 4] bool
    """
    counts = np.bincount(parents[1:], minlength=len(parents))
    mask = np.ones((len(parents), KINDS), dtype=bool)
    mask[:, FIRST_CHILD] = counts > 0
    mask[0, [ANCESTOR, NEXT_SIBLING]] = False
    mask[1:, ANCESTOR] = counts[parents[1:]] > 1
    return mask


def insert(parents: np.ndarray, slots: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Insert a node in each of some slots, all in one step.

    A node in the descendant slot of u takes over u's children and also what the same step inserts among them.

    Args:
        parents: [n] places of the parents of a tree's nodes in preorder, -1 for the root
        slots: [m] different slots

    Returns:
        sources [n + m] int64: for each node of the new tree in preorder its place in the old one, or n + i if it stands in
        the i-th slot; and parents [n + m] int64 of the new tree

    Raises:
        ValueError: a slot is named twice, or the tree has no such slot
    """
    count = len(parents)
    open_slots = np.flatnonzero(slot_mask(parents))
    if len(set(slots)) != len(slots) or not np.isin(slots, open_slots).all():
        raise ValueError(f"{list(slots)} are not different slots of a tree of {count} nodes")
    inserted = {slot: count + number for number, slot in enumerate(slots)}
    below = _children_after(parents.tolist(), inserted)
    sources, new_parents = [], []
    stack = [(0, -1)]
    while stack:
        node, parent = stack.pop()
        place = len(sources)
        sources.append(node)
        new_parents.append(parent)
        stack.extend((child, place) for child in reversed(below[node]))
    return np.array(sources), np.array(new_parents)


def _children_after(parents: list[int], inserted: dict[int, int]) -> list[list[int]]:
    """The children of the old and then the inserted nodes of a tree after a step."""
    count = len(parents)
    below: list[list[int]] = [[] for _ in range(count + len(inserted))]
    for node, parent in enumerate(parents):
        slot = KINDS * node
        if node:
            upper = inserted.get(slot + ANCESTOR, node)
            if upper != node:
                below[upper].append(node)
            below[parent].append(upper)
            if slot + NEXT_SIBLING in inserted:
                below[parent].append(inserted[slot + NEXT_SIBLING])
        if slot + FIRST_CHILD in inserted:
            below[node].append(inserted[slot + FIRST_CHILD])
    for node in range(count):
        lower = inserted.get(KINDS * node + DESCENDANT)
        if lower is not None:
            below[lower], below[node] = below[node], [lower]
    return below
