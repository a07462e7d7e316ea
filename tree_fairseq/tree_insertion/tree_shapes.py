"""The shapes of all partial trees of a batch, without labels, in NumPy; insertions and deletions change them at once.

All of this happens on the CPU: in the processes that load training data, and between two steps of decoding. So a model
needs neither a loop nor a shape that depends on its data.

The trees stand one after the other. In preorder, n nodes are 2n events, the opening and the closing of each node. Node
i opens at event ``2 i - depth``, since all nodes before it have closed except its ancestors, and closes at the last
event of its subtree. A step puts new events beside those of old nodes, always in the same order. So cumulative sums
give all places after the step, without a loop over nodes or trees.

R is the number of trees, n of all nodes, M of nodes of the largest tree, Z of slots.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tree_fairseq.tree_insertion.slots import ANCESTOR, DESCENDANT, FIRST_CHILD, KINDS, NEXT_SIBLING

# The new events at the opening and at the closing of an old node, in their order, `_OWN` is that of the node itself.
_OWN = KINDS
_AT_OPENING = (ANCESTOR, _OWN, DESCENDANT, FIRST_CHILD, FIRST_CHILD)
_AT_CLOSING = (DESCENDANT, _OWN, ANCESTOR, NEXT_SIBLING, NEXT_SIBLING)
_EVENTS = _AT_OPENING + _AT_CLOSING
# Columns of the opening and of the closing of each element among these events.
_OPENS = np.array([_EVENTS.index(element) for element in range(KINDS + 1)])
_CLOSES = np.array([len(_EVENTS) - 1 - _EVENTS[::-1].index(element) for element in range(KINDS + 1)])


@dataclass(frozen=True)
class TreeShapes:
    """R trees, one after the other, with nodes in preorder. Indices count the n nodes of all trees.

    Attributes:
        lengths: ``[R]`` int64, numbers of nodes
        depths: ``[n]`` int64, edges to the root
        ends: ``[n]`` int64, the index after the subtree of each node
        min_width: least M of padded arrays
    """

    lengths: np.ndarray
    depths: np.ndarray
    ends: np.ndarray
    min_width: int = 1

    @classmethod
    def of_roots(cls, count: int) -> TreeShapes:
        """Makes trees of one node."""
        return cls(np.ones(count, np.int64), np.zeros(count, np.int64), np.arange(1, count + 1))

    @classmethod
    def of_parents(cls, trees: Sequence[np.ndarray], min_width: int = 1) -> TreeShapes:
        """Makes the shapes of trees, each given by the parents ``[m]`` of its nodes in preorder, -1 for the root."""
        lengths = np.array([len(parents) for parents in trees], np.int64)
        parents = np.concatenate(trees) + np.repeat(np.cumsum(lengths) - lengths, lengths)
        nodes = np.arange(len(parents))
        is_root = nodes == np.repeat(np.cumsum(lengths) - lengths, lengths)
        above = np.where(is_root, nodes, parents)
        # Pointers to the parent double their reach in each turn, and so do those to the last child.
        depths = (~is_root).astype(np.int64)
        last = nodes.copy()
        last[above[~is_root]] = nodes[~is_root]
        while (farther := above[above]).tobytes() != above.tobytes():
            depths += depths[above]
            above = farther
        while (farther := last[last]).tobytes() != last.tobytes():
            last = farther
        return cls(lengths, depths, last + 1, min_width)

    def __len__(self) -> int:
        return len(self.lengths)

    @functools.cached_property
    def nodes(self) -> np.ndarray:
        """``[n]`` int64, 0 to n - 1."""
        return np.arange(len(self.depths))

    @functools.cached_property
    def rows(self) -> np.ndarray:
        """``[n]`` int64, the tree of each node."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @functools.cached_property
    def starts(self) -> np.ndarray:
        """``[n]`` int64, the root of each node's tree."""
        return np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)

    @functools.cached_property
    def width(self) -> int:
        """M."""
        return max(int(self.lengths.max()), self.min_width)

    @functools.cached_property
    def places(self) -> np.ndarray:
        """``[n]`` int64, the nodes in flattened ``[R, M]`` arrays."""
        return self.nodes + self.rows * self.width - self.starts

    @functools.cached_property
    def opens(self) -> np.ndarray:
        """``[n]`` int64, the event at which each node opens."""
        return 2 * self.nodes - self.depths

    @functools.cached_property
    def closes(self) -> np.ndarray:
        """``[n]`` int64, the event at which each node closes."""
        return self.opens + 2 * (self.ends - self.nodes) - 1

    @functools.cached_property
    def parents(self) -> np.ndarray:
        """``[n]`` int64, -1 for roots."""
        count = len(self.depths)
        # The parent is the last node before a node that is one level higher.
        levels = np.sort(self.depths * count + self.nodes)
        parents = levels[np.searchsorted(levels, (self.depths - 1) * count + self.nodes) - 1] % count
        return np.where(self.depths > 0, parents, -1)

    @functools.cached_property
    def ranks(self) -> np.ndarray:
        """``[n]`` int64, how many left siblings each node has; 0 for roots."""
        order = np.argsort(self.parents, kind="stable")
        grouped = self.parents[order]
        ranks = np.empty_like(order)
        ranks[order] = self.nodes - np.searchsorted(grouped, grouped)
        return np.where(self.depths > 0, ranks, 0)

    @functools.cached_property
    def is_inner(self) -> np.ndarray:
        """``[n]`` bool, which nodes have children."""
        return self.ends > self.nodes + 1

    @functools.cached_property
    def slots(self) -> np.ndarray:
        """``[Z]`` int64, ascending: kind k of node i is ``4 i + k``."""
        has_parent, parents = self.depths > 0, self.parents
        exists = np.empty((len(parents), KINDS), bool)
        exists[:, DESCENDANT] = True
        # An only child begins right after its parent and ends with it.
        exists[:, ANCESTOR] = has_parent & ((parents != self.nodes - 1) | (self.ends != self.ends[parents]))
        exists[:, FIRST_CHILD] = self.is_inner
        exists[:, NEXT_SIBLING] = has_parent
        return exists.ravel().nonzero()[0]

    def padded(self, values: np.ndarray, fill: int) -> np.ndarray:
        """Pads values ``[n]`` to ``[R, M]`` on the right."""
        found = np.full(len(self) * self.width, fill, values.dtype)
        found[self.places] = values
        return found.reshape(len(self), self.width)

    def padded_parents(self) -> np.ndarray:
        """Returns the parents as places in their rows, ``[R, M]`` int64; -1 for roots and padding."""
        return self.padded(np.maximum(self.parents - self.starts, -1), -1)

    def inserted(self, slots: np.ndarray) -> tuple[TreeShapes, np.ndarray]:
        """Inserts a node in each of different slots ``[I]``, all at once.

        Returns the new shapes, and for each of their nodes ``[n + I]`` int64 its index here, or n + i if it was
        inserted in the i-th of the slots.
        """
        count, total = len(self.depths), len(self.depths) + len(slots)
        nodes, kinds = np.divmod(slots, KINDS)
        exists = np.zeros((count, KINDS + 1), bool)
        exists[:, _OWN] = True
        exists[nodes, kinds] = True
        events = np.empty((2 * count, len(_AT_OPENING)), bool)
        events[self.opens] = exists[:, _AT_OPENING]
        events[self.closes] = exists[:, _AT_CLOSING]
        places = events.ravel().cumsum().reshape(events.shape) - 1
        beside = np.concatenate([places[self.opens], places[self.closes]], axis=1)  # n x 10
        opens = np.concatenate([beside[:, _OPENS[_OWN]], beside[nodes, _OPENS[kinds]]])
        closes = np.concatenate([beside[:, _CLOSES[_OWN]], beside[nodes, _CLOSES[kinds]]])
        lengths = self.lengths + np.bincount(self.rows[nodes], minlength=len(self))
        is_open = np.zeros(2 * total, np.int64)
        is_open[opens] = 1
        opened = is_open.cumsum()
        sources = np.empty(total, np.int64)
        sources[opened[opens] - 1] = np.arange(total)
        return TreeShapes(lengths, 2 * np.arange(total) - opens[sources], opened[closes[sources]]), sources

    def select(self, rows: np.ndarray) -> tuple[TreeShapes, np.ndarray]:
        """Keeps some trees, ``[R']`` int64, ascending. Returns the new shapes and the nodes ``[n']`` that stay."""
        is_kept = np.zeros(len(self), bool)
        is_kept[rows] = True
        stay = is_kept[self.rows]
        before = np.concatenate([[0], np.cumsum(stay)])
        return TreeShapes(self.lengths[rows], self.depths[stay], before[self.ends[stay]]), np.flatnonzero(stay)
