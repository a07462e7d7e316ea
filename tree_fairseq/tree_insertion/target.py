r"""Slots of partial trees, and which nodes of the target may be inserted in them.

Insertion-based tree decoding (Lukovnikov & Fischer 2021, Section 3.1) begins with a root node alone. Each step inserts
at most one node in every slot of the partial tree. A node has up to four slots:

==============  ====  =====================================================================================
slot            sign  a node inserted there
==============  ====  =====================================================================================
`DESCENDANT`    v     becomes the only child of the slot's node and takes over all its children
`ANCESTOR`      ^     comes between the slot's node and its parent; an only child and the root have no such slot
`FIRST_CHILD`   \-    becomes the first child of the slot's node, which has children
`NEXT_SIBLING`  \-    becomes the next sibling of the slot's node, which is not the root
==============  ====  =====================================================================================

Nodes are numbered in preorder. The slot of kind k at node i has the number ``4 i + k``. In a batch it has the number
``4 (M b + i) + k``, where b is the row and M the number of nodes of the largest tree.

The allowed set of a slot (Section 3.3.1) has the nodes of the target that may be inserted there. M is the number of
nodes of the target, with the root that decoding begins with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tree_fairseq.trees.tree import Tree

KINDS = 4
DESCENDANT, ANCESTOR, FIRST_CHILD, NEXT_SIBLING = range(KINDS)

ROOT_LABEL = "@R@"  # the label of the root that every decoding begins with. The target tree is its only child.


class TargetTree:
    """A tree to be decoded, in preorder. Node 0 is the root that decoding begins with; its parent is -1.

    ``depths`` count edges to the root, ``ranks`` left siblings; ``ends`` are the indices after the subtrees.
    """

    def __init__(self, labels: Sequence[str], parents: Sequence[int]):
        self.labels, self.parents = list(labels), list(parents)
        count = len(self.labels)
        self.depths = [0] * count
        self.ranks = [0] * count
        self.children: list[list[int]] = [[] for _ in range(count)]
        for node, parent in enumerate(self.parents[1:], start=1):
            self.depths[node] = self.depths[parent] + 1
            self.ranks[node] = len(self.children[parent])
            self.children[parent].append(node)
        self.ends = list(range(1, count + 1))
        for node in range(count - 1, 0, -1):
            parent = self.parents[node]
            self.ends[parent] = max(self.ends[parent], self.ends[node])

    @classmethod
    def of(cls, tree: Tree) -> TargetTree:
        """Puts a tree under the root that decoding begins with."""
        labels: list[str] = []
        parents: list[int] = []
        stack = [(Tree(ROOT_LABEL, (tree,)), -1)]
        while stack:
            node, parent = stack.pop()
            stack.extend((child, len(labels)) for child in reversed(node.children))
            labels.append(node.label)
            parents.append(parent)
        return cls(labels, parents)

    def __len__(self) -> int:
        return len(self.labels)

    def path(self, top: int, bottom: int) -> list[int]:
        """Returns the nodes strictly between an ancestor and a node, the highest first."""
        found = []
        while (bottom := self.parents[bottom]) != top:
            found.append(bottom)
        return found[::-1]

    def branch(self, top: int, node: int) -> int:
        """Returns the child of ``top`` whose subtree has ``node``."""
        while self.parents[node] != top:
            node = self.parents[node]
        return node


class Region(NamedTuple):
    """The nodes of the target that will be inserted through one slot, now or in later steps.

    The missing nodes of a partial tree fall into regions, one for each slot in which a node is allowed. Regions do not
    influence each other. ``kind`` is the kind of the slot; :meth:`anchor` finds its number in a partial tree.

    ==================  ===================  =====================================================================
    slot                bounds               allowed set: nodes that may be inserted now
    ==================  ===================  =====================================================================
    v of a leaf         ``top``              all strict descendants of ``top``
    v of an inner node  ``top``, ``bottom``  nodes below ``top`` on the path to ``bottom``, ``bottom`` included
    ^                   ``top``, ``bottom``  nodes strictly between ``top`` and ``bottom``
    ``-``               ``top``, ranks       the subtrees of the children of ``top`` from rank ``first`` to ``last``
    ==================  ===================  =====================================================================

    The other nodes of the region hang from these and become allowed later. In the slots below a node with one child in
    the partial tree, siblings of the child come from under its own parent in the target. With two or more children,
    siblings come from under their lowest common ancestor. That parent or ancestor is ``bottom`` of the slot v and
    ``top`` of the slots ``-``.
    """

    kind: int
    top: int
    bottom: int = -1
    first: int = -1
    last: int = -1

    def allowed(self, target: TargetTree) -> Sequence[int]:
        """Returns the allowed set, ascending."""
        if self.first >= 0 or self.bottom < 0:
            ((start, end),) = self.spans(target)
            return range(start, end)
        path = target.path(self.top, self.bottom)
        return [*path, self.bottom] if self.kind == DESCENDANT else path

    def spans(self, target: TargetTree) -> tuple[tuple[int, int], ...]:
        """Returns all nodes of the region, as half-open intervals."""
        top, bottom, ends = self.top, self.bottom, target.ends
        if self.first >= 0:
            children = target.children[top]
            return ((children[self.first], ends[children[self.last]]),)
        if bottom < 0:
            return ((top + 1, ends[top]),)
        if self.kind == DESCENDANT:
            return (top + 1, bottom + 1), (ends[bottom], ends[top])
        upper = target.branch(top, bottom)
        return (upper, bottom), (ends[bottom], ends[upper])

    def parts(self, target: TargetTree, node: int) -> list[Region]:
        """Returns the regions into which this one falls apart when an allowed node is inserted."""
        parent = target.parents[node]
        above = [] if parent == self.top else [Region(ANCESTOR, self.top, node)]
        if self.first >= 0:
            rank = target.ranks[target.branch(self.top, node)]
            gaps = [*_gap(self.top, self.first, rank - 1), *_gap(self.top, rank + 1, self.last)]
            return gaps + above + _below(target, node)
        if self.bottom < 0:
            return _path(self.top, parent) + _beside(target, node) + _below(target, node)
        if self.kind == DESCENDANT:
            return _path(self.top, parent) + _beside(target, node) + _path(node, self.bottom)
        return above + _path(node, target.parents[self.bottom]) + _beside(target, self.bottom)

    def anchor(self, target: TargetTree) -> tuple[int, int]:
        """Locates the slot in any partial tree: it has the number ``4 · before + offset``.

        ``before`` counts the nodes of the partial tree that precede the anchor, a node of the target or one past its
        end. For a slot v or ^ the anchor is the slot's node itself. The slot before a first child belongs to the
        nearest inserted ancestor of the gap, the last inserted node up to ``top``; that of a next sibling belongs to
        the first inserted node of the branch to the left of the gap.
        """
        if self.kind == FIRST_CHILD:
            return self.top + 1, FIRST_CHILD - KINDS
        if self.kind == NEXT_SIBLING:
            return target.children[self.top][self.first - 1], NEXT_SIBLING
        return (self.bottom if self.kind == ANCESTOR else self.top), self.kind


def _path(top: int, bottom: int) -> list[Region]:
    return [] if bottom == top else [Region(DESCENDANT, top, bottom)]


def _below(target: TargetTree, node: int) -> list[Region]:
    return [Region(DESCENDANT, node)] if target.children[node] else []


def _beside(target: TargetTree, node: int) -> list[Region]:
    parent, rank = target.parents[node], target.ranks[node]
    return [*_gap(parent, 0, rank - 1), *_gap(parent, rank + 1, len(target.children[parent]) - 1)]


def _gap(top: int, first: int, last: int) -> list[Region]:
    return [] if first > last else [Region(NEXT_SIBLING if first else FIRST_CHILD, top, first=first, last=last)]
