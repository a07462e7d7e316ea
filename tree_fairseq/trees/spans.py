"""Trees as arrays: the label, the span ``[start, end)`` and the depth of every node, in preorder.

Spans are half-open and count leaves from the start of the line, so the trees of a forest follow one another. Preorder,
spans and depths determine the forest.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np

from tree_fairseq.errors import TreeFormatError
from tree_fairseq.trees.tree import Forest, Tree, misplaced_word


@dataclass(frozen=True, eq=False)
class SpanForest:
    """A forest as arrays; M is the number of its nodes, not counting words.

    Attributes:
        leaves: the words from left to right
        labels: the labels of the M nodes in preorder, including preterminals and unary chains
        spans: int32 ``[M, 3]``, the columns start, end and depth; the depth of a root is 0
    """

    leaves: list[str]
    labels: list[str]
    spans: np.ndarray

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SpanForest):
            return NotImplemented
        return self.leaves == other.leaves and self.labels == other.labels and np.array_equal(self.spans, other.spans)


def spans_from_flat(leaves: list[str], labels: list[str], flat: list[int]) -> SpanForest:
    """A `SpanForest` from one list of ``3 M`` numbers: start, end and depth of each node."""
    # Going through an array is faster than numpy's conversion of a list of this length.
    spans = np.frombuffer(array("i", flat), dtype=np.int32) if flat else np.empty(0, dtype=np.int32)
    return SpanForest(leaves, labels, spans.reshape(-1, 3))


def encode(forest: Forest) -> SpanForest:
    """Converts a forest to arrays; the inverse is `decode`.

    Raises:
        MixedChildrenError: a word is not the only child of its parent
        OutsideTreeError: one of the trees is a bare word
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
            raise misplaced_word(node.label, None)
        labels.append(node.label)
        flat += (len(leaves), len(leaves) + 1, number)
        if node.is_preterminal:
            leaves.append(node.children[0].label)
            continue
        stack.append((None, len(flat) - 2))
        for child in reversed(node.children):
            if not child.children:
                raise misplaced_word(child.label, node)
            stack.append((child, number + 1))
    return spans_from_flat(leaves, labels, flat)


def decode(encoded: SpanForest) -> Forest:
    """Converts arrays to the forest that they encode; the inverse of `encode`.

    Raises:
        TreeFormatError: the arrays do not describe a forest in preorder
    """
    rows = encoded.spans.tolist()
    if len(rows) != len(encoded.labels):
        raise TreeFormatError(f"{len(encoded.labels)} labels for {len(rows)} spans")
    # waiting[depth]: the nodes at that depth to the right of the current one, the rightmost first.
    waiting: list[list[tuple[Tree, int, int]]] = [[]]
    for number in range(len(rows) - 1, -1, -1):
        start, end, depth = rows[number]
        if depth < 0 or depth > number:
            raise TreeFormatError(f"node {number} has the depth {depth}")
        while len(waiting) < depth + 2:
            waiting.append([])
        children = waiting[depth + 1][::-1]
        waiting[depth + 1] = []
        # Nodes deeper than a child should have been given to their parents before.
        if len(waiting) > depth + 2 and any(waiting[depth + 2 :]):
            raise TreeFormatError(
                f"node {number} at depth {depth} is not the parent of the deeper nodes that follow it"
            )
        del waiting[depth + 2 :]
        _check_tiling(number, (start, end), children, len(encoded.leaves))
        subtrees = [child for child, _, _ in children] or [Tree(encoded.leaves[start])]
        waiting[depth].append((Tree(encoded.labels[number], subtrees), start, end))
    roots = waiting[0][::-1]
    if roots or encoded.leaves:
        _check_tiling(None, (0, len(encoded.leaves)), roots, len(encoded.leaves))
    return tuple(root for root, _, _ in roots)


def _check_tiling(
    number: int | None, span: tuple[int, int], children: list[tuple[Tree, int, int]], leaf_count: int
) -> None:
    """Checks that a node lies within the line and that its children cover it without gap or overlap."""
    name = "the line" if number is None else f"node {number}"
    start, end = span
    if not 0 <= start < end <= leaf_count:
        raise TreeFormatError(f"{name} has the span [{start}, {end}) among {leaf_count} leaves")
    if not children:
        if number is None or end != start + 1:
            raise TreeFormatError(f"{name} spans [{start}, {end}) but has no children")
        return
    reached = start
    for _, child_start, child_end in children:
        if child_start != reached:
            raise TreeFormatError(f"{name} has a child at {child_start} where one at {reached} is expected")
        reached = child_end
    if reached != end:
        raise TreeFormatError(f"{name} ends at {end}, but its children end at {reached}")


def reduce_spans(spans: np.ndarray) -> np.ndarray:
    """Selects the nodes that a model reads: those over two or more leaves, and of each unary chain only the lowest.

    This drops preterminals, except those of split words, which cover several pieces.

    Args:
        spans: int ``[M, 3]`` (or more columns), start and end first, in preorder

    Returns:
        int64, the rows to keep, in order
    """
    if not len(spans):
        return np.empty(0, dtype=np.int64)
    is_lowest = np.concatenate((~_equals_next(spans), [True]))
    return np.flatnonzero(is_lowest & (spans[:, 1] - spans[:, 0] >= 2))


def unary_chains(spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nodes that `reduce_spans` keeps, and the top of the unary chain of each.

    Args:
        spans: int ``[M, 3]``, in preorder

    Returns:
        ``(kept, chain_start)``, int64 arrays of the same length: the chain of ``kept[k]`` consists of the rows
        ``chain_start[k] … kept[k]``, its top first
    """
    kept = reduce_spans(spans)
    if not len(kept):
        return kept, kept
    is_top = np.concatenate(([True], ~_equals_next(spans)))
    top = np.maximum.accumulate(np.where(is_top, np.arange(len(spans)), 0))
    return kept, top[kept]


def _equals_next(spans: np.ndarray) -> np.ndarray:
    """bool ``[M - 1]``: whether the next row has the same span. In preorder it is the only child then."""
    return (spans[1:, :2] == spans[:-1, :2]).all(axis=1)


def reduced_depth(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The depth of each node among the given nodes, for instance among those that `reduce_spans` keeps.

    In preorder a node follows its ancestors and the nodes that end before it starts. Its depth is therefore its rank
    minus the number of nodes that end before it starts.

    Args:
        start: int ``[M]``, in preorder
        end: int ``[M]``

    Returns:
        int32 ``[M]``, 0 at each root
    """
    ended = np.searchsorted(np.sort(end), start, side="right")
    return (np.arange(len(start)) - ended).astype(np.int32)
