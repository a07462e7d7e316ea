"""What every layer needs to know of the trees of a batch, computed once and without gradient."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tree_fairseq.data.batch import TreeBatch


@dataclass(frozen=True)
class BranchElements:
    """The sparse list of (node i, descendant t, leaf j): t lies on the branch from i to j.

    Each element of a branch carries a hierarchical embedding (eq. 9), so node i sums one term an
    element. There are as many as the tree has such triples, far fewer than M * M * N.

    Attributes:
        node: ``[Q]`` int64, position of i in the flattened ``[B * M]`` nodes
        leaf: ``[Q]`` int64, position of j in the flattened ``[B * N]`` leaves
        share: ``[Q]`` float, weight of leaf j's branch in node i, see :class:`TreeStructure`
        rank: ``[Q]`` int64, rank of j among the leaves of t, from 0: ``|H_j^t| - 1``
        height: ``[Q]`` int64, nodes between t and j, t included, from 0: ``|V_j^t| - 1``
    """

    node: Tensor
    leaf: Tensor
    share: Tensor
    rank: Tensor
    height: Tensor


@dataclass(frozen=True)
class TreeStructure:
    """Constant tensors of a batch of forests, shared by all layers of encoder and decoder.

    Attributes:
        share: ``[B, M, N]`` float, ``cov(i, j) / (c_i * (l_ij + kappa))``: what leaf j's branch
            weighs in node i, apart from the learned weight of the leaf (eqs. 6 and 7); c_i counts
            the leaves of i and l_ij the nodes from i to j; zero where i does not cover j
        covers: ``[B, M, N]`` bool, leaf j lies in the span of node i
        dominates: ``[B, M, M]`` bool, node t belongs to the subtree of node i, i included
        depth: ``[B, M]`` int64
        attention_bias: ``[B, 1, S, S]`` float, 0 where a query may look at a key, else -inf
        padding: ``[B, S]`` bool, true at padding
        elements: the branch elements
    """

    share: Tensor
    covers: Tensor
    dominates: Tensor
    depth: Tensor
    attention_bias: Tensor
    padding: Tensor
    elements: BranchElements

    @property
    def num_leaves(self) -> int:
        """N: memory positions before it are leaves, the others are nodes."""
        return self.covers.size(2)

    @classmethod
    def build(
        cls, batch: TreeBatch, count_leaf: bool, mask_subtrees: bool, dtype: torch.dtype = torch.float32
    ) -> TreeStructure:
        """Derives the structure from spans and depths; the order of the nodes does not matter.

        Args:
            batch: the forests
            count_leaf: the average along a branch counts its leaf (kappa = 1, the paper); false is
                the authors' code (kappa = 0)
            mask_subtrees: subtree masking (section 4.3); false lets everything see everything
            dtype: of ``share`` and ``attention_bias``
        """
        column = torch.arange(batch.is_leaf.size(1), device=batch.start.device)
        covers = (batch.start[..., None] <= column) & (column < batch.end[..., None])  # B x M x N
        dominates = _dominates(batch)
        ancestors = covers.sum(1, keepdim=True)  # B x 1 x N
        path_length = ancestors - batch.depth[..., None]  # B x M x N, l_ij where i covers j
        count = (batch.end - batch.start).clamp(min=1)[..., None]
        share = covers / (count * (path_length + int(count_leaf)).clamp(min=1)).to(dtype)
        return cls(
            share=share,
            covers=covers,
            dominates=dominates,
            depth=batch.depth,
            attention_bias=_attention_bias(batch, covers, dominates, mask_subtrees).to(dtype),
            padding=torch.cat([~batch.is_leaf, ~batch.is_node], dim=1),
            elements=_branch_elements(batch, dominates, share, ancestors),
        )


def _dominates(batch: TreeBatch) -> Tensor:
    """``[B, M, M]``: span containment; depth breaks the tie between equal spans."""
    contains = (batch.start[:, :, None] <= batch.start[:, None]) & (batch.end[:, None] <= batch.end[:, :, None])
    below = batch.depth[:, :, None] <= batch.depth[:, None]
    return contains & below & batch.is_node[:, :, None] & batch.is_node[:, None]


def _attention_bias(batch: TreeBatch, covers: Tensor, dominates: Tensor, mask_subtrees: bool) -> Tensor:
    """Eq. 11 as an additive mask. A padding query sees itself alone, so that its row stays finite."""
    real = torch.cat([batch.is_leaf, batch.is_node], dim=1)  # B x S
    if mask_subtrees:
        leaf_rows = torch.cat([batch.is_leaf[:, None] & batch.is_leaf[..., None], torch.zeros_like(covers.mT)], dim=2)
        node_rows = torch.cat([covers, dominates], dim=2)
        visible = torch.cat([leaf_rows, node_rows], dim=1)  # B x S x S
    else:
        visible = real[:, None] & real[..., None]
    itself = torch.eye(real.size(1), dtype=torch.bool, device=real.device)
    visible = visible | itself
    return torch.zeros(visible.shape, device=real.device).masked_fill(~visible, float("-inf"))[:, None]


def _branch_elements(batch: TreeBatch, dominates: Tensor, share: Tensor, ancestors: Tensor) -> BranchElements:
    """Lists the triples by expanding each pair (i, t) over the leaves of t."""
    sentence, node, descendant = dominates.nonzero().unbind(1)
    length = (batch.end - batch.start)[sentence, descendant]
    first = length.cumsum(0) - length
    pair = torch.repeat_interleave(length)
    rank = torch.arange(len(pair), device=pair.device) - first[pair]
    sentence, node, descendant = sentence[pair], node[pair], descendant[pair]
    leaf = batch.start[sentence, descendant] + rank
    num_nodes, num_leaves = share.shape[1:]
    return BranchElements(
        node=sentence * num_nodes + node,
        leaf=sentence * num_leaves + leaf,
        share=share[sentence, node, leaf],
        rank=rank,
        height=ancestors[sentence, 0, leaf] - batch.depth[sentence, descendant] - 1,
    )
