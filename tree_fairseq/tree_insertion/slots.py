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

:func:`slot_mask` and :func:`insert` work on one tree in NumPy; :func:`slot_masks`, :func:`insert_nodes` and
:func:`delete_nodes` on a batch in tensors. Nodes are in preorder everywhere. M is the number of nodes of a tree, or of
the largest tree of a batch; B is the number of trees, Z of slots of a batch. ``parents`` are indices, -1 for roots and
padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tree_fairseq.tree_insertion.relations import PreorderTrees

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

# One tree


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


# A batch of trees


def slot_masks(parents: Tensor, is_node: Tensor) -> Tensor:
    """Returns which slots the trees of a batch have, ``[B, M, 4]`` bool; arguments are ``[B, M]``."""
    has_parent = parents >= 0
    above = parents.clamp(min=0)
    children = torch.zeros_like(parents).scatter_add_(1, above, has_parent.long())  # B x M
    masks = parents.new_zeros((*parents.shape, KINDS), dtype=torch.bool)
    masks[..., DESCENDANT] = is_node
    masks[..., ANCESTOR] = has_parent & (children.gather(1, above) > 1)
    masks[..., FIRST_CHILD] = children > 0
    masks[..., NEXT_SIBLING] = has_parent
    return masks


def with_slots(trees: dict[str, Tensor], pad: int) -> dict[str, Tensor]:
    """Adds ``slots`` ``[Z]`` int64, the ascending numbers of all slots, to ``labels`` and ``parents`` ``[B, M]``."""
    masks = slot_masks(trees["parents"], trees["labels"] != pad)
    return {**trees, "slots": masks.flatten().nonzero().squeeze(1)}


def sequence_slots(tokens: Tensor, pad: int) -> Tensor:
    """Returns the numbers of the slots of sequences ``[B, T]`` padded on the right, ``[Z]`` int64, ascending."""
    return functional.pad(tokens[:, 1:] != pad, (0, 1)).flatten().nonzero().squeeze(1)


class ChangedTrees(NamedTuple):
    """Trees after a step, ``[B, M']`` int64; M' is the number of nodes of the largest one.

    ``sources`` are places in the flattened ``[B * M]`` old nodes, or ``B * M + i`` for the node inserted in the i-th
    given slot; -1 for padding.
    """

    sources: Tensor
    parents: Tensor


# The new preorder of a batch is that of a key for each old and new node. Nodes that are inserted above and below old
# node i come right before and after it. A next sibling comes where the subtree of its left neighbour ends, those of
# deeper nodes first.

# An old node brings up to five elements into the new tree: a node in each of its slots, and itself.
_SELF = KINDS
_ELEMENTS = KINDS + 1


def insert_nodes(parents: Tensor, is_node: Tensor, slots: Tensor) -> ChangedTrees:
    """Inserts one node in each of different slots of a batch, ``[I]`` int64; :func:`insert` row by row."""
    trees = PreorderTrees.of(parents, is_node)
    inserted = parents.new_full((parents.numel() * KINDS,), -1)
    inserted[slots] = torch.arange(parents.numel(), parents.numel() + len(slots), device=slots.device)
    inserted = inserted.view(*parents.shape, KINDS)
    sources = torch.cat([inserted, _numbered(is_node).unsqueeze(2)], dim=2).flatten(1)  # B x M * 5
    order, places = _sorted(_keys(trees).flatten(1), sources >= 0)
    above = _parents_after(trees, inserted >= 0).flatten(1).gather(1, order)
    return _changed(sources.gather(1, order), above, places)


def delete_nodes(parents: Tensor, is_node: Tensor, is_deleted: Tensor) -> ChangedTrees:
    """Deletes nodes of a batch, ``[B, M]`` bool; their children take their places. Roots stay."""
    trees = PreorderTrees.of(parents, is_node)
    is_kept = is_node & (~is_deleted | (parents < 0))
    # In preorder, the nearest ancestor is the last one.
    is_above = trees.dominates.triu(1) & is_kept.unsqueeze(2)
    nearest = torch.where(is_above, trees.places.unsqueeze(1), -1).amax(1)
    order, places = _sorted(trees.places.expand_as(parents), is_kept)
    return _changed(_numbered(is_kept).gather(1, order), nearest.gather(1, order), places)


def _numbered(exists: Tensor) -> Tensor:
    """The places of existing elements of ``[B, X]`` in the flattened tensor, -1 for the others."""
    return torch.arange(exists.numel(), device=exists.device).view_as(exists).masked_fill(~exists, -1)


def _changed(sources: Tensor, above: Tensor, places: Tensor) -> ChangedTrees:
    """The trees whose nodes ``[B, M']`` hang below elements ``above``, given the place of each element."""
    parents = places.gather(1, above.clamp(min=0))
    return ChangedTrees(sources, parents.masked_fill((above < 0) | (sources < 0), -1))


def _sorted(keys: Tensor, exists: Tensor) -> tuple[Tensor, Tensor]:
    """Sorts elements of ``[B, X]`` that exist by keys: the element ``[B, M']`` at each place, the place of each."""
    order = keys.masked_fill(~exists, torch.iinfo(keys.dtype).max).argsort(1)
    ascending = torch.arange(order.size(1), device=order.device).expand_as(order)
    places = torch.empty_like(order).scatter_(1, order, ascending)
    return order[:, : int(exists.sum(1).amax())], places


def _keys(trees: PreorderTrees) -> Tensor:
    """Different sort keys ``[B, M, 5]`` int64 of all elements in the new preorder."""
    width = trees.parents.size(1)
    first = trees.places.expand_as(trees.parents) * (width + 4)
    keys = first.new_empty(*first.shape, _ELEMENTS)
    # Before a node come up to M next siblings of nodes whose subtrees end there, inner ones first.
    for number, element in enumerate((ANCESTOR, _SELF, DESCENDANT, FIRST_CHILD), width):
        keys[..., element] = first + number
    keys[..., NEXT_SIBLING] = trees.ends * (width + 4) + width - 1 - trees.depths
    return keys


def _parents_after(trees: PreorderTrees, is_inserted: Tensor) -> Tensor:
    """The parents ``[B, M, 5]`` of all elements in the new trees, as indices ``5 · node + element``; -1 for roots."""
    own = trees.places.expand_as(trees.parents) * _ELEMENTS
    # Old and new children hang from the node in the descendant slot, if it is filled.
    holders = own + torch.where(is_inserted[..., DESCENDANT], DESCENDANT, _SELF)
    above = holders.gather(1, trees.parents.clamp(min=0)).masked_fill(trees.parents < 0, -1)
    parents = own.new_empty(*own.shape, _ELEMENTS)
    parents[..., ANCESTOR] = parents[..., NEXT_SIBLING] = above
    parents[..., DESCENDANT] = own + _SELF
    parents[..., FIRST_CHILD] = holders
    parents[..., _SELF] = torch.where(is_inserted[..., ANCESTOR], own + ANCESTOR, above)
    return parents
