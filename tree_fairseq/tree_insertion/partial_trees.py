"""The partial trees of a batch during decoding: insertion and deletion of nodes, with the scores that belong to them.

R is the number of trees, M of nodes of the largest tree; nodes stand in preorder and are padded on the right.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tree_fairseq.tree_insertion.slots import ChangedTrees, SlotNumbers, delete_nodes, insert_nodes, with_slots

# While trees are changed, numbers take the place of labels, so that everything that belongs to a node can follow it.
_PADDING = -1


@dataclass(frozen=True)
class PartialTrees:
    """The partial trees of R rows.

    Attributes:
        labels: ``[R, M]`` int64
        parents: ``[R, M]`` int64 places of the parents in the row; -1 for roots and padding
        scores: ``[R, M]`` float, log-probabilities with which the nodes were inserted; 0 for roots and padding
        is_new: ``[R, M]`` bool, nodes that the last step inserted
        pad: label of padding
    """

    labels: Tensor
    parents: Tensor
    scores: Tensor
    is_new: Tensor
    pad: int

    @classmethod
    def roots(cls, count: int, root: int, pad: int, device: torch.device) -> PartialTrees:
        """The trees that decoding begins with: ``count`` roots.

        Args:
            count: R
            root: label of the roots
            pad: label of padding
            device: of the tensors
        """
        labels = torch.full((count, 1), root, device=device)
        return cls(labels, torch.full_like(labels, -1), labels.new_zeros(count, 1).float(), labels < 0, pad)

    @property
    def model_input(self) -> dict[str, Tensor]:
        """The trees as models read them."""
        return with_slots({"labels": self.labels, "parents": self.parents}, self.pad)

    @property
    def sizes(self) -> Tensor:
        """Numbers of nodes, ``[R]`` int64."""
        return (self.labels != self.pad).sum(dim=1)

    @property
    def is_deletable(self) -> Tensor:
        """``[R, M]`` bool, all nodes except roots."""
        return self.parents >= 0

    def rows_of(self, slots: Tensor) -> Tensor:
        """The rows ``[Z]`` of slots ``[Z]``."""
        return SlotNumbers(self.labels.size(1)).row(slots)

    def inserted(self, slots: Tensor, labels: Tensor, scores: Tensor) -> tuple[PartialTrees, Tensor]:
        """Inserts nodes, all at once.

        Args:
            slots: ``[Z]`` int64, different slots that the trees have
            labels: ``[Z]`` int64, of the new nodes
            scores: ``[Z]``, of the new nodes

        Returns:
            the new trees of up to M' nodes; and ``[R, M']`` int64, the former place of each node, -1 for new nodes and padding
        """
        old = self.labels.numel()
        numbers = torch.arange(old, old + len(slots), device=slots.device)
        changed = insert_nodes(self._numbered, slots, numbers, pad=_PADDING)
        return self._moved(changed, labels, scores), changed.sources

    def deleted(self, is_deleted: Tensor) -> PartialTrees:
        """Deletes nodes other than roots, ``[R, M]`` bool; their children take their places."""
        return self._moved(delete_nodes(self._numbered, is_deleted, pad=_PADDING))

    def select(self, rows: Tensor) -> PartialTrees:
        """Keeps some rows, ``[R']`` int64, and no more columns than they need."""
        width = int(self.sizes[rows].amax())
        return PartialTrees(*(part[rows, :width] for part in self._parts), self.pad)

    def cpu(self) -> PartialTrees:
        """The same trees on the CPU."""
        return PartialTrees(*(part.cpu() for part in self._parts), self.pad)

    @property
    def _parts(self) -> tuple[Tensor, ...]:
        return self.labels, self.parents, self.scores, self.is_new

    @property
    def _numbered(self) -> dict[str, Tensor]:
        numbers = torch.arange(self.labels.numel(), device=self.labels.device).view_as(self.labels)
        return {"labels": numbers.masked_fill(self.labels == self.pad, _PADDING), "parents": self.parents}

    def _moved(self, changed: ChangedTrees, labels: Tensor | None = None, scores: Tensor | None = None) -> PartialTrees:
        """Moves labels and scores of old nodes, and of inserted ones, to their new places."""
        is_node = changed.labels != _PADDING
        numbers = changed.labels.clamp(min=0)
        all_labels, all_scores = self.labels.flatten(), self.scores.flatten()
        if labels is None:
            is_new = self.is_new.flatten()[numbers] & is_node
        else:
            all_labels, all_scores = torch.cat([all_labels, labels]), torch.cat([all_scores, scores.to(all_scores)])
            is_new = numbers >= self.labels.numel()
        return PartialTrees(
            all_labels[numbers].masked_fill(~is_node, self.pad),
            changed.parents,
            all_scores[numbers].masked_fill(~is_node, 0),
            is_new,
            self.pad,
        )
