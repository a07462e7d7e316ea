"""One node over all trees of a document, accumulated as a sum over its sentences.

The super-root s covers all c leaves of its document, so the closed form of hierarchical accumulation
(:mod:`tree_fairseq.tree_transformer.accumulation`) is a sum of terms that each belong to one sentence:

    n_s = (sum_j a_j l_j + sum_t (sum_{j under t} a_j) n_t + (sum_j a_j) n + embeddings) / c
    a_j = w_j / (d_j + 1 + kappa)

with d_j the nodes of the sentence above leaf j and n the super-root's own value. What the sentences
contribute is added up in single precision and divided by c at the end: with thousands of leaves the
shares themselves would be too small for half precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.tree_transformer.accumulation import HierarchicalAccumulation, HierarchicalEmbeddings
from tree_fairseq.tree_transformer.structure import LeafSums, TreeStructure


@dataclass(frozen=True)
class SuperRoots:
    """The super-roots of B documents, whose R sentences are the rows of a :class:`TreeStructure`.

    Attributes:
        document: ``[R]`` int64, document of each row
        first_row: ``[B]`` int64, row of each document's first sentence
        share: ``[R, N]`` float, ``1 / (d_j + 1 + kappa)``, zero at padding
        num_leaves: ``[B]`` float, leaves of each document
        branches: sums ``[B * (X + L)]`` of the leaves, with their shares as weights, by rank and by length of
            branch as in :class:`TreeStructure`
        widest: X, leaves of the longest document
        longest: L, nodes on the longest branch
    """

    document: Tensor
    first_row: Tensor
    share: Tensor
    num_leaves: Tensor
    branches: LeafSums
    widest: int
    longest: int

    @classmethod
    def build(
        cls, batch: TreeBatch, rows: TreeStructure, document: Tensor, column: Tensor, count_leaf: bool
    ) -> SuperRoots:
        """Derives the super-roots from the sentences below them.

        Args:
            batch: the sentences
            rows: what was derived from them
            document: ``[R]`` int64, ascending, no document left out
            column: ``[R, N]`` int64, position of each leaf in its document; unread at padding
            count_leaf: as in :meth:`TreeStructure.build`
        """
        above = rows.covers.sum(1)  # R x N, d_j
        share = batch.is_leaf / (above + 1 + int(count_leaf)).to(rows.share.dtype)
        num_documents = int(document[-1]) + 1
        leaves = batch.is_leaf.sum(1).to(share.dtype)
        widest, longest = int(column[batch.is_leaf].max()) + 1, int(above.max()) + 1
        return cls(
            document=document,
            first_row=torch.searchsorted(document, torch.arange(num_documents, device=document.device)),
            share=share,
            num_leaves=share.new_zeros(num_documents).index_add(0, document, leaves),
            branches=_branches(batch, rows, document, column, share, widest, longest),
            widest=widest,
            longest=longest,
        )

    def sum(self, rows: Tensor) -> Tensor:
        """Adds up rows ``[R, ...]`` over documents: ``[B, ...]``."""
        return rows.new_zeros(len(self.first_row), *rows.shape[1:]).index_add(0, self.document, rows)

    def accumulate(
        self, accumulation: HierarchicalAccumulation, leaves: Tensor, values: Tensor, own: Tensor, rows: TreeStructure
    ) -> Tensor:
        """Accumulates values over whole documents (eqs. 10 and 16).

        Args:
            accumulation: the weights of the layer
            leaves: ``[N, R, D]``, states of the leaves as the attention receives them
            values: ``[R, H, S, D / H]``, projected values of leaves, then nodes
            own: ``[B, H, D / H]``, projected values of the super-roots
            rows: the trees of the rows; depths count the super-root

        Returns:
            ``[B, H, D / H]`` in the dtype of ``values``
        """
        leaf_weight = accumulation.weigh(leaves)  # R x N x H
        with torch.autocast(leaves.device.type, enabled=False):
            leaf_share = (leaf_weight * self.share.unsqueeze(-1).to(leaf_weight)).mT  # R x H x N
            node_share = leaf_share @ rows.covers.mT.to(leaf_share)  # R x H x M
            mass = self.sum(leaf_share.sum(-1))  # B x H
        coefficients = torch.cat([leaf_share, node_share], dim=-1).unsqueeze(2).to(values.dtype)
        below = (coefficients @ values).squeeze(2)  # R x H x D/H
        total = self.sum(below.to(mass.dtype)) + mass.unsqueeze(-1) * own
        if accumulation.embeddings is not None:
            total = total + self._embed(accumulation.embeddings, leaf_weight, node_share, mass, rows.depth)
        return (total / self.num_leaves[:, None, None].to(mass)).to(values.dtype)

    def _embed(
        self, embeddings: HierarchicalEmbeddings, leaf_weight: Tensor, node_share: Tensor, mass: Tensor, depth: Tensor
    ) -> Tensor:
        """e_s of every super-root, not yet divided by its leaves: ``[B, H, head_dim]``."""
        table = embeddings.table(self.widest, self.longest)
        sums = self.branches(leaf_weight.flatten(0, 1)).view(len(self.first_row), len(table), -1)
        embedded = (sums.mT.to(table.dtype) @ table).to(mass.dtype)
        if embeddings.by_leaf_distance:
            return embedded
        vertical = embeddings.vertical.weight
        below = node_share.to(vertical.dtype) @ vertical[depth.clamp(max=len(vertical) - 1)]  # R x H x width
        return embedded + embeddings.vertical_only(self.sum(below.to(mass.dtype)) + mass.unsqueeze(-1) * vertical[0])


def _branches(
    batch: TreeBatch, rows: TreeStructure, document: Tensor, column: Tensor, share: Tensor, widest: int, longest: int
) -> LeafSums:
    """The branch from the super-root to each leaf, and the nodes on it: the super-root itself and those of the sentence."""
    row, leaf = batch.is_leaf.nonzero().unbind(1)
    below_row, below_leaf, node = rows.covers.mT.nonzero().unbind(1)
    length = widest + rows.covers.sum(1)[row, leaf]
    rank = torch.cat([column[row, leaf], below_leaf - batch.start[below_row, node]])
    all_rows = torch.cat([row, row, below_row])
    flat, order = (all_rows * share.size(1) + torch.cat([leaf, leaf, below_leaf])).sort(stable=True)
    return LeafSums.build(
        (document[all_rows] * (widest + longest) + torch.cat([length, rank]))[order],
        share.flatten()[flat],
        entries=torch.bincount(flat, minlength=share.numel()),
        num_rows=(int(document[-1]) + 1) * (widest + longest),
    )
