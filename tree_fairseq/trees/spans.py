"""Trees as arrays: the label, the span ``[start, end)`` and the depth of every node, in preorder.

Spans are half-open and count leaves from the start of the line, so the trees of a forest follow one another. Preorder,
spans and depths determine the forest.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np

from tree_fairseq.errors import TreeFormatError
from tree_fairseq.trees.tree import Forest, Tree, check_preterminals


@dataclass(frozen=True, eq=False)
class TreeSpans:
    """A forest as arrays; M is the number of its nodes, not counting words."""

    leaves: list[str]  # the words from left to right
    labels: list[str]  # of the M nodes in preorder, including preterminals and unary chains
    spans: np.ndarray  # int32 [M, 3], the columns start, end and depth; the depth of a root is 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpans):
            return NotImplemented
        return self.leaves == other.leaves and self.labels == other.labels and np.array_equal(self.spans, other.spans)


def spans_from_flat(leaves: list[str], labels: list[str], flat: list[int]) -> TreeSpans:
    """A `TreeSpans` from one list of ``3 M`` numbers: start, end and depth of each node."""
    # Going through an array is faster than numpy's conversion of a list of this length.
    spans = np.frombuffer(array("i", flat), dtype=np.int32) if flat else np.empty(0, dtype=np.int32)
    return TreeSpans(leaves, labels, spans.reshape(-1, 3))


def encode(forest: Forest) -> TreeSpans:
    """Converts a forest to arrays; the inverse is `decode`.

    Raises MixedChildrenError or OutsideTreeError if a word is not the only child of its parent.
    """
    leaves: list[str] = []
    labels: list[str] = []
    flat: list[int] = []
    # A node to enter and its depth, or None and the index in `flat` of the end of the node to leave.
    stack: list[tuple[Tree | None, int]] = [(tree, 0) for tree in reversed(forest)]
    while stack:
        node, number = stack.pop()
        if node is None:
            flat[number] = len(leaves)
            continue
        if not node.children:
            check_preterminals(forest)  # raises the error about the word
        labels.append(node.label)
        flat += (len(leaves), len(leaves) + 1, number)
        if node.is_preterminal:
            leaves.append(node.children[0].label)
        else:
            stack.append((None, len(flat) - 2))
            stack += [(child, number + 1) for child in reversed(node.children)]
    return spans_from_flat(leaves, labels, flat)


def decode(encoded: TreeSpans) -> Forest:
    """Converts arrays back to their forest; raises TreeFormatError if they do not describe one in preorder."""
    rows = encoded.spans.tolist()
    if len(rows) != len(encoded.labels):
        raise TreeFormatError(f"{len(encoded.labels)} labels for {len(rows)} spans")
    # waiting[depth]: the nodes at that depth to the right of the current one, the rightmost first.
    waiting: list[list[tuple[Tree, int, int]]] = [[]]
    for number in reversed(range(len(rows))):
        start, end, depth = rows[number]
        if not 0 <= depth <= number:
            raise TreeFormatError(f"node {number} has the depth {depth}")
        waiting += ([] for _ in range(depth + 2 - len(waiting)))
        # Nodes deeper than a child should have been given to their parents before.
        if any(waiting[depth + 2 :]):
            message = f"node {number} at depth {depth} is not the parent of the deeper nodes that follow it"
            raise TreeFormatError(message)
        children = waiting[depth + 1][::-1]
        del waiting[depth + 1 :]
        _check_tiling(f"node {number}", start, end, children, len(encoded.leaves))
        if not children and end != start + 1:
            raise TreeFormatError(f"node {number} spans [{start}, {end}) but has no children")
        subtrees = [child for child, _, _ in children] or [Tree(encoded.leaves[start])]
        waiting[depth].append((Tree(encoded.labels[number], subtrees), start, end))
    roots = waiting[0][::-1]
    if roots:
        _check_tiling("the line", 0, len(encoded.leaves), roots, len(encoded.leaves))
    elif encoded.leaves:
        raise TreeFormatError(f"the line spans [0, {len(encoded.leaves)}) but has no children")
    return tuple(root for root, _, _ in roots)


def _check_tiling(name: str, start: int, end: int, children: list[tuple[Tree, int, int]], leaf_count: int) -> None:
    """Checks that a span lies within the line and that the children, if any, cover it without gap or overlap."""
    if not 0 <= start < end <= leaf_count:
        raise TreeFormatError(f"{name} has the span [{start}, {end}) among {leaf_count} leaves")
    reached = start
    for _, child_start, child_end in children:
        if child_start != reached:
            raise TreeFormatError(f"{name} has a child at {child_start} where one at {reached} is expected")
        reached = child_end
    if children and reached != end:
        raise TreeFormatError(f"{name} ends at {end}, but its children end at {reached}")


def reduce_spans(spans: np.ndarray) -> np.ndarray:
    """Selects the nodes that a model reads: those over two or more leaves, and of each unary chain only the lowest.

    This drops preterminals, except those of split words, which cover several pieces. ``spans`` is int ``[M, 3]`` (or
    more columns), start and end first, in preorder. The result is int64, the rows to keep, in order.
    """
    is_lowest = np.append(~_equals_next(spans), True)[: len(spans)]
    return np.flatnonzero(is_lowest & (spans[:, 1] - spans[:, 0] >= 2))


def unary_chains(spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nodes that `reduce_spans` keeps, and the top of the unary chain of each: two int64 arrays of one length.

    The chain of ``kept[k]`` consists of the rows ``top[k] … kept[k]``, its top first.
    """
    kept = reduce_spans(spans)
    is_top = np.append(True, ~_equals_next(spans))[: len(spans)]
    top = np.maximum.accumulate(np.where(is_top, np.arange(len(spans)), 0))
    return kept, top[kept]


def _equals_next(spans: np.ndarray) -> np.ndarray:
    """bool ``[M - 1]``: whether the next row has the same span. In preorder it is the only child then."""
    return (spans[1:, :2] == spans[:-1, :2]).all(axis=1)


def reduced_depth(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The depth of each node among the given nodes, for instance among those that `reduce_spans` keeps.

    In preorder a node follows its ancestors and the nodes that end before it starts. Its depth is therefore its rank
    minus the number of nodes that end before it starts. ``start`` and ``end`` are int ``[M]``, in preorder; the result
    is int32 ``[M]``, 0 at each root.
    """
    ended = np.searchsorted(np.sort(end), start, side="right")
    return (np.arange(len(start)) - ended).astype(np.int32)
