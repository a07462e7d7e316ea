"""Computes hierarchical accumulation as the paper writes it: with a tensor of (M + 1) * N * D values.

This is equations 5 to 10 in vectorised torch, without the algebra of the closed form. It is the baseline of the
benchmark of accumulation.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.tree_transformer.accumulation import HierarchicalAccumulation


class DirectAccumulation:
    """Shares the weights of the closed form and computes the same values.

    Tensors that depend only on the trees are prepared once, as for the closed form.
    """

    def __init__(self, module: HierarchicalAccumulation, batch: TreeBatch, dtype: torch.dtype = torch.float32):
        self.module = module
        column = torch.arange(batch.is_leaf.size(1))
        covers = (batch.start[..., None] <= column) & (column < batch.end[..., None])  # B x M x N
        # The nodes above leaf j, up to node i, are the branch from i to j (eq. 6).
        height, rank = covers.cumsum(1), covers.cumsum(2)  # B x M x N
        embeddings = module.embeddings
        self.height = (height - 1).clamp(0, embeddings.vertical.num_embeddings - 1)
        self.rank = (rank - 1).clamp(0, embeddings.horizontal.num_embeddings - 1)
        self.mask = covers[:, None, :, :, None].to(dtype)  # B x 1 x M x N x 1
        self.per_element = self.mask / (height + 1)[:, None, :, :, None]
        self.leaf_count = covers.sum(2).clamp(min=1)[:, None, :, None]  # B x 1 x M x 1
        self.up_to = torch.ones(covers.size(1), covers.size(1), dtype=dtype).tril()

    def __call__(self, leaves: Tensor, values: Tensor) -> Tensor:
        """Turns leaves ``[N, B, D]`` and values ``[B, H, S, D / H]`` into ``[B, H, S, D / H]``."""
        embeddings = self.module.embeddings
        num_leaves = leaves.size(0)
        weight = self.module.leaf_weight(leaves).permute(1, 2, 0)  # B x H x N
        leaf_values, node_values = values[:, :, :num_leaves], values[:, :, num_leaves:]
        # S and E of eqs. 5 and 9; the leaves, row 0 of S, join below.
        position = torch.cat([embeddings.vertical(self.height), embeddings.horizontal(self.rank)], dim=-1)
        branches = (node_values[:, :, :, None] + position[:, None]) * self.mask  # B x H x M x N x D/H
        # U, upward cumulative average (eq. 6). As a product, because cumsum over an inner dimension and its backward
        # pass take three times as long.
        sums = (self.up_to @ branches.flatten(3)).view_as(branches)
        averages = (sums + leaf_values[:, :, None]) * self.per_element
        # V, weighted aggregation over the leaves (eqs. 7 and 10).
        nodes = (weight[:, :, None, None] @ averages).squeeze(3) / self.leaf_count
        return torch.cat([leaf_values, nodes], dim=2)
