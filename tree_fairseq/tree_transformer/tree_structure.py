"""The trees of a batch as constant tensors that all layers share: masks, shares of leaves, sums over branches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

import torch
from torch import Tensor
from torch.nn import functional

from tree_fairseq.nn.tree_batch import TreeBatch


@dataclass(frozen=True)
class _Rows:
    """A sparse matrix, row by row."""

    column: Tensor  # [Q] int32, of each entry
    share: Tensor  # [Q] float, its value
    first: Tensor  # [rows] int32, where the entries of each row begin

    def __matmul__(self, values: Tensor) -> Tensor:
        """``[columns, H]`` to ``[rows, H]``."""
        share = self.share.to(values.dtype)
        # For values that want a gradient torch would prepare one.
        return functional.embedding_bag(self.column, values.detach(), self.first, mode="sum", per_sample_weights=share)


@dataclass(frozen=True)
class LeafSums:
    """A sparse matrix of ``sums`` by leaves, and its transpose ``leaves``.

    Both products add up entries in a fixed order and keep nothing but the matrix, which all layers of a batch share:
    gathers and scattered additions would keep a weight for every entry in every layer.
    """

    sums: _Rows
    leaves: _Rows

    @classmethod
    def build(cls, row: Tensor, share: Tensor, entries: Tensor, num_rows: int) -> LeafSums:
        """Lays out Q entries, which come leaf by leaf; those of the same sum and leaf count together.

        Args:
            row: ``[Q]`` int, the sum that each entry belongs to
            share: ``[Q]`` float, what the leaf's weight is multiplied with
            entries: ``[leaves]`` int, how many each leaf has
            num_rows: number of sums
        """
        row, entries = row.int(), entries.int()
        leaf = torch.repeat_interleave(entries, output_size=len(row))
        # Smaller numbers are sorted in half the time.
        key = (row - 2**15).short() if num_rows <= 2**16 else row
        order = key.sort(stable=True).indices
        firsts = _first(torch.bincount(row, minlength=num_rows))
        sums = _Rows(leaf.index_select(0, order), share.index_select(0, order), firsts)
        return cls(sums, leaves=_Rows(row, share, _first(entries)))

    def __call__(self, weight: Tensor) -> Tensor:
        """Sums weights ``[leaves, H]``: ``[rows, H]``."""
        return _Product.apply(weight, self)


def _first(sizes: Tensor) -> Tensor:
    """Where groups of these sizes begin, ``[groups]`` int32."""
    return (sizes.cumsum(0) - sizes).int()


class _Product(torch.autograd.Function):
    """A matrix times weights; its gradient is the transpose times the gradient."""

    @staticmethod
    def forward(ctx, weight: Tensor, matrix: LeafSums) -> Tensor:
        ctx.matrix = matrix
        return matrix.sums @ weight

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.matrix.leaves @ gradient.contiguous(), None


@dataclass(frozen=True)
class AttentionMask:
    """The attention mask of a run of queries (Nguyen et al. 2020, eq. 11).

    Leaves attend to leaves only, so one mask for all positions would be a quarter empty. A padding query attends to
    something, too, so that its row stays finite. Queries are the positions ``[first, last)``.

    Attributes:
        num_keys: keys are the positions before it
        bias: ``[B, 1, queries, num_keys]`` float, or ``[B, 1, 1, num_keys]`` for all queries, 0 where a query may
            attend to a key, else -inf; None where every query attends to every key
    """

    first: int
    last: int
    num_keys: int
    bias: Optional[Tensor]

    @classmethod
    def of_trees(
        cls, batch: TreeBatch, covers: Tensor, dominates: Tensor, dtype: torch.dtype
    ) -> tuple[AttentionMask, AttentionMask]:
        """Subtree masking: the mask of the leaves, and the mask of the nodes; see :class:`TreeStructure`."""
        num_nodes, num_leaves = covers.shape[1:]
        num_positions = num_leaves + num_nodes
        itself = torch.eye(num_nodes, dtype=torch.bool, device=covers.device)
        below = torch.cat([covers, dominates | itself], dim=2)  # B x M x S
        nodes = torch.where(below, 0.0, float("-inf")).to(dtype)[:, None]
        return cls.of_everything(batch.is_leaf, dtype), cls(num_leaves, num_positions, num_positions, nodes)

    @classmethod
    def of_everything(cls, real: Tensor, dtype: torch.dtype) -> AttentionMask:
        """The mask under which all positions that are ``real``, ``[B, S]`` bool, attend to all of them."""
        hidden = ~real & real.any(dim=1, keepdim=True)
        bias = None
        if hidden.any():
            bias = torch.where(hidden, float("-inf"), 0.0).to(dtype)[:, None, None]
        return cls(0, real.size(1), real.size(1), bias)


@dataclass(frozen=True)
class TreeStructure:
    """Constant tensors of a batch of forests, shared by all layers of encoder and decoder.

    Attributes:
        share: ``[B, M, N]`` float, ``cov(i, j) / (c_i * (l_ij + kappa))``: what leaf j's branch weighs in node i, apart
            from the learned weight of the leaf (eqs. 6 and 7); c_i counts the leaves of i and l_ij the nodes from i to
            j; zero where i does not cover j
        covers: ``[B, M, N]`` bool, leaf j lies in the span of node i
        dominates: ``[B, M, M]`` bool, node t belongs to the subtree of node i, i included
        above: ``[B, S, M]`` float, 1 where node t covers leaf s, or is above node s, else 0
        depth: ``[B, M]`` int64
        masks: of leaves, then of nodes, or of all of them where subtrees are not masked (eq. 11)
        padding: ``[B, S]`` bool, true at padding
        branches: sums ``[B * M * (N + L)]`` of the leaves of node i, with their shares as weights. At the first N
            columns by their rank: leaf j at rank r once for each node t on the branch from i to j whose leaf r it is,
            from 0 (``|H_j^t| - 1`` of eq. 9). At the L others by the nodes on their branch, from 1: a branch of l nodes
            has the heights (``|V_j^t| - 1`` of eq. 9) from 0 to l - 1
        longest: L, nodes on the longest branch
    """

    share: Tensor
    covers: Tensor
    dominates: Tensor
    above: Tensor
    depth: Tensor
    masks: tuple[AttentionMask, ...]
    padding: Tensor
    branches: LeafSums
    longest: int

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
            batch: B forests
            count_leaf: the average along a branch counts its leaf (kappa = 1, the paper); false is the authors' code
                (kappa = 0)
            mask_subtrees: subtree masking (section 4.3); false lets everything see everything
            dtype: of ``share`` and of the masks
        """
        column = torch.arange(batch.is_leaf.size(1), device=batch.start.device)
        covers = (batch.start[..., None] <= column) & (column < batch.end[..., None])  # B x M x N
        dominates = _dominates(batch)
        ancestors = covers.sum(1, keepdim=True)  # B x 1 x N
        path_length = ancestors - batch.depth[..., None]  # B x M x N, l_ij where i covers j
        count = (batch.end - batch.start).clamp(min=1)[..., None]
        share = covers / (count * (path_length + int(count_leaf)).clamp(min=1)).to(dtype)
        longest = int(batch.depth.max()) + 1 if batch.depth.numel() else 0
        itself = torch.eye(dominates.size(1), dtype=torch.bool, device=dominates.device)
        real = torch.cat([batch.is_leaf, batch.is_node], dim=1)
        everything, trees = AttentionMask.of_everything, AttentionMask.of_trees
        return cls(
            share=share,
            covers=covers,
            dominates=dominates,
            above=torch.cat([covers, dominates & ~itself], dim=2).mT.to(dtype),
            depth=batch.depth,
            masks=trees(batch, covers, dominates, dtype) if mask_subtrees else (everything(real, dtype),),
            padding=~real,
            branches=_branches(batch, covers, share, longest),
            longest=longest,
        )


