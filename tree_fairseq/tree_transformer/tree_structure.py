"""The trees of a batch as constant tensors that all layers share: masks, shares of leaves, sums over branches.

Nothing here has a shape that depends on the values of a tensor, so the GPU never waits for the processor.

:class:`BranchSums` sums the hierarchical embeddings of nodes over branches. Node i gets, for each leaf j below it, the
share C_ij times the embeddings of all nodes on the branch from i to j, as :class:`tree_fairseq.nn.tree_batch.Branches`
lists them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Optional

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from tree_fairseq.nn.tree_batch import BLOCK, MAX_LENGTHS, MAX_RANKS, TreeBatch


@dataclass(frozen=True)
class AttentionMask:
    """The attention mask of a run of queries (Nguyen et al. 2020, eq. 11).

    In the paper leaves attend to leaves only, so one mask for all positions would be a quarter empty. A padding query
    attends to something, too, so that its row stays finite.
    """

    num_queries: int  # T, queries of the run
    num_keys: int  # S', the first positions are the keys
    # ``[B, 1, T, S']`` float, or ``[B, 1, 1, S']`` for all queries, 0 where a query may attend to a key, else -inf
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
    """Constant tensors of a batch of forests, shared by all layers of encoder and decoder."""

    # ``[B, M, N]`` float, ``cov(i, j) / (c_i * (l_ij + kappa))``: what leaf j's branch weighs in node i, apart from the
    # learned weight of the leaf (eqs. 6 and 7); c_i counts the leaves of i and l_ij the nodes from i to j; zero where i
    # does not cover j
    share: Tensor
    above: Tensor  # ``[B, S, M]`` float, 1 where node t covers leaf s, or is above node s, else 0
    depth: Tensor  # ``[B, M]`` int64
    # of leaves, then of nodes, or of all of them where subtrees are not masked (eq. 11)
    masks: tuple[AttentionMask, ...]
    padding: Tensor  # ``[B, S]`` bool, true at padding
    branches: BranchSums  # sums over the branches of each node, for hierarchical embeddings

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
        # Span containment, B x M x M; depth breaks the tie between equal spans.
        contains = (batch.start[:, :, None] <= batch.start[:, None]) & (batch.end[:, None] <= batch.end[:, :, None])
        below = batch.depth[:, :, None] <= batch.depth[:, None]
        dominates = contains & below & batch.is_node[:, :, None] & batch.is_node[:, None]
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


@dataclass(frozen=True)
class BranchSums:
    """Sums over the branches of all nodes of B forests, for all layers and both tables of embeddings.

    Node i has a sum of shares for each rank r: leaf j counts once for each node t on the branch from i to j of which it
    is leaf r, from 0 (``|H_j^t| - 1`` of eq. 9). It has another sum for each number of nodes on a branch, whose heights
    (``|V_j^t| - 1`` of eq. 9) go from 0 to that number less one.
    """

    shares: Tensor  # ``[B, M, N]`` float, those of the leaves in the nodes
    # ``[B, M, N]`` float, shares times the nodes on the branches; None if no rank and no height is too great
    lengths: Optional[Tensor]
    by_rank: LeafSums  # sums ``[X * B * M]`` of leaves ``[B * N]``, for X ranks, of the nodes in the block of the first
    by_length: LeafSums  # sums ``[L * B * M]`` of leaves, for L numbers of nodes
    num_ranks: int  # X
    num_lengths: int  # L
    high_ranks: bool  # whether there may be ranks from X - 1
    long_branches: bool  # whether there may be branches of L nodes and more
    lower: _Rows  # sums ``[blocks * B * N]`` of ranks ``[X]``: of each leaf in its nodes in each block from 1
    # for each block but the last, ``[B, nodes]`` int64, nodes of the block, M at padding, and their shares ``[B, nodes,
    # N]``
    upper: tuple[tuple[Tensor, Tensor], ...]

    @classmethod
    def build(
        cls, batch: TreeBatch, share: Tensor, path_length: Tensor, max_ranks: int, max_lengths: int
    ) -> BranchSums:
        """Derives the sums from shares of leaves in nodes and from nodes on branches, ``[B, M, N]`` each.

        ``max_ranks`` and ``max_lengths`` are the numbers of rows of the tables. The branches of the batch have to be
        listed for the same numbers.
        """
        (num_sentences, num_nodes, num_leaves), listed = share.shape, batch.branches
        all_nodes, all_leaves = num_sentences * num_nodes, num_sentences * num_leaves
        longest = min(num_nodes, BLOCK * (len(listed.upper) + 1))
        num_ranks, num_lengths = min(max_ranks, num_leaves), min(max_lengths, longest)
        high_ranks, long_branches = num_leaves >= max_ranks, longest >= max_lengths
        sentence = listed.node // max(num_nodes, 1)
        column = listed.leaf + batch.first_leaf.int().flatten().index_select(0, sentence)
        leaf, place = sentence * num_leaves + column, listed.node.long() * num_leaves + column
        weight = share.flatten().index_select(0, place)
        length = path_length.flatten().index_select(0, place).clamp(max=num_lengths).int()
        by_rank = LeafSums.build(
            listed.rank * all_nodes + listed.node.index_select(0, listed.rank_branch),
            leaf.index_select(0, listed.rank_branch),
            weight.index_select(0, listed.rank_branch) * listed.rank_times,
            listed.by_rank,
            all_nodes * num_ranks,
            all_leaves,
        )
        by_length = LeafSums.build(
            (length - 1) * all_nodes + listed.node, leaf, weight, listed.by_length, all_nodes * num_lengths, all_leaves
        )
        low_leaf = (listed.low_block - 1) * all_leaves + leaf.index_select(0, listed.low_branch)
        first = _first(low_leaf.int(), len(listed.upper) * all_leaves)
        return cls(
            shares=share,
            lengths=share * path_length if high_ranks or long_branches else None,
            by_rank=by_rank,
            by_length=by_length,
            num_ranks=num_ranks,
            num_lengths=num_lengths,
            high_ranks=high_ranks,
            long_branches=long_branches,
            lower=_Rows(listed.low_rank, listed.low_times.to(share.dtype), first),
            upper=tuple(_with_shares(nodes.long(), share) for nodes in listed.upper),
        )

    def embed(self, leaf_weight: Tensor, horizontal: Tensor, vertical: Optional[Tensor] = None) -> Tensor:
        """V(U(E), w), ``[B, M, H, width' + width]``: for each node the weighted embeddings of all of its branches.

        w is ``[B, N, H]``, E^h ``[max_ranks, width]`` and E^v ``[max_lengths, width']``, or left out.
        """
        horizontal = horizontal.to(leaf_weight.dtype)
        lengths = None if self.lengths is None else (self.lengths @ leaf_weight).unsqueeze(3)  # B x M x H x 1
        embedded = self._by_rank(leaf_weight, horizontal[: self.num_ranks], lengths)
        if vertical is None:
            return embedded
        heights = vertical.to(leaf_weight.dtype)[: self.num_lengths]
        return torch.cat([self._by_height(leaf_weight, heights, lengths), embedded], dim=3)

    def _by_rank(self, leaf_weight: Tensor, table: Tensor, lengths: Optional[Tensor]) -> Tensor:
        """Horizontal embeddings, ``[B, M, H, width]``, from a table ``[X, width]``."""
        own = table - table[-1:] if self.high_ranks else table
        embedded = self._by_node(self.by_rank.embed(leaf_weight.flatten(0, 1), own), leaf_weight.size(2))
        if self.upper:
            embedded = embedded + self._in_lower_blocks(leaf_weight, own)
        return embedded + lengths * table[-1] if self.high_ranks else embedded

    def _by_height(self, leaf_weight: Tensor, table: Tensor, lengths: Optional[Tensor]) -> Tensor:
        """Vertical embeddings, ``[B, M, H, width]``, from a table ``[L, width]``."""
        heads = leaf_weight.size(2)
        if not self.long_branches:
            return self._by_node(self.by_length.embed(leaf_weight.flatten(0, 1), table.cumsum(0)), heads)
        # Branches of L nodes and more, which the lists lack, have all heights, and the last one several times.
        sums = (table - table[-1:]).cumsum(0)  # of the heights on a branch of 1, 2, ... nodes
        embedded = self._by_node(self.by_length.embed(leaf_weight.flatten(0, 1), sums - sums[-1:]), heads)
        return embedded + lengths * table[-1] + (self.shares @ leaf_weight).unsqueeze(3) * sums[-1]

    def _in_lower_blocks(self, leaf_weight: Tensor, table: Tensor) -> Tensor:
        """Horizontal embeddings in all blocks below that of a node, ``[B, M, H, width]``."""
        batch, num_leaves, heads = leaf_weight.shape
        # blocks * B * N x width -> blocks x B x N x width
        in_block = (self.lower @ table).view(len(self.upper), batch, num_leaves, -1)
        below = in_block.flip(0).cumsum(0).flip(0)
        # One product a block, for all of its nodes and all heads. Only deep trees have more than one or two.
        parts = [
            share @ (leaf_weight.unsqueeze(3) * own.unsqueeze(2)).flatten(2)  # B x N x H x width -> B x N x H * width
            for (_, share), own in zip(self.upper, below)
        ]
        node = torch.cat([nodes for nodes, _ in self.upper], dim=1).unsqueeze(2)
        added, num_nodes = torch.cat(parts, dim=1), self.shares.size(1)
        placed = added.new_zeros(batch, num_nodes + 1, added.size(2)).scatter_add(1, node.expand_as(added), added)
        return placed[:, :num_nodes].unflatten(2, (heads, -1))

    def _by_node(self, embedded: Tensor, heads: int) -> Tensor:
        # width x B * M * H -> width x B x M x H -> B x M x H x width
        return embedded.view(len(embedded), *self.shares.shape[:2], heads).permute(1, 2, 3, 0)


def _with_shares(nodes: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes ``[B, nodes]`` and their shares ``[B, nodes, N]``; any at padding."""
    row = nodes.clamp(max=share.size(1) - 1).unsqueeze(2)
    return nodes, share.gather(1, row.expand(-1, -1, share.size(2)))


class _Rows(NamedTuple):
    """A sparse matrix, row by row."""

    column: Tensor  # [Q] int32, of each entry
    share: Tensor  # [Q] float, its value
    first: Tensor  # [rows] int32, where the entries of each row begin

    def __matmul__(self, values: Tensor) -> Tensor:
        """``[columns, H]`` to ``[rows, H]``."""
        share = self.share.to(values.dtype)
        return functional.embedding_bag(self.column, values, self.first, mode="sum", per_sample_weights=share)


@dataclass(frozen=True)
class LeafSums:
    """A sparse matrix of ``sums`` by leaves, and its transpose ``leaves``.

    Products add up entries in a fixed order and keep nothing but the matrix, which all layers of a batch share: gathers
    and scattered additions would keep a weight for every entry in every layer.
    """

    sums: _Rows
    leaves: _Rows

    @classmethod
    def build(
        cls, row: Tensor, leaf: Tensor, share: Tensor, by_row: Tensor, num_rows: int, num_leaves: int
    ) -> LeafSums:
        """Lays out Q entries, ``[Q]`` each: the sum of each, its leaf, ascending, and its share of the leaf's weight.

        ``by_row`` is their order by row. Entries of the same sum and leaf count together.
        """
        row, leaf = row.int(), leaf.int()
        sums = _Rows(leaf.index_select(0, by_row), share.index_select(0, by_row), _first(row, num_rows))
        return cls(sums, leaves=_Rows(row, share, _first(leaf, num_leaves)))

    def embed(self, weight: Tensor, table: Tensor) -> Tensor:
        """Sums weights ``[leaves, H]`` to ``[X, nodes, H]``, times a table ``[X, width]``: ``[width, nodes * H]``.

        The sums, which are many, are not kept: the backward pass adds them up again.
        """
        # Tensors, not an object that has them: torch.compile reads the arguments.
        return _Embedded.apply(weight, table, *self.sums, *self.leaves)


def _first(number: Tensor, count: int) -> Tensor:
    """Where the groups of equal numbers from 0 begin once they are sorted, ``[count]`` int32."""
    # Counts and their sums are faster than a search for each group, and integers add up to the same in any order.
    before = number.new_zeros(count + 1).index_add_(0, number + 1, torch.ones_like(number))
    return before[:-1].cumsum(0, dtype=torch.int32)


class _Embedded(torch.autograd.Function):
    """A matrix times weights, times the rows of a table."""

    @staticmethod
    def forward(ctx, weight: Tensor, table: Tensor, *matrix: Tensor) -> Tensor:
        ctx.save_for_backward(weight, table, *matrix)
        # For values that want a gradient torch would prepare one.
        return table.t() @ _by_row(_Rows(*matrix[:3]) @ weight.detach(), table)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Optional[Tensor], ...]:
        weight, table, *matrix = ctx.saved_tensors
        of_table = _by_row(_Rows(*matrix[:3]) @ weight.detach(), table) @ gradient.t()
        of_sums = (table @ gradient).view(-1, weight.size(1))
        return _Rows(*matrix[3:]) @ of_sums, of_table, *[None] * 6


def _by_row(sums: Tensor, table: Tensor) -> Tensor:
    """Sums ``[X * nodes, H]`` as ``[X, nodes * H]``, X the rows of the table; there may be no nodes."""
    return sums.view(len(table), sums.numel() // max(len(table), 1))
