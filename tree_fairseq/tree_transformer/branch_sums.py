"""Sums over the branches of each node, by rank of the leaf and by length of the branch, for hierarchical embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from torch import Tensor

from tree_fairseq.nn.branches import BLOCK, MAX_LENGTHS, MAX_RANKS
from tree_fairseq.nn.tree_batch import TreeBatch
from tree_fairseq.tree_transformer.leaf_sums import LeafSums


@dataclass(frozen=True)
class BranchSums:
    """Sums the leaves' weights, times their shares, over the branches of the nodes of B forests.

    Node i gets one sum for each rank r: leaf j counts once for each node t on the branch from i to j whose leaf r it
    is, from 0 (``|H_j^t| - 1`` of eq. 9). It gets another sum for each number l of nodes on a branch: such a branch has
    the heights (``|V_j^t| - 1`` of eq. 9) from 0 to l - 1.

    In deep trees, the sums by rank are those of a block of levels, and embeddings of the nodes in lower blocks are
    added up once for all branches that begin in a block (:mod:`tree_fairseq.nn.branches`).

    Some ranks and lengths may be too high for a table of embeddings, whose last is that of all higher ones, too. Then
    sums of the last one are missing, and the last embedding has to be taken for all nodes of all branches (``shares``
    and ``lengths``), and the others less the last.

    Attributes:
        node, leaf: ``[P]`` int32, the ends of the listed branches, as places in flattened ``[B, M]`` and ``[B, N]``
        by_rank: sums ``[X * B * M]`` of leaves ``[B * N]``, of the nodes in the same block
        by_length: sums ``[L * B * M]`` of leaves; the first are those of one node
        num_ranks: X
        num_lengths: L
        high_ranks, long_branches: whether there may be ranks from X - 1, or branches of L nodes and more
        shares: ``[B, M, N]`` float, those of the leaves
        lengths: ``[B, M, N]`` float, shares times the nodes on the branches; None where nothing is too high
        lower: sums ``[blocks * B * N]`` of embeddings of ranks ``[X]``: for each leaf those of its nodes in each block
            from 1
        upper: for each block but the last, ``[B, nodes]`` int64, nodes of the block, M at padding, and their shares
            ``[B, nodes, N]``
    """

    node: Tensor
    leaf: Tensor
    by_rank: LeafSums
    by_length: LeafSums
    num_ranks: int
    num_lengths: int
    high_ranks: bool
    long_branches: bool
    shares: Tensor
    lengths: Optional[Tensor]
    lower: LeafSums
    upper: tuple[tuple[Tensor, Tensor], ...]

    @classmethod
    def build(
        cls, batch: TreeBatch, share: Tensor, path_length: Tensor, max_ranks: int, max_lengths: int
    ) -> BranchSums:
        """Derives the sums.

        Args:
            batch: B forests
            share: ``[B, M, N]`` float, of leaves in nodes
            path_length: ``[B, M, N]`` int, nodes on each branch
            max_ranks, max_lengths: embeddings of ranks and heights
        """
        (num_sentences, num_nodes, num_leaves), listed = share.shape, batch.branches(max_ranks, max_lengths)
        all_nodes, all_leaves = num_sentences * num_nodes, num_sentences * num_leaves
        longest = min(num_nodes, num_leaves, BLOCK * (len(listed.upper) + 1))
        num_ranks, num_lengths = min(max_ranks, num_leaves), min(max_lengths, longest)
        high_ranks, long_branches = num_leaves >= max_ranks, longest >= max_lengths
        sentence = listed.node // max(num_nodes, 1)
        column = listed.leaf + batch.first_leaf.int().flatten().index_select(0, sentence)
        leaf, place = sentence * num_leaves + column, listed.node.long() * num_leaves + column
        weight = share.flatten().index_select(0, place)
        length = path_length.flatten().index_select(0, place).clamp(max=num_lengths).int()
        rank, low_rank = (values.clamp(max=num_ranks - 1) for values in (listed.rank, listed.low_rank))
        rank_row = rank * all_nodes + listed.node.index_select(0, listed.rank_branch)
        length_row = (length - 1) * all_nodes + listed.node
        low_leaf = (listed.low_block - 1) * all_leaves + leaf.index_select(0, listed.low_branch)
        return cls(
            node=listed.node,
            leaf=leaf,
            by_rank=LeafSums.build(
                rank_row,
                leaf.index_select(0, listed.rank_branch),
                weight.index_select(0, listed.rank_branch) * listed.rank_times,
                listed.by_rank if max_ranks >= min(num_leaves, MAX_RANKS) else _order(rank_row),
                all_nodes * num_ranks,
                all_leaves,
            ),
            by_length=LeafSums.build(
                length_row,
                leaf,
                weight,
                listed.by_length if max_lengths >= min(longest, MAX_LENGTHS) else _order(length_row),
                all_nodes * num_lengths,
                all_leaves,
            ),
            num_ranks=num_ranks,
            num_lengths=num_lengths,
            high_ranks=high_ranks,
            long_branches=long_branches,
            shares=share,
            lengths=share * path_length if high_ranks or long_branches else None,
            lower=LeafSums.build(
                low_rank,
                low_leaf,
                listed.low_times.to(share.dtype),
                listed.low_by_rank,
                num_ranks,
                len(listed.upper) * all_leaves,
            ).transposed(),
            upper=tuple(_rows_of(nodes.long(), share) for nodes in listed.upper),
        )


def _order(row: Tensor) -> Tensor:
    """The order by row, where that of the lists tells more ranks or lengths apart."""
    return row.sort(stable=True).indices


def _rows_of(nodes: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes ``[B, nodes]`` with their shares ``[B, nodes, N]``; any at padding."""
    row = nodes.clamp(max=share.size(1) - 1).unsqueeze(2)
    return nodes, share.gather(1, row.expand(-1, -1, share.size(2)))
