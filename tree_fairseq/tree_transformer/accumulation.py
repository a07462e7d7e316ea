"""Hierarchical accumulation (Nguyen et al. 2020, sections 4.1 and 4.2) in closed form.

The paper builds a tensor of (M + 1) * N * D values and adds hierarchical embeddings to it (eq. 9). The upward
cumulative average (eq. 6) averages it along branches, and the weighted aggregation (eq. 7) sums it over the leaves of
each node. All of that is linear in the values, so node i is one weighted sum over its leaves, each with the nodes on
the branch to it:

    n_i = sum_j C_ij (l_j + sum_{t from i to j} n_t) + e_i
    C_ij = cov(i, j) w_j / (c_i (l_ij + kappa))

with cov(i, j) = "i covers j", w_j the learned weight of leaf j, c_i the leaves of i, l_ij the nodes from i to j, and
kappa = 1 (the leaf counts) in the paper or 0 in the authors' code. The branch from i to j has the nodes above j, less
those above i:

    n_i = sum_j C_ij (l_j + a_j) - (sum_j C_ij) a_i + e_i,    a_s = sum_{t above s} n_t

Nothing of size N * M * D is ever built.
"""

from dataclasses import dataclass
from typing import Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.nn.devices import without_autocast
from tree_fairseq.support.options import option
from tree_fairseq.tree_transformer.branch_sums import BranchSums
from tree_fairseq.tree_transformer.tree_structure import TreeStructure


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class AccumulationConfig(FairseqDataclass):
    """Options of hierarchical accumulation; each is a flag of the models that use it."""

    accumulation_denominator: ChoiceEnum(["with-leaf", "nodes-only"]) = option(
        "with-leaf",
        "what an average along a branch divides by: 'with-leaf' counts the nodes and the leaf "
        "(the paper), 'nodes-only' the nodes (the authors' code)",
    )
    vertical_embedding: ChoiceEnum(["leaf-distance", "root-depth"]) = option(
        "leaf-distance",
        "index of the vertical embedding: 'leaf-distance' counts the nodes down to the leaf (the paper), "
        "'root-depth' those up to the root (the authors' code)",
    )
    no_hierarchical_embeddings: bool = option(
        False, "ablation: no embeddings of height and sibling rank in the accumulation"
    )
    no_subtree_mask: bool = option(False, "ablation: in the encoder every leaf and node attends to every other")
    leaves_to_ancestors: bool = option(
        False,
        "in the encoder leaves attend to the nodes above them, too, with a learned bias a head that starts at -3 "
        "(not in the paper)",
    )
    max_vertical_positions: int = option(50, "vertical embeddings a layer; greater heights share the last")
    max_horizontal_positions: int = option(100, "horizontal embeddings a layer; later siblings share the last")


