"""The trees of a batch as constant tensors that all layers share: masks, shares of leaves, sums over branches.

Nothing here has a shape that depends on the values of a tensor, so the GPU never waits for the processor.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tree_fairseq.nn.tree_batch import MAX_LENGTHS, MAX_RANKS, TreeBatch
from tree_fairseq.tree_transformer.branch_sums import BranchSums


@dataclass(frozen=True)
class AttentionMask:
    """The attention mask of a run of queries (Nguyen et al. 2020, eq. 11).

    In the paper leaves attend to leaves only, so one mask for all positions would be a quarter empty. A padding query
    attends to something, too, so that its row stays finite.

    Attributes:
        num_queries: T, queries of the run
        num_keys: S', the first positions are the keys
        bias: ``[B, 1, T, S']`` float, or ``[B, 1, 1, S']`` for all queries, 0 where a query may attend to a key, else
            -inf
    """

    num_queries: int
    num_keys: int
    bias: Tensor

    @classmethod
    def of_trees(
        cls, batch: TreeBatch, covers: Tensor, dominates: Tensor, dtype: torch.dtype, to_ancestors: bool = False
    ) -> tuple[AttentionMask, AttentionMask]:
        """Subtree masking: the mask of the leaves, and the mask of the nodes.

        ``covers`` ``[B, M, N]`` and ``dominates`` ``[B, M, M]`` tell which leaves and nodes are in the subtree of a
        node. ``to_ancestors``, which is not in the paper, lets leaves attend to the nodes above them, too.
        """
        num_nodes, num_leaves = covers.shape[1:]
        num_positions = num_leaves + num_nodes
        itself = torch.eye(num_nodes, dtype=torch.bool, device=covers.device)  # padding has nothing else to attend to
        below = torch.cat([covers, dominates | itself], dim=2)  # B x M x S
        nodes = cls(num_nodes, num_positions, _open(below, dtype)[:, None])
        leaves = cls.of_everything(batch.is_leaf, dtype)
        if to_ancestors:
            others = leaves.bias.expand(-1, -1, num_leaves, -1)  # B x 1 x N x N
            above = _open(covers.mT, dtype)[:, None]  # B x 1 x N x M
            leaves = cls(num_leaves, num_positions, torch.cat([others, above], dim=3))
        return leaves, nodes

    @classmethod
    def of_everything(cls, real: Tensor, dtype: torch.dtype) -> AttentionMask:
        """The mask under which all positions that are ``real``, ``[B, S]`` bool, attend to all of them."""
        visible = real | ~real.any(dim=1, keepdim=True)
        return cls(real.size(1), real.size(1), _open(visible, dtype)[:, None, None])


def _open(is_visible: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.where(is_visible, 0.0, float("-inf")).to(dtype)


@dataclass(frozen=True)
class TreeStructure:
    """Constant tensors of a batch of forests, shared by all layers of encoder and decoder.

    Attributes:
        share: ``[B, M, N]`` float, ``cov(i, j) / (c_i * (l_ij + kappa))``: what leaf j's branch weighs in node i, apart
            from the learned weight of the leaf (eqs. 6 and 7); c_i counts the leaves of i and l_ij the nodes from i to
            j; zero where i does not cover j
        above: ``[B, S, M]`` float, 1 where node t covers leaf s, or is above node s, else 0
        depth: ``[B, M]`` int64
        masks: of leaves, then of nodes, or of all of them where subtrees are not masked (eq. 11)
        padding: ``[B, S]`` bool, true at padding
        branches: sums over the branches of each node, for hierarchical embeddings
    """

    share: Tensor
    above: Tensor
    depth: Tensor
    masks: tuple[AttentionMask, ...]
    padding: Tensor
    branches: BranchSums

    @property
    def num_leaves(self) -> int:
        """N: memory positions before it are leaves, the others are nodes."""
        return self.share.size(2)

    @property
    def sizes(self) -> list[int]:
        """N and M."""
        return [self.share.size(2), self.share.size(1)]

    @classmethod
    def build(
        cls,
        batch: TreeBatch,
        count_leaf: bool,
        mask_subtrees: bool,
        dtype: torch.dtype = torch.float32,
        max_ranks: int = MAX_RANKS,
        max_lengths: int = MAX_LENGTHS,
        leaves_to_ancestors: bool = False,
    ) -> TreeStructure:
        """Derives the structure from spans and depths of B forests; the order of the nodes does not matter.

        Args:
            count_leaf: the average along a branch counts its leaf, kappa = 1 (the paper); else kappa = 0
            mask_subtrees: subtree masking (section 4.3); false lets everything see everything
            dtype: of ``share`` and of the masks
            max_ranks, max_lengths: rows of the tables of hierarchical embeddings
            leaves_to_ancestors: under subtree masking, leaves attend to the nodes above them, too (not in the paper)
        """
        covers = batch.covers()  # B x M x N
        dominates = _dominates(batch)
        ancestors = covers.sum(1, keepdim=True, dtype=torch.int32)  # B x 1 x N
        path_length = ancestors - batch.depth.int()[..., None]  # B x M x N, l_ij where i covers j
        count = (batch.end - batch.start).clamp(min=1)[..., None]
        share = covers / (count * (path_length + int(count_leaf)).clamp(min=1)).to(dtype)
        itself = torch.eye(dominates.size(1), dtype=torch.bool, device=dominates.device)  # M x M
        real = torch.cat([batch.is_leaf, batch.is_node], dim=1)
        masks = (AttentionMask.of_everything(real, dtype),)
        if mask_subtrees:
            masks = AttentionMask.of_trees(batch, covers, dominates, dtype, leaves_to_ancestors)
        return cls(
            share=share,
            above=torch.cat([covers, dominates & ~itself], dim=2).mT.to(dtype),
            depth=batch.depth,
            masks=masks,
            padding=~real,
            branches=BranchSums.build(batch, share, path_length, max_ranks, max_lengths),
        )


def _dominates(batch: TreeBatch) -> Tensor:
    """``[B, M, M]``: span containment; depth breaks the tie between equal spans."""
    contains = (batch.start[:, :, None] <= batch.start[:, None]) & (batch.end[:, None] <= batch.end[:, :, None])
    below = batch.depth[:, :, None] <= batch.depth[:, None]
    return contains & below & batch.is_node[:, :, None] & batch.is_node[:, None]
