"""Partial trees of a batch while they grow by insertions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tree_fairseq.tree_insertion.slots import ChangedTrees, delete_nodes, insert_nodes, with_slots

# Where trees are changed their nodes are numbers, so that anything that belongs to a node can be moved with it.
_NOBODY = -1


@dataclass(frozen=True)
class PartialTrees:
    """B partial trees of up to N nodes in preorder, padded on the right.

    Attributes:
        labels: ``[B, N]`` int64
        parents: ``[B, N]`` int64 places of the parents in the row; -1 for roots and padding
        scores: ``[B, N]`` float, log-probabilities with which the nodes were inserted; 0 for roots and padding
        is_new: ``[B, N]`` bool, nodes of the last insertion
        pad: label of padding
    """

    labels: Tensor
    parents: Tensor
    scores: Tensor
    is_new: Tensor
    pad: int

    @classmethod
    def roots(cls, count: int, root: int, pad: int, device: torch.device) -> PartialTrees:
        """That which every decoding begins with.

        Args:
            count: B
            root: label
            pad: label of padding
            device: of the tensors
        """
        labels = torch.full((count, 1), root, device=device)
        return cls(
            labels,
            torch.full_like(labels, -1),
            torch.zeros(count, 1, device=device),
            torch.zeros_like(labels).bool(),
            pad,
        )

    @property
    def partial_tree(self) -> dict[str, Tensor]:
        """The trees as models read them."""
        return with_slots({"labels": self.labels, "parents": self.parents}, self.pad)

    @property
    def counts(self) -> Tensor:
        """Numbers of nodes, ``[B]`` int64."""
        return (self.labels != self.pad).sum(dim=1)

    def inserted(self, slots: Tensor, labels: Tensor, scores: Tensor) -> tuple[PartialTrees, Tensor]:
        """The trees after nodes were inserted, all at once.

        Args:
            slots: ``[Z]`` int64 different slots that the trees have
            labels: ``[Z]`` int64, of the nodes
            scores: ``[Z]``, of the nodes

        Returns:
            the new trees of up to N' nodes; and ``[B, N']`` int64, the place where each node was before, -1 for new nodes and padding
        """
        old = self.labels.numel()
        numbers = torch.arange(old, old + len(slots), device=slots.device)
        changed = insert_nodes(self._numbered, slots, numbers, pad=_NOBODY)
        return self._moved(changed, labels, scores), changed.sources

    def deleted(self, is_deleted: Tensor) -> PartialTrees:
        """The trees after nodes were deleted; roots stay.

        Args:
            is_deleted: ``[B, N]`` bool
        """
        return self._moved(delete_nodes(self._numbered, is_deleted, pad=_NOBODY))

    def select(self, rows: Tensor) -> PartialTrees:
        """Some of the trees, no wider than they need.

        Args:
            rows: ``[B']`` int64
        """
        width = int(self.counts[rows].amax())
        parts = (part[rows, :width] for part in (self.labels, self.parents, self.scores, self.is_new))
        return PartialTrees(*parts, self.pad)

    @property
    def _numbered(self) -> dict[str, Tensor]:
        numbers = torch.arange(self.labels.numel(), device=self.labels.device).view_as(self.labels)
        return {"labels": numbers.masked_fill(self.labels == self.pad, _NOBODY), "parents": self.parents}

    def _moved(self, changed: ChangedTrees, labels: Tensor | None = None, scores: Tensor | None = None) -> PartialTrees:
        """What belongs to the nodes, and to those that were inserted, where they are now."""
        numbers = changed.labels
        is_there = numbers != _NOBODY
        numbers = numbers.clamp(min=0)
        old_labels, old_scores = self.labels.flatten(), self.scores.flatten()
        if labels is None:
            is_new = self.is_new.flatten()[numbers] & is_there
        else:
            old_labels, old_scores = torch.cat([old_labels, labels]), torch.cat([old_scores, scores.to(old_scores)])
            is_new = numbers >= self.labels.numel()
        return PartialTrees(
            old_labels[numbers].masked_fill(~is_there, self.pad),
            changed.parents,
            old_scores[numbers].masked_fill(~is_there, 0),
            is_new,
            self.pad,
        )
