"""The shapes of all partial trees of a batch in NumPy, insertions of a step, and the arrays that models read.

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
import torch
from torch import Tensor

from tree_fairseq.tree_insertion.target import ANCESTOR, DESCENDANT, FIRST_CHILD, KINDS, NEXT_SIBLING

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
    """R trees, one after the other, with nodes in preorder. Indices count the n nodes of all trees."""

    lengths: np.ndarray  # ``[R]`` int64, numbers of nodes
    depths: np.ndarray  # ``[n]`` int64, edges to the root
    ends: np.ndarray  # ``[n]`` int64, the index after the subtree of each node

    @classmethod
    def of_parents(cls, trees: Sequence[np.ndarray]) -> TreeShapes:
        """Makes the shapes of trees, each given by the parents ``[m]`` of its nodes in preorder, -1 for the root."""
        lengths = np.array([len(parents) for parents in trees], np.int64)
        starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
        nodes = np.arange(len(starts))
        is_root = nodes == starts
        above = np.where(is_root, nodes, np.concatenate(trees) + starts)
        # Pointers to the parent double their reach in each turn, and so do those to the last child.
        depths = (~is_root).astype(np.int64)
        last = nodes.copy()
        last[above[~is_root]] = nodes[~is_root]
        while (farther := above[above]).tobytes() != above.tobytes():
            depths += depths[above]
            above = farther
        while (farther := last[last]).tobytes() != last.tobytes():
            last = farther
        return cls(lengths, depths, last + 1)

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
        return int(self.lengths.max())

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
        """Inserts one node in each slot of a list ``[I]`` without repetitions, all at once.

        Returns the new shapes, and the source of each of their nodes, ``[n + I]`` int64: its index among the old nodes,
        or n + i if it was inserted in the i-th slot.
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


ROLES = 5
AS_ANCESTOR, AS_DESCENDANT, AS_PARENT, AS_LEFT, AS_RIGHT = range(ROLES)
NO_NEIGHBOUR = AS_DESCENDANT
"""Stands for a missing neighbour of a slot: the first root as a descendant, a role that no root has."""
OPENING, CLOSING = 1, 2


def partial_tree_input(shapes: TreeShapes, labels: np.ndarray, pad: int) -> dict[str, Tensor]:
    """Returns all that a model reads of trees with the labels ``[n]`` int64.

    Returns:
        - ``labels`` and ``parents``, places in the row, each ``[B, M]`` int64, padded on the right with ``pad`` and -1
        - ``nodes`` ``[n]`` int64, the places of nodes in the flattened ``[B * M]``
        - ``slots`` ``[Z]`` int64, the ascending numbers of all slots (:mod:`tree_fairseq.tree_insertion.target`)
        - ``neighbours`` ``[Z, 3]`` int64, see :func:`slot_neighbours`
        - ``relations`` ``[B, M, M]`` int16 and ``relation_rows`` ``[K, 3]`` int64, see :func:`pair_relations`
        - ``brackets`` and ``bracket_places``, see :func:`bracket_sequences`
    """
    nodes, kinds = np.divmod(shapes.slots, KINDS)
    brackets, places = bracket_sequences(shapes)
    relations, relation_rows = pair_relations(shapes)
    arrays = {
        "labels": shapes.padded(labels, pad),
        "parents": shapes.padded_parents(),
        "nodes": shapes.places,
        "slots": KINDS * shapes.places[nodes] + kinds,
        "neighbours": slot_neighbours(shapes),
        "relations": relations,
        "relation_rows": relation_rows,
        "brackets": brackets,
        "bracket_places": places,
    }
    return {name: torch.from_numpy(values) for name, values in arrays.items()}


def read_partial_trees(trees: dict[str, Tensor], pad: int) -> dict[str, Tensor]:
    """Returns :func:`partial_tree_input` of ``labels`` and ``parents`` ``[B, M]``, on their device.

    Labels are padded with ``pad`` on the right. Parents are places in the row, -1 for roots.
    """
    labels, parents = (trees[name].cpu().numpy() for name in ("labels", "parents"))
    lengths = (labels != pad).sum(1)
    shapes = TreeShapes.of_parents([row[:length] for row, length in zip(parents, lengths.tolist())])
    made = partial_tree_input(shapes, labels[labels != pad], pad)
    return {name: values.to(trees["labels"].device) for name, values in made.items()}


