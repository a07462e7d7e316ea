r"""The slots of partial trees: their numbers, which of them exist, and the trees after a decoding step.

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

Trees in sequences of labels and brackets have one slot after each token but the last (Stern et al. 2019).

:func:`slot_mask` and :func:`insert` work on one tree, :mod:`tree_fairseq.tree_insertion.tree_shapes` on a batch.
Nodes are in preorder everywhere. M is the number of nodes of a tree, or of the largest tree of a batch; B is the number
of trees, Z of slots of a batch. ``parents`` are indices, -1 for roots and padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from torch import Tensor
from torch.nn import functional

KINDS = 4
DESCENDANT, ANCESTOR, FIRST_CHILD, NEXT_SIBLING = range(KINDS)

Integers = TypeVar("Integers", int, np.ndarray, Tensor)


@dataclass(frozen=True)
class SlotNumbers:
    """Numbers the slots of a tree, of a batch of trees, or of a batch of sequences; in integers, arrays or tensors.

    The number of a slot is its flat index in an array ``[B, width, kinds]``: kind k of node i in row b is
    ``kinds · (width · b + i) + k``. The width is the number of nodes or tokens of the longest row, 0 for a single tree;
    ``kinds`` is 4 in trees and 1 in sequences.
    """

    width: int = 0
    kinds: int = KINDS

    def number(self, node: Integers, kind: int = 0, row: Integers = 0) -> Integers:
        """Returns the numbers of the slots of a kind at some nodes."""
        return self.kinds * (self.width * row + node) + kind

    def place(self, slots: Integers) -> Integers:
        """Returns the flat indices of the slots' nodes in ``[B, width]``: the nodes themselves in a single tree."""
        return slots // self.kinds

    def kind(self, slots: Integers) -> Integers:
        """Returns the kinds of slots, from 0."""
        return slots % self.kinds

    def row(self, slots: Integers) -> Integers:
        """Returns the rows of the batch that slots belong to."""
        return slots // (self.kinds * self.width)

    def in_row(self, slots: Integers, row: Integers) -> Integers:
        """Turns numbers of slots within a row into their numbers in the batch."""
        return slots + self.number(0, row=row)


IN_TREE = SlotNumbers()  # of a single tree


def slot_mask(parents: np.ndarray) -> np.ndarray:
    """Returns which slots a tree has, ``[M, 4]`` bool."""
    counts = np.bincount(parents[1:], minlength=len(parents))
    mask = np.ones((len(parents), KINDS), dtype=bool)
    mask[:, FIRST_CHILD] = counts > 0
    mask[0, [ANCESTOR, NEXT_SIBLING]] = False
    mask[1:, ANCESTOR] = counts[parents[1:]] > 1
    return mask


def insert(parents: np.ndarray, slots: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Inserts one node in each of the different slots ``[m]`` of a tree with ``parents`` ``[M]``, all in one step.

    A node in the descendant slot of u takes over the children of u, and also the nodes that the same step inserts
    between them. Raises ValueError if a slot occurs twice, or the tree has no such slot.

    Returns sources ``[M + m]`` int64: for each node of the new tree its index in the old tree, or M + i if the step
    inserts it in the i-th slot; and parents ``[M + m]`` int64 of the new tree.
    """
    count = len(parents)
    existing = np.flatnonzero(slot_mask(parents))
    if len(set(slots)) != len(slots) or not np.isin(slots, existing).all():
        raise ValueError(f"{list(slots)} are not different slots of a tree of {count} nodes")
    inserted = {slot: count + number for number, slot in enumerate(slots)}
    children = _children_after(parents.tolist(), inserted)
    sources, new_parents = [], []
    stack = [(0, -1)]
    while stack:
        node, parent = stack.pop()
        place = len(sources)
        sources.append(node)
        new_parents.append(parent)
        stack.extend((child, place) for child in reversed(children[node]))
    return np.array(sources), np.array(new_parents)


def _children_after(parents: list[int], inserted: dict[int, int]) -> list[list[int]]:
    """The children of the old nodes, then of the inserted ones, after a step."""
    count = len(parents)
    children: list[list[int]] = [[] for _ in range(count + len(inserted))]
    for node, parent in enumerate(parents):
        slot = IN_TREE.number(node)
        if node:
            upper = inserted.get(slot + ANCESTOR, node)
            if upper != node:
                children[upper].append(node)
            children[parent].append(upper)
            if slot + NEXT_SIBLING in inserted:
                children[parent].append(inserted[slot + NEXT_SIBLING])
        if slot + FIRST_CHILD in inserted:
            children[node].append(inserted[slot + FIRST_CHILD])
    for node in range(count):
        lower = inserted.get(IN_TREE.number(node, DESCENDANT))
        if lower is not None:
            children[lower], children[node] = children[node], [lower]
    return children


def sequence_slots(tokens: Tensor, pad: int) -> Tensor:
    """Returns the numbers of the slots of sequences ``[B, T]`` padded on the right, ``[Z]`` int64, ascending."""
    return functional.pad(tokens[:, 1:] != pad, (0, 1)).flatten().nonzero().squeeze(1)
