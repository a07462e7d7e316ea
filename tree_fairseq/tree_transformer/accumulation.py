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

from tree_fairseq.options import option
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
        """e_i of all nodes, ``[B, H, M, head_dim]``, without the part of :meth:`of_depths`, from w, ``[B, N, H]``."""
        (batch, num_nodes, num_leaves), heads = structure.share.shape, leaf_weight.size(2)
        table = self.table(num_leaves, structure.longest)
        mass = structure.branches(leaf_weight.reshape(-1, heads)).view(batch, num_nodes, len(table), heads)
        return mass.permute(0, 3, 1, 2).to(table.dtype) @ table

    def of_depths(self, depth: Tensor) -> Tensor:
        """Vertical embeddings by the depth of the node alone, ``[..., head_dim]``; they count as part of its value."""
        return self.vertical_only(self.vertical(depth.clamp(max=self.vertical.num_embeddings - 1)))

    def table(self, num_ranks: int, longest: int) -> Tensor:
        """Embeddings of leaves in the order of the sums of :attr:`TreeStructure.branches`.

        Returns:
            ``[num_ranks + longest, head_dim]``: of each rank its horizontal embedding, of branches of 1, 2, ... nodes
            the sum of the vertical embeddings of their heights; zero where heights do not count
        """
        ranks = functional.pad(_rows(self.horizontal, num_ranks), (self.vertical.embedding_dim, 0))
        if not self.by_leaf_distance:
            return functional.pad(ranks, (0, 0, 0, longest))
        return torch.cat([ranks, self.vertical_only(_rows(self.vertical, longest).cumsum(0))])

    def vertical_only(self, embedded: Tensor) -> Tensor:
        """Vertical embeddings ``[..., width]`` with nothing beside them: ``[..., head_dim]``."""
        return functional.pad(embedded, (0, self.horizontal.embedding_dim))


def _rows(table: nn.Embedding, count: int) -> Tensor:
    """The first rows of a table, the last one for all beyond it."""
    if count <= table.num_embeddings:
        return table.weight[:count]
    return table(torch.arange(count, device=table.weight.device).clamp(max=table.num_embeddings - 1))


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
        leaf_weight = self.weigh(leaves)
        leaf_values, node_values = values.split([structure.num_leaves, values.size(2) - structure.num_leaves], dim=2)
        summands = node_values
        if self.embeddings is not None and not self.embeddings.by_leaf_distance:
            summands = summands + self.embeddings.of_depths(structure.depth)[:, None].to(values.dtype)
        with torch.autocast(leaves.device.type, enabled=False):
            nodes = accumulate(leaf_weight, leaf_values, summands, structure)
        if self.embeddings is not None:
            nodes = nodes + self.embeddings(leaf_weight, structure).to(nodes.dtype)
        return torch.cat([leaf_values, nodes.to(values.dtype)], dim=2)


def accumulate(leaf_weight: Tensor, leaf_values: Tensor, node_values: Tensor, structure: TreeStructure) -> Tensor:
    """Upward cumulative average and weighted aggregation ``[B, H, M, D / H]`` in closed form, without embeddings.

    Args:
        leaf_weight: ``[B, N, H]``, w; its dtype is that of the computation, whose differences of sums need precision
        leaf_values: ``[B, H, N, D / H]``, l
        node_values: ``[B, H, M, D / H]``, n
        structure: of the trees
    """
    num_nodes, num_leaves = structure.covers.shape[1:]
    # A product has the layout of its factors, and this one has to be a batch of matrices.
    by_head = leaf_weight.transpose(1, 2).contiguous()[:, :, None]
    share = by_head * structure.share[:, None].to(leaf_weight)  # B x H x M x N, C
    # All heads have the same trees: one product for all of them.
    nodes = node_values.transpose(1, 2).flatten(2).to(leaf_weight)  # B x M x D
    above = structure.above.to(leaf_weight) @ nodes
    above = above.unflatten(2, node_values.shape[1::2]).transpose(1, 2)  # B x H x S x D/H
    above_leaves, above_nodes = above.split([num_leaves, num_nodes], dim=2)
    return share @ (leaf_values + above_leaves) - share.sum(3, keepdim=True) * above_nodes