def slot_neighbours(shapes: TreeShapes) -> np.ndarray:
    """Finds the nodes beside all slots of the trees and their roles there (section 3.2.3), ``[Z, 3]`` int64.

    Node i in role r is ``5 i + r``. A slot has up to three neighbours; missing ones are :data:`NO_NEIGHBOUR`.
    """
    own, parents, ends = shapes.nodes, shapes.parents, shapes.ends
    following = np.minimum(ends, len(own) - 1)
    has_next = ends < ends[parents]
    found = np.full((len(own), KINDS, 3), NO_NEIGHBOUR)
    found[:, DESCENDANT, 0] = ROLES * own + AS_ANCESTOR
    found[:, ANCESTOR, 0] = ROLES * own + AS_DESCENDANT
    found[:, FIRST_CHILD, 0] = ROLES * own + AS_PARENT
    found[:, FIRST_CHILD, 1] = ROLES * (own + 1) + AS_RIGHT
    found[:, NEXT_SIBLING, 0] = ROLES * parents + AS_PARENT
    found[:, NEXT_SIBLING, 1] = ROLES * own + AS_LEFT
    found[:, NEXT_SIBLING, 2] = np.where(has_next, ROLES * following + AS_RIGHT, NO_NEIGHBOUR)
    return found.reshape(-1, 3)[shapes.slots]


def bracket_sequences(shapes: TreeShapes) -> tuple[np.ndarray, np.ndarray]:
    """Writes trees as sequences such as ``( a b ( c d ) )``: every node with children is in brackets with its subtree.

    Returns where brackets are, ``[B, T]`` int8: :data:`OPENING`, :data:`CLOSING`, or 0 for labels and padding on the
    right; and the places of the nodes in the flattened ``[B * T]``, ``[n]`` int64.
    """
    is_inner = shapes.is_inner
    sizes = np.empty(2 * len(is_inner), np.int64)  # of events: an opening bracket and a label, or one of the two
    sizes[shapes.opens], sizes[shapes.closes] = 1 + is_inner, is_inner
    places = sizes.cumsum() - 1
    lengths = np.bincount(shapes.rows, 1 + 2 * is_inner, minlength=len(shapes)).astype(np.int64)
    width = int(lengths.max())
    moves = (np.arange(len(lengths)) * width - (lengths.cumsum() - lengths))[shapes.rows]
    labels, closing = places[shapes.opens] + moves, places[shapes.closes] + moves
    brackets = np.zeros(len(lengths) * width, np.int8)
    brackets[labels[is_inner] - 1] = OPENING
    brackets[closing[is_inner]] = CLOSING
    return brackets.reshape(-1, width), labels


STEPS = 10  # different counts of a relation, 0 to 9

# Rows of the embedding tables: a row of zeros, then one for each count and kind of relation.
NOTHING = 0
UP = 1
DOWN = UP + STEPS
ACROSS = DOWN + 2 * STEPS - 1  # 0 steps across; steps to the left come before it, steps to the right after it
CHILD = ACROSS + STEPS
CHILD_OF = CHILD + STEPS
RELATIONS = CHILD_OF + STEPS  # all rows

# Relations as numbers: padding, then paths by steps up, down and across, then children, and parents, by rank.
_SIDEWAYS = 2 * STEPS - 1
_FIRST_CHILD = 1 + STEPS * STEPS * _SIDEWAYS
_COUNT = _FIRST_CHILD + 2 * STEPS