def _dominates(batch: TreeBatch) -> Tensor:
    """``[B, M, M]``: span containment; depth breaks the tie between equal spans."""
    contains = (batch.start[:, :, None] <= batch.start[:, None]) & (batch.end[:, None] <= batch.end[:, :, None])
    below = batch.depth[:, :, None] <= batch.depth[:, None]
    return contains & below & batch.is_node[:, :, None] & batch.is_node[:, None]


def _branches(batch: TreeBatch, covers: Tensor, share: Tensor, longest: int) -> LeafSums:
    """Lists the branches (i, j), leaf by leaf from the longest, with their length and the rank of j at every node."""
    (num_sentences, num_nodes, num_leaves), device = covers.shape, covers.device
    # The nodes above a leaf are below each other: the branch from one of them goes on with those that follow.
    by_depth = batch.depth.argsort(dim=1, stable=True)
    sentence, leaf, place = covers.gather(1, by_depth.unsqueeze(2).expand_as(covers)).mT.nonzero().unbind(1)
    node = sentence * num_nodes + by_depth.flatten().index_select(0, sentence * num_nodes + place)
    weight = share.flatten().index_select(0, node * num_leaves + leaf)
    rank = leaf - batch.start.flatten().index_select(0, node)
    above = covers.sum(1).flatten()  # B * N, nodes above each leaf
    branch = torch.arange(len(leaf), device=device)
    length = above.cumsum(0).index_select(0, sentence * num_leaves + leaf) - branch
    # Each branch comes once with its length, then once for each of its nodes. Small numbers take half the time.
    times = length + 1
    first = times.cumsum(0) - times
    row, rank, shift, last = (
        values.int() for values in (node * (num_leaves + longest), rank, branch - first - 1, length - 1)
    )
    many = torch.repeat_interleave(times)
    on_branch = torch.arange(len(many), dtype=torch.int32, device=device) + shift.index_select(0, many)
    column = rank.index_select(0, on_branch.clamp_(min=0)).index_copy_(0, first, num_leaves + last)
    return LeafSums.build(
        row.index_select(0, many) + column,
        weight.index_select(0, many),
        entries=above * (above + 3) // 2,
        num_rows=num_sentences * num_nodes * (num_leaves + longest),
    )
