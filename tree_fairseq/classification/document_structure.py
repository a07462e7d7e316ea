"""Which sentences make up which document, as indices that lay positions out one way or the other."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Optional

import torch
from torch import Tensor

from tree_fairseq.classification.super_root import SuperRoots
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.tree_transformer.structure import TreeStructure


@dataclass(frozen=True)
class Placement:
    """Positions of R rows, laid out one after another in B documents of at most X positions.

    Attributes:
        source: ``[B, X]`` int64, where each place comes from in flattened ``[P, R]`` positions of rows; 0 at padding
        target: ``[P, R]`` int64, where each position stands in flattened ``[B, X]`` places; 0 at padding
        padding: ``[B, X]`` bool, true at padding
    """

    source: Tensor
    target: Tensor
    padding: Tensor

    @classmethod
    def build(cls, real: Tensor, document: Tensor) -> Placement:
        """Lays out what is real, row by row.

        Args:
            real: ``[R, P]`` bool, false at padding
            document: ``[R]`` int64, ascending, no document left out
        """
        num_documents = int(document[-1]) + 1
        length = document.new_zeros(num_documents).index_add(0, document, real.sum(1))
        width = int(length.max())
        earlier = length.cumsum(0) - length  # B, real positions of the documents before
        column = real.flatten().cumsum(0).view_as(real) - 1 - earlier[document].unsqueeze(1)
        target = (document.unsqueeze(1) * width + column).masked_fill(~real, 0).t().contiguous()  # P x R
        flat = real.t().flatten().nonzero().squeeze(1)
        source = document.new_zeros(num_documents * width)
        source[target.flatten()[flat]] = flat
        padding = torch.arange(width, device=real.device) >= length.unsqueeze(1)
        return cls(source.view(num_documents, width), target, padding)

    @property
    def column(self) -> Tensor:
        """``[R, P]`` int64, where each position stands in its document; any at padding."""
        return self.target.t() % self.source.size(1)

    @property
    def attention_bias(self) -> Tensor:
        """``[B, 1, 1, X]`` float, -inf at padding."""
        return torch.zeros(self.padding.shape, device=self.padding.device).masked_fill(self.padding, float("-inf"))[
            :, None, None
        ]

    def to_documents(self, rows: Tensor) -> Tensor:
        """``[P or more, R, ...]`` to ``[B, X, ...]``; padding holds any position's."""
        return rows.flatten(0, 1).index_select(0, self.source.flatten()).unflatten(0, self.source.shape)

    def to_rows(self, documents: Tensor) -> Tensor:
        """``[B, X, ...]`` to ``[P, R, ...]``; padding holds any position's."""
        return documents.flatten(0, 1).index_select(0, self.target.flatten()).unflatten(0, self.target.shape)


@dataclass(frozen=True)
class DocumentStructure:
    """Documents of several sentences: trees are rows, and some attention crosses from row to row.

    Attributes:
        rows: the trees of R sentences, with the masks within them; depths count the super-root
        leaves: the leaves of each document
        everything: leaves, nodes and the super-root of each document; None where no query looks at all of them
        super_roots: None without them
        join_leaves: queries look beyond their sentence; otherwise the super-root's alone do
        mask_subtrees: what looks beyond are leaves, at leaves; otherwise everything looks at everything
    """

    rows: TreeStructure
    leaves: Placement
    everything: Optional[Placement]
    super_roots: Optional[SuperRoots]
    join_leaves: bool
    mask_subtrees: bool

    @classmethod
    def build(
        cls,
        batch: TreeBatch,
        rows: TreeStructure,
        document: Tensor,
        super_root: bool,
        join_leaves: bool,
        mask_subtrees: bool,
        count_leaf: bool,
    ) -> DocumentStructure:
        """Derives all indices, once a batch for all layers.

        Args:
            batch: the sentences
            rows: what was derived from them
            document: ``[R]`` int64, document of each row, ascending, no document left out
            super_root: a node over all trees of a document
            join_leaves: see above
            mask_subtrees: as in :meth:`TreeStructure.build`
            count_leaf: as in :meth:`TreeStructure.build`
        """
        leaves, super_roots, everything = Placement.build(batch.is_leaf, document), None, None
        real = torch.cat([batch.is_leaf, batch.is_node], dim=1)
        if super_root:
            super_roots = SuperRoots.build(batch, rows, document, leaves.column, count_leaf)
            rows = dataclasses.replace(rows, depth=rows.depth + 1)
            is_first = torch.zeros_like(document, dtype=torch.bool).index_fill(0, super_roots.first_row, True)
            real = torch.cat([real, is_first.unsqueeze(1)], dim=1)
        if super_root or (join_leaves and not mask_subtrees):
            everything = Placement.build(real, document)
        return cls(rows, leaves, everything, super_roots, join_leaves, mask_subtrees)

    @property
    def padding(self) -> Tensor:
        """``[R, S]``, or ``[R, S + 1]`` with super-roots, which stand last in the first row of their document."""
        if self.super_roots is None:
            return self.rows.padding
        not_first = torch.ones_like(self.rows.padding[:, :1]).index_fill(0, self.super_roots.first_row, False)
        return torch.cat([self.rows.padding, not_first], dim=1)


# FROM modules/document_roots: What stands for a document where nothing is above its sentences.


def first_of_documents(roots: Tensor, document: Tensor) -> Tensor:
    """The root of the first sentence of each document (Nguyen et al. 2020).

    Args:
        roots: ``[R, D]``, states of the sentences' roots
        document: ``[R]`` int64, the document of each sentence, ascending from 0, none left out

    Returns:
        ``[B, D]``
    """
    return roots[document.diff(prepend=document.new_tensor([-1])) > 0]


def mean_of_documents(roots: Tensor, document: Tensor) -> Tensor:
    """The mean over the roots of all sentences of each document, added up in single precision at least.

    Args:
        roots, document: as above

    Returns:
        ``[B, D]`` in the dtype of ``roots``
    """
    counts = document.bincount()
    exact = roots.to(torch.promote_types(roots.dtype, torch.float32))
    sums = exact.new_zeros(len(counts), roots.size(1)).index_add(0, document, exact)
    return (sums / counts.unsqueeze(1)).to(roots.dtype)


READINGS = {"first": first_of_documents, "mean": mean_of_documents}
