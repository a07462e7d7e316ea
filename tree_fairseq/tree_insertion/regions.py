"""Regions of a target: the nodes that will come through one slot of a partial tree, and how they fall apart when one of them comes.

N is the number of nodes of the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tree_fairseq.tree_insertion.target import ANCESTOR, DESCENDANT, FIRST_CHILD, KINDS, NEXT_SIBLING, TargetTree


class Region(NamedTuple):
    """The nodes of the target that will come through one slot, now or later; regions never influence each other.

    ==================  ===================  ========================================================================
    slot                bounds               nodes allowed now; the others wait for these
    ==================  ===================  ========================================================================
    v of a leaf         ``top``              all strict descendants of ``top``
    v of an inner node  ``top``, ``bottom``  those below ``top`` on the path to ``bottom``, ``bottom`` included
    ^                   ``top``, ``bottom``  those between ``top`` and ``bottom``
    ``-``               ``top``, ranks       subtrees of the children of ``top`` from rank ``first`` to ``last``
    ==================  ===================  ========================================================================

    Where a used node has one child in the partial tree, that child can have siblings only under its own parent in the
    target; two or more children can, under their lowest common ancestor. ``bottom`` of v and ``top`` of - are that node.
    """

    slot: int
    top: int
    bottom: int = -1
    first: int = -1
    last: int = -1

    @property
    def kind(self) -> int:
        """Kind of the slot."""
        return self.slot % KINDS

    def allowed(self, target: TargetTree) -> Sequence[int]:
        """The nodes that may be inserted now, ascending."""
        if self.first >= 0 or self.bottom < 0:
            ((start, end),) = self.spans(target)
            return range(start, end)
        path = target.path(self.top, self.bottom)[::-1]
        return [*path, self.bottom] if self.kind == DESCENDANT else path

    def spans(self, target: TargetTree) -> tuple[tuple[int, int], ...]:
        """All its nodes, as intervals."""
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
        """The regions that it falls into when one of the nodes allowed now is inserted, with the numbers of their kinds for slots."""
        parent = target.parents[node]
        if self.first >= 0:
            rank = target.ranks[target.branch(self.top, node)]
            found = [*_gap(self.top, self.first, rank - 1), *_gap(self.top, rank + 1, self.last)]
            above = [] if parent == self.top else [Region(ANCESTOR, self.top, node)]
            return found + above + _below(target, node)
        if self.bottom < 0:
            return _path(self.top, parent) + _beside(target, node) + _below(target, node)
        if self.kind == DESCENDANT:
            return _path(self.top, parent) + _beside(target, node) + _path(node, self.bottom)
        above = [] if parent == self.top else [Region(ANCESTOR, self.top, node)]
        return above + _path(node, target.parents[self.bottom]) + _beside(target, self.bottom)

    def anchor(self, target: TargetTree) -> tuple[int, int]:
        """Where its slot is found: its number is ``4 · before + offset``, with ``before`` nodes there that precede a node in preorder.

        The neighbour at the left of a gap is the first node that is there of the branch before it, and the nearest ancestor that is there
        of a gap's top is the last one that is there up to it.

        Returns:
            that node of the target, which may be one past its end, and the offset
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
    """The gaps left and right of a node, under its parent."""
    parent, rank = target.parents[node], target.ranks[node]
    return [*_gap(parent, 0, rank - 1), *_gap(parent, rank + 1, len(target.children[parent]) - 1)]


def _gap(top: int, first: int, last: int) -> list[Region]:
    return [] if first > last else [Region(NEXT_SIBLING if first else FIRST_CHILD, top, first=first, last=last)]