def pair_relations(shapes: TreeShapes) -> tuple[np.ndarray, np.ndarray]:
    """Finds the relations of all pairs of nodes (Lukovnikov & Fischer 2021, Section 3.2.1).

    The path from node i to node j goes ``up`` from i to a child of their lowest common ancestor, ``across`` its
    children, and ``down`` to j. If one node is an ancestor of the other, the path only goes up or down. A parent and
    its child are related differently, as "k-th child of" and "k-th child". Counts from 9 on are one class.

    Returns:
        - ``[B, M, M]`` int16, the number of the relation of node i to node j among the K different ones of these trees;
          0 where j is padding. Where only i is padding, it may be any other
        - ``[K, 3]`` int64, rows of the embedding tables whose sum represents a relation
    """
    up, down, across = _later_paths(shapes)
    ups, downs = up + down.swapaxes(1, 2), down + up.swapaxes(1, 2)
    sideways = across - across.swapaxes(1, 2) + np.int8(STEPS - 1)
    numbers = 1 + (ups.astype(np.int16) * STEPS + downs) * _SIDEWAYS + sideways
    children = np.flatnonzero(shapes.depths)
    row, parents = shapes.rows[children], (shapes.parents - shapes.starts)[children]
    places, ranks = (shapes.nodes - shapes.starts)[children], np.minimum(shapes.ranks[children], STEPS - 1)
    numbers[row, parents, places] = _FIRST_CHILD + ranks
    numbers[row, places, parents] = _FIRST_CHILD + STEPS + ranks
    is_padding = np.arange(shapes.width) >= shapes.lengths[:, None]
    numbers[np.broadcast_to(is_padding[:, None], numbers.shape)] = 0
    is_present = np.zeros(_COUNT, bool)
    is_present[numbers.ravel()] = is_present[0] = True
    return (is_present.cumsum() - 1).astype(np.int16)[numbers], _ROWS[is_present]


_PAIRS_AT_ONCE = 2**20


def _later_paths(shapes: TreeShapes) -> np.ndarray:
    """Steps up, down and across from each node to each later one of its tree, ``[3, B, M, M]`` int8, at most 9 each.

    In preorder, the nodes after i up to a later node j that are closest to the root are children of the lowest common
    ancestor: those after i's branch, up to j's own branch. So running minima of depths and ranks find all three counts.
    Entries of earlier nodes are 0.
    """
    width = shapes.width
    bits = width.bit_length()
    # Depths and ranks in one number.
    dtype = np.int16 if bits <= 7 else np.int32 if bits <= 15 else np.int64
    largest, mask = np.iinfo(dtype).max, dtype(2**bits - 1)
    depths, ranks = (shapes.padded(values.astype(dtype), 0) for values in (shapes.depths, shapes.ranks))
    low, high = (depths << bits) + ranks, (depths << bits) + (mask - ranks)
    places, most = np.arange(width), dtype(STEPS - 1)
    found = np.empty((3, len(shapes), width, width), np.int8)
    size = max(1, _PAIRS_AT_ONCE // low.size)
    for first in range(0, width, size):
        some = slice(first, first + size)
        is_later = places > places[some, None]
        lowest, highest = (
            np.minimum.accumulate(np.where(is_later, keys[:, None], largest), axis=2) for keys in (low, high)
        )
        level = lowest >> bits  # the depth of both branches
        up, down = depths[:, some, None] + 1 - level, depths[:, None] + 1 - level
        forks = up > 0
        up -= forks
        down -= forks
        across = ((mask - (highest & mask)) - (lowest & mask) + 1) * forks
        for kind, counts in enumerate((up, down, across)):
            found[kind, :, some] = np.minimum(counts, most) * is_later
    return found


def _rows_of_relations() -> np.ndarray:
    """The rows of the embedding tables for all relations, ``[count, 3]`` int64."""
    rows = np.full((_COUNT, 3), NOTHING)
    ups, downs, sideways = np.indices((STEPS, STEPS, _SIDEWAYS)).reshape(3, -1)
    rows[1:_FIRST_CHILD] = np.stack([UP + ups, DOWN + downs, ACROSS - STEPS + 1 + sideways], axis=1)
    rows[_FIRST_CHILD:, 0] = np.arange(CHILD, RELATIONS)
    return rows


_ROWS = _rows_of_relations()
