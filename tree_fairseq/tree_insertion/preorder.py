"""Trees whose nodes stand in preorder, as a batch: what their parents say about depths, subtrees and siblings.

B is the number of trees, N of nodes of the largest one; nodes are padded on the right.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from tree_fairseq.tree_insertion.batch import existing_slots
from tree_fairseq.tree_insertion.target import ANCESTOR, DESCENDANT, FIRST_CHILD, KINDS, NEXT_SIBLING


@dataclass(frozen=True)
class PreorderTrees:
    """The nodes of B trees. Padding nodes are trees of their own.

    Attributes:
        parents: ``[B, N]`` int64 places of the parents, -1 for roots and padding
        is_node: ``[B, N]`` bool, false at padding
        depths: ``[B, N]`` int64, edges to the root
        ends: ``[B, N]`` int64, first place after the subtree of each node
        dominates: ``[B, N, N]`` bool, node j belongs to the subtree of node i, i included
    """

    parents: Tensor
    is_node: Tensor
    depths: Tensor
    ends: Tensor
    dominates: Tensor

    @classmethod
    def of(cls, parents: Tensor, is_node: Tensor) -> PreorderTrees:
        """Works out what the parents say, without a loop over rows or nodes.

        Args:
            parents: ``[B, N]`` int64, each before its children
            is_node: ``[B, N]`` bool, false at padding
        """
        places = torch.arange(parents.size(1), device=parents.device)
        is_later = places > places.unsqueeze(1)  # i x j
        # A subtree ends before the next node whose parent stands before its root.
        is_outside = is_later & (parents.unsqueeze(1) < places.unsqueeze(1))
        ends = torch.where(is_outside, places, parents.size(1)).amin(2)
        dominates = (places >= places.unsqueeze(1)) & (places < ends.unsqueeze(2))
        return cls(parents, is_node, dominates.sum(1) - 1, ends, dominates)

    @functools.cached_property
    def places(self) -> Tensor:
        """``[N]`` int64, 0 to N - 1."""
        return torch.arange(self.parents.size(1), device=self.parents.device)

    @functools.cached_property
    def is_inner(self) -> Tensor:
        """``[B, N]`` bool, which nodes have children."""
        return self.ends > self.places + 1

    @functools.cached_property
    def ranks(self) -> Tensor:
        """``[B, N]`` int64, how many siblings each node has before it."""
        are_siblings = self.parents.unsqueeze(2) == self.parents.unsqueeze(1)
        return are_siblings.tril(-1).sum(2)


# FROM modules/structure_tokens: Trees as sequences of labels and brackets, ``( a b ( c d ) )``, for a whole batch in tensors.


def structure_tokens(
    labels: Tensor, trees: PreorderTrees, opening: int, closing: int, pad: int
) -> tuple[Tensor, Tensor]:
    """Puts every node with children, and its subtree, between brackets.

    Args:
        labels: ``[B, N]`` int64
        trees: of the B rows
        opening, closing, pad: ids of the brackets and of padding

    Returns:
        the sequences, ``[B, L]`` int64, padded on the right; and ``[B, N]`` int64, where the nodes stand in them, 0 for padding
    """
    is_inner = trees.is_inner & trees.is_node
    opened = is_inner.long().cumsum(1)  # up to each node, its own bracket included
    closed = (is_inner.unsqueeze(2) & (trees.ends.unsqueeze(2) <= trees.places)).sum(1)
    places = trees.places + opened + closed
    # What stands before a closing bracket: all nodes before the end of the subtree, their brackets, and of closing brackets those of
    # subtrees that end earlier or deeper.
    later, earlier = trees.ends.unsqueeze(2), trees.ends.unsqueeze(1)  # of the bracket, of the others
    is_before = (earlier < later) | ((earlier == later) & (trees.places > trees.places.unsqueeze(1)))
    ends = trees.ends + opened.gather(1, trees.ends - 1) + (is_before & is_inner.unsqueeze(1)).sum(2)
    length = int((trees.is_node.sum(1) + 2 * is_inner.sum(1)).amax())
    # What is not there goes to a column of its own, which is cut off.
    tokens = torch.full((len(labels), length + 1), pad, dtype=labels.dtype, device=labels.device)
    tokens.scatter_(1, places.masked_fill(~trees.is_node, length), labels)
    tokens.scatter_(1, (places - 1).masked_fill(~is_inner, length), opening)
    tokens.scatter_(1, ends.masked_fill(~is_inner, length), closing)
    return tokens[:, :length], places.masked_fill(~trees.is_node, 0)


# FROM modules/tree_insertion: One step of insertion-based decoding for a whole batch of trees, and its reverse, in tensors.
#
# :func:`insert_nodes` is :func:`tree_fairseq.tree_insertion.target.insert` row by row. The new preorder is that of a key for each old and new
# node: what is inserted above and below old node i comes right before and after it, a next sibling comes where the subtree ends, those
# of deeper nodes first.

# What a node may bring into the new tree: a node in each of its slots, and itself.
_SELF = KINDS
_ELEMENTS = KINDS + 1


class ChangedTrees(NamedTuple):
    """Trees after a step, padded on the right; N' is the number of nodes of the largest one.

    Attributes:
        labels: ``[B, N']`` int64
        parents: ``[B, N']`` int64 places of the parents in preorder, -1 for roots and padding
        sources: ``[B, N']`` int64 places of the nodes before the step, -1 for new nodes and padding
    """

    labels: Tensor
    parents: Tensor
    sources: Tensor

    @property
    def partial_tree(self) -> dict[str, Tensor]:
        """The trees as models read them."""
        return {"labels": self.labels, "parents": self.parents}


def insert_nodes(partial_tree: dict[str, Tensor], slots: Tensor, answers: Tensor, keep: int, pad: int) -> ChangedTrees:
    """Inserts a node in each slot whose answer is not to keep it as it is; the result is always trees.

    Args:
        partial_tree: ``labels`` and ``parents``, each ``[B, N]`` int64, in preorder
        slots: ``[Z]`` int64 different slots, numbered ``4 · (N · row + node) + kind``; those that a tree does not have are passed over
        answers: ``[Z]`` int64, a label for each, other than ``pad``, or ``keep``
        keep: the answer that nothing is to be inserted
        pad: label of padding
    """
    labels, parents = partial_tree["labels"], partial_tree["parents"]
    trees = PreorderTrees.of(parents, labels != pad)
    batch, width = labels.shape
    inserted = torch.full((batch * width * KINDS,), keep, dtype=labels.dtype, device=labels.device)
    inserted = inserted.index_copy(0, slots, answers).view(batch, width, KINDS)
    is_inserted = existing_slots(parents, trees.is_node) & (inserted != keep)

    exists = torch.cat([is_inserted, trees.is_node.unsqueeze(2)], dim=2).flatten(1)  # B x N * 5
    order, places = _in_order(_keys(trees).flatten(1), exists)
    above = _parents_after(trees, is_inserted).flatten(1).gather(1, order)
    is_there = exists.gather(1, order)
    new_labels = torch.cat([inserted, labels.unsqueeze(2)], dim=2).flatten(1).gather(1, order)
    new_parents = places.gather(1, above.clamp(min=0)).masked_fill(above < 0, -1)
    is_old = is_there & (order % _ELEMENTS == _SELF)
    return ChangedTrees(
        new_labels.masked_fill(~is_there, pad),
        new_parents.masked_fill(~is_there, -1),
        (order // _ELEMENTS).masked_fill(~is_old, -1),
    )


def delete_nodes(partial_tree: dict[str, Tensor], is_deleted: Tensor, pad: int) -> ChangedTrees:
    """Deletes nodes; their children take their places. Roots stay.

    Args:
        partial_tree: ``labels`` and ``parents``, each ``[B, N]`` int64, in preorder
        is_deleted: ``[B, N]`` bool
        pad: label of padding
    """
    labels, parents = partial_tree["labels"], partial_tree["parents"]
    trees = PreorderTrees.of(parents, labels != pad)
    is_kept = trees.is_node & (~is_deleted | (parents < 0))
    # The nearest ancestor is the last one in preorder.
    is_above = trees.dominates.triu(1) & is_kept.unsqueeze(2)
    nearest = torch.where(is_above, trees.places.unsqueeze(1), -1).amax(1)
    order, places = _in_order(trees.places.expand_as(labels), is_kept)
    is_there = is_kept.gather(1, order)
    nearest = nearest.gather(1, order)
    new_parents = places.gather(1, nearest.clamp(min=0)).masked_fill((nearest < 0) | ~is_there, -1)
    return ChangedTrees(
        labels.gather(1, order).masked_fill(~is_there, pad), new_parents, order.masked_fill(~is_there, -1)
    )


def _in_order(keys: Tensor, exists: Tensor) -> tuple[Tensor, Tensor]:
    """Sorts what exists of each row of ``[B, E]``.

    Returns:
        ``[B, N']`` int64, which stands in each place of the longest row's; and ``[B, E]`` int64, the place of each
    """
    order = keys.masked_fill(~exists, torch.iinfo(keys.dtype).max).argsort(1)
    places = torch.empty_like(order).scatter_(
        1, order, torch.arange(order.size(1), device=order.device).expand_as(order)
    )
    return order[:, : int(exists.sum(1).amax())], places


def _keys(trees: PreorderTrees) -> Tensor:
    """Places in the new preorder, ``[B, N, 5]`` int64, of all that may be there, different from each other."""
    width = trees.parents.size(1)
    first = trees.places.expand_as(trees.parents) * (width + 4)
    keys = first.new_empty(*first.shape, _ELEMENTS)
    # Before them, at most N next siblings of nodes whose subtrees end here, inner ones first.
    for number, element in enumerate((ANCESTOR, _SELF, DESCENDANT, FIRST_CHILD), width):
        keys[..., element] = first + number
    keys[..., NEXT_SIBLING] = trees.ends * (width + 4) + width - 1 - trees.depths
    return keys


def _parents_after(trees: PreorderTrees, is_inserted: Tensor) -> Tensor:
    """The parents of all that may be in the new trees, as elements of their row ``5 · node + element``; -1 for roots.

    Args:
        trees: before the step
        is_inserted: ``[B, N, 4]`` bool, which slots are filled

    Returns:
        ``[B, N, 5]`` int64
    """
    own = trees.places.expand_as(trees.parents) * _ELEMENTS
    # Children, old and new, come under the node in the descendant slot, if there is one.
    holders = own + torch.where(is_inserted[..., DESCENDANT], DESCENDANT, _SELF)
    above = holders.gather(1, trees.parents.clamp(min=0)).masked_fill(trees.parents < 0, -1)
    parents = own.new_empty(*own.shape, _ELEMENTS)
    parents[..., ANCESTOR] = parents[..., NEXT_SIBLING] = above
    parents[..., DESCENDANT] = own + _SELF
    parents[..., FIRST_CHILD] = holders
    parents[..., _SELF] = torch.where(is_inserted[..., ANCESTOR], own + ANCESTOR, above)
    return parents