class HierarchicalEmbeddings(nn.Module):
    """Sums the hierarchical embeddings E of eq. 9 over the branches of each node.

    One pair of tables of width ``head_dim / 2`` a layer, shared by its heads.
    """

    def __init__(self, head_dim: int, config: AccumulationConfig):
        super().__init__()
        self.by_leaf_distance = config.vertical_embedding == "leaf-distance"
        self.vertical = nn.Embedding(config.max_vertical_positions, head_dim // 2)
        self.horizontal = nn.Embedding(config.max_horizontal_positions, head_dim - head_dim // 2)
        for table in (self.vertical, self.horizontal):
            nn.init.normal_(table.weight, std=head_dim**-0.5)

    def forward(self, leaf_weight: Tensor, structure: TreeStructure) -> Tensor:
        """e_i of all nodes, ``[B, M, H, head_dim]``, without the part of :meth:`of_depths`, from w, ``[B, N, H]``."""
        sums, shape = structure.branches, (*structure.depth.shape, leaf_weight.size(2))
        all_weights, dtype = leaf_weight.flatten(0, 1), leaf_weight.dtype
        lengths = None if sums.lengths is None else (sums.lengths @ leaf_weight).unsqueeze(3)  # B x M x H x 1
        ranks = self.ranks(sums.num_ranks, sums.high_ranks).to(dtype)
        horizontal = _by_node(sums.by_rank.embed(all_weights, ranks), shape)
        if sums.upper:
            horizontal = horizontal + _add_lower_blocks(leaf_weight, ranks, sums, shape[1])
        if sums.high_ranks:
            horizontal = horizontal + lengths * _row(self.horizontal, sums.num_ranks)
        if not self.by_leaf_distance:
            return functional.pad(horizontal, (self.vertical.embedding_dim, 0))
        heights = self.heights(sums.num_lengths, sums.long_branches).to(dtype)
        own_heights = heights - heights[-1:] if sums.long_branches else heights
        vertical = _by_node(sums.by_length.embed(all_weights, own_heights), shape)
        if sums.long_branches:
            shares = (sums.shares @ leaf_weight).unsqueeze(3)
            vertical = vertical + lengths * _row(self.vertical, sums.num_lengths) + shares * heights[-1]
        return torch.cat([vertical, horizontal], dim=3)

    def of_depths(self, depth: Tensor) -> Tensor:
        """Vertical embeddings by the depth of the node alone, ``[..., head_dim]``; they count as part of its value."""
        return self.vertical_only(self.vertical(depth.clamp(max=self.vertical.num_embeddings - 1)))

    def ranks(self, count: int, less_last: bool) -> Tensor:
        """Horizontal embeddings of ranks from 0, ``[count, width]``; or how they differ from the last of them."""
        embeddings = _rows(self.horizontal, count)
        return embeddings - embeddings[-1:] if less_last else embeddings

    def heights(self, count: int, less_last: bool = False) -> Tensor:
        """Sums of the vertical embeddings of branches of 1, 2, ... nodes, ``[count, width]``.

        With ``less_last`` they are sums of how embeddings differ from the last one.
        """
        embeddings = _rows(self.vertical, count)
        return (embeddings - embeddings[-1:] if less_last else embeddings).cumsum(0)

    def vertical_only(self, embedded: Tensor) -> Tensor:
        """Vertical embeddings ``[..., width]`` with nothing beside them: ``[..., head_dim]``."""
        return functional.pad(embedded, (0, self.horizontal.embedding_dim))


def _rows(table: nn.Embedding, count: int) -> Tensor:
    """The first rows of a table, the last one for all beyond it."""
    if count <= table.num_embeddings:
        return table.weight[:count]
    return table(torch.arange(count, device=table.weight.device).clamp(max=table.num_embeddings - 1))


def _by_node(embedded: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """``[width, B * M * H]`` as ``[B, M, H, width]``, given the other ``shape``."""
    return embedded.view(len(embedded), *shape).permute(1, 2, 3, 0)


def _add_lower_blocks(leaf_weight: Tensor, ranks: Tensor, sums: BranchSums, num_nodes: int) -> Tensor:
    """Horizontal embeddings of all blocks below that of a node, ``[B, M, H, width]``; see :class:`BranchSums`."""
    batch, num_leaves, heads = leaf_weight.shape
    in_block = sums.lower(ranks).view(len(sums.upper), batch, num_leaves, -1)
    below = in_block.flip(0).cumsum(0).flip(0)
    # One product a block, for all of its nodes and all heads. Only deep trees have more than one or two.
    parts = [
        share @ (leaf_weight.unsqueeze(3) * own.unsqueeze(2)).flatten(2) for (_, share), own in zip(sums.upper, below)
    ]
    node = torch.cat([nodes for nodes, _ in sums.upper], dim=1).unsqueeze(2)
    added = torch.cat(parts, dim=1)
    placed = added.new_zeros(batch, num_nodes + 1, added.size(2)).scatter_add(1, node.expand_as(added), added)
    return placed[:, :num_nodes].unflatten(2, (heads, -1))


def _row(table: nn.Embedding, count: int) -> Tensor:
    """The last of so many rows of a table, ``[width]``."""
    return table.weight[min(count, table.num_embeddings) - 1]


class HierarchicalAccumulation(nn.Module):
    """Replaces the value of each node by the weighted aggregation of its subtree (eqs. 10 and 16).

    ``leaf_dim`` is the width of the leaves' states if it is not D.
    """

    def __init__(self, embed_dim: int, num_heads: int, config: AccumulationConfig, leaf_dim: Optional[int] = None):
        super().__init__()
        # u_s or u_c of the paper, one a head
        self.leaf_weight = nn.Linear(leaf_dim or embed_dim, num_heads, bias=False)
        nn.init.xavier_uniform_(self.leaf_weight.weight)
        self.embeddings = None
        if not config.no_hierarchical_embeddings:
            self.embeddings = HierarchicalEmbeddings(embed_dim // num_heads, config)

    def weigh(self, leaves: Tensor) -> Tensor:
        """Computes the weights w ``[B, N, H]`` of leaves ``[N, B, leaf_dim]``."""
        leaf_weight = self.leaf_weight(leaves).transpose(0, 1)
        # In single precision at least: coefficients are sums of many small shares of the weights.
        return leaf_weight.to(torch.promote_types(leaf_weight.dtype, torch.float32))

    def forward(self, leaves: Tensor, values: Tensor, structure: TreeStructure) -> Tensor:
        """Accumulates values over subtrees.

        Args:
            leaves: ``[N, B, leaf_dim]``, states of the leaves as the attention receives them (L of eq. 16)
            values: ``[B, H, S, D / H]``, projected values of leaves, then nodes
            structure: of the trees

        Returns:
            ``[B, H, S, D / H]``: unchanged values of leaves, accumulated values of nodes
        """
        leaf_weight, by_position = self.weigh(leaves), values.transpose(1, 2)  # B x N x H, B x S x H x D/H
        leaf_values, node_values = by_position.split(structure.sizes, dim=1)
        summands = node_values
        if self.embeddings is not None and not self.embeddings.by_leaf_distance:
            summands = summands + self.embeddings.of_depths(structure.depth)[:, :, None].to(values.dtype)
        with without_autocast(leaves):
            nodes = accumulate(leaf_weight, leaf_values, summands, structure)
            if self.embeddings is not None:
                nodes = nodes + self.embeddings(leaf_weight, structure)
        # Laid out as projections are, S x B x D, where batch and heads can be viewed as one.
        accumulated = torch.cat([leaf_values.transpose(0, 1), nodes.to(values.dtype).transpose(0, 1)])
        return accumulated.permute(1, 2, 0, 3)


def accumulate(leaf_weight: Tensor, leaf_values: Tensor, node_values: Tensor, structure: TreeStructure) -> Tensor:
    """Upward cumulative average and weighted aggregation ``[B, M, H, D / H]`` in closed form, without embeddings.

    All heads have the same trees, so there is one product for all of them.

    Args:
        leaf_weight: ``[B, N, H]``, w; its dtype is that of the computation, whose differences of sums need precision
        leaf_values: ``[B, N, H, D / H]``, l
        node_values: ``[B, M, H, D / H]``, n
        structure: of the trees
    """
    share, heads = structure.share.to(leaf_weight), leaf_values.shape[2:]
    above = (structure.above.to(leaf_weight) @ node_values.flatten(2).to(leaf_weight)).unflatten(2, heads)
    above_leaves, above_nodes = above.split(structure.sizes, dim=1)
    weighted = leaf_weight.unsqueeze(3) * (leaf_values + above_leaves)  # B x N x H x D/H
    return (share @ weighted.flatten(2)).unflatten(2, heads) - (share @ leaf_weight).unsqueeze(3) * above_nodes
