"""Partial trees and sequences of a batch during decoding: insertion and deletion, with the scores of their labels.

R is the number of rows, one for each sentence that is still decoded; rows are padded on the right.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Callable, TypeVar

import torch
from torch import Tensor

from tree_fairseq.tree_insertion.slots import ChangedTrees, SlotNumbers, delete_nodes, insert_nodes, with_slots

# While trees are changed, numbers take the place of labels, so that everything that belongs to a node can follow it.
_PADDING = -1

Outputs = TypeVar("Outputs", bound="PartialOutputs")


@dataclass(frozen=True)
class PartialOutputs:
    """Outputs of R rows. Subclasses add tensors with the same first two dimensions.

    Attributes:
        pad: label of padding
        labels: ``[R, M]`` int64 of trees, ``[R, T]`` of sequences
        scores: log-probabilities with which the labels were inserted, 0 for padding and for labels from the start
    """

    pad: int
    labels: Tensor
    scores: Tensor

    slot_kinds = 1
    """Number of slots of a node or token."""

    @property
    def model_input(self) -> Any:
        """The outputs as models read them."""
        return self.labels

    @property
    def lengths(self) -> Tensor:
        """``[R]`` int64, numbers of nodes or tokens."""
        return (self.labels != self.pad).sum(dim=1)

    def rows_of(self, slots: Tensor) -> Tensor:
        """Returns the rows ``[Z]`` of slots ``[Z]``."""
        return SlotNumbers(self.labels.size(1), self.slot_kinds).row(slots)

    def select(self: Outputs, rows: Tensor) -> Outputs:
        """Keeps some rows, ``[R']`` int64, and no more columns than they need."""
        width = int(self.lengths[rows].amax())
        return self._mapped(lambda values: values[rows, :width])

    def cpu(self: Outputs) -> Outputs:
        """Returns the same outputs on the CPU."""
        return self._mapped(Tensor.cpu)

    def _mapped(self: Outputs, change: Callable[[Tensor], Tensor]) -> Outputs:
        names = [part.name for part in fields(self) if part.name != "pad"]
        return replace(self, **{name: change(getattr(self, name)) for name in names})


@dataclass(frozen=True)
class PartialTrees(PartialOutputs):
    """Partial trees of up to M nodes in preorder.

    Attributes:
        parents: ``[R, M]`` int64 places of the parents in the row; -1 for roots and padding
        is_new: ``[R, M]`` bool, nodes that the last step inserted
    """

    parents: Tensor
    is_new: Tensor

    slot_kinds = SlotNumbers.kinds

    @classmethod
    def roots(cls, count: int, root: int, pad: int, device: torch.device) -> PartialTrees:
        """Returns the trees that decoding begins with: ``count`` roots with the label ``root``."""
        labels = torch.full((count, 1), root, device=device)
        return cls(pad, labels, torch.zeros(count, 1, device=device), torch.full_like(labels, -1), labels == pad)

    @property
    def model_input(self) -> dict[str, Tensor]:
        """The trees as models read them."""
        return with_slots({"labels": self.labels, "parents": self.parents}, self.pad)

    def inserted(self, slots: Tensor, labels: Tensor, scores: Tensor) -> tuple[PartialTrees, Tensor]:
        """Inserts nodes in different slots, all at once; arguments are ``[Z]``.

        Returns the new trees of up to M' nodes; and the former place of each node, ``[R, M']`` int64, -1 for new nodes
        and padding.
        """
        old = self.labels.numel()
        numbers = torch.arange(old, old + len(slots), device=slots.device)
        changed = insert_nodes(self._numbered, slots, numbers, pad=_PADDING)
        all_labels = torch.cat([self.labels.flatten(), labels])
        all_scores = torch.cat([self.scores.flatten(), scores.to(self.scores)])
        return self._moved(changed, all_labels, all_scores, changed.labels >= old), changed.sources

    def deleted(self, is_deleted: Tensor) -> PartialTrees:
        """Deletes nodes other than roots, ``[R, M]`` bool; their children take their places."""
        changed = delete_nodes(self._numbered, is_deleted, pad=_PADDING)
        is_new = self.is_new.flatten()[changed.labels.clamp(min=0)] & (changed.labels != _PADDING)
        return self._moved(changed, self.labels.flatten(), self.scores.flatten(), is_new)

    @property
    def _numbered(self) -> dict[str, Tensor]:
        numbers = torch.arange(self.labels.numel(), device=self.labels.device).view_as(self.labels)
        return {"labels": numbers.masked_fill(self.labels == self.pad, _PADDING), "parents": self.parents}

    def _moved(self, changed: ChangedTrees, labels: Tensor, scores: Tensor, is_new: Tensor) -> PartialTrees:
        is_padding, numbers = changed.labels == _PADDING, changed.labels.clamp(min=0)
        labels, scores = labels[numbers].masked_fill(is_padding, self.pad), scores[numbers].masked_fill(is_padding, 0)
        return PartialTrees(self.pad, labels, scores, changed.parents, is_new)


@dataclass(frozen=True)
class PartialSequences(PartialOutputs):
    """Partial sequences of up to T tokens, each from BOS to EOS."""

    @classmethod
    def empty(cls, count: int, ends: tuple[int, int], pad: int, device: torch.device) -> PartialSequences:
        """Returns the sequences that decoding begins with: ``count`` times ``ends``, BOS and EOS."""
        labels = torch.tensor([ends], device=device).repeat(count, 1)
        return cls(pad, labels, torch.zeros(count, 2, device=device))

    def inserted(self, slots: Tensor, labels: Tensor, scores: Tensor) -> PartialSequences:
        """Inserts tokens in different slots, each after a token, all at once; arguments are ``[Z]``."""
        is_token = self.labels != self.pad
        is_filled = torch.zeros_like(self.labels)
        is_filled.view(-1)[slots] = 1
        width = int((self.lengths + is_filled.sum(1)).amax())
        places = torch.arange(is_token.size(1), device=slots.device) + is_filled.cumsum(1) - is_filled  # R x T
        # Padding goes to a column of its own, which is cut off.
        old_places = places.masked_fill(~is_token, width)
        new_places = self.rows_of(slots) * (width + 1) + places.flatten()[slots] + 1
        parts = []
        for old, new, fill in ((self.labels, labels, self.pad), (self.scores, scores.to(self.scores), 0)):
            part = old.new_full((len(old), width + 1), fill).scatter_(1, old_places, old)
            part.view(-1)[new_places] = new
            parts.append(part[:, :width])
        return PartialSequences(self.pad, *parts)
