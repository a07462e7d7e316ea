"""Hierarchical accumulation: the state of a node from the states of its whole subtree (Nguyen et al. 2020).

A tree has leaves l_1 .. l_N and nodes n_1 .. n_M. Section 4.1 makes a tensor of both and reduces it twice:

    S = F(L, N)               interpolation, eq. 5: column j has leaf j, then all nodes above it
    U(S)_ij                   upward cumulative average, eq. 6: the mean of leaf j and of the nodes from i down to j
    V(U(S), w)_i              weighted aggregation, eq. 7: the mean over the leaves j of node i of w_j U(S)_ij

Section 4.2 adds hierarchical embeddings E_tj = [e^v; e^h] (eq. 9) for node t above leaf j: one of the number of nodes
from t down to j, and one of the rank of j among the leaves of t. The new state of node i is

    N'_i = V(U(S + E), w)_i   eqs. 10 and 16, with w = L u

S has (M + 1) * N * D numbers, and it is never built. All three steps are linear in S. A branch from i to j is the nodes
above j less those above i, so with a_s, the sum of all nodes above leaf or node s,

    V(U(S), w)_i = sum_j C_ij (l_j + a_j) - (sum_j C_ij) a_i
    C_ij = cov(i, j) w_j / (c_i (b_ij + kappa))

Here cov(i, j) is 1 where node i covers leaf j, c_i counts the leaves of i, and b_ij the nodes of the branch. The mean
of a branch counts its leaf in the paper, kappa = 1, and not in the authors' code, kappa = 0. :class:`TreeStructure` has
C without the learned w, and which nodes are above which. :meth:`BranchSums.embed` is V(U(E), w).
"""

from dataclasses import dataclass
from typing import Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.nn.tensors import without_autocast
from tree_fairseq.nn.tree_batch import MAX_LENGTHS, MAX_RANKS
from tree_fairseq.support.options import option
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
        published=False,
    )


class HierarchicalEmbeddings(nn.Module):
    """The hierarchical embeddings of a layer (eq. 9): tables E^v and E^h of width ``head_dim / 2``, for all heads.

    The last row of a table is that of all greater heights, or ranks, too.
    """

    def __init__(
        self, head_dim: int, by_leaf_distance: bool = True, num_heights: int = MAX_LENGTHS, num_ranks: int = MAX_RANKS
    ):
        super().__init__()
        self.by_leaf_distance = by_leaf_distance
        self.vertical = nn.Embedding(num_heights, head_dim // 2)
        self.horizontal = nn.Embedding(num_ranks, head_dim - head_dim // 2)
        for table in (self.vertical, self.horizontal):
            nn.init.normal_(table.weight, std=head_dim**-0.5)

    def forward(self, leaf_weight: Tensor, structure: TreeStructure) -> Tensor:
        """V(U(E), w), ``[B, M, H, D / H]``, without the part of :meth:`of_depths`, from w ``[B, N, H]``."""
        if self.by_leaf_distance:
            return structure.branches.embed(leaf_weight, self.horizontal.weight, self.vertical.weight)
        embedded = structure.branches.embed(leaf_weight, self.horizontal.weight)
        return functional.pad(embedded, (self.vertical.embedding_dim, 0))  # B x M x H x D/2H -> B x M x H x D/H

    def of_depths(self, depth: Tensor) -> Tensor:
        """E^v by depth, as in the authors' code: ``[B, M, D / H]``; the same on all branches, so part of a node."""
        embedded = self.vertical(depth.clamp(max=self.vertical.num_embeddings - 1))
        return functional.pad(embedded, (0, self.horizontal.embedding_dim))  # B x M x D/2H -> B x M x D/H


class HierarchicalAccumulation(nn.Module):
    """Replaces the values of nodes by N' (eqs. 10 and 16). ``leaf_dim`` is the width of leaves if it is not D.

    Examples:
        >>> accumulation = HierarchicalAccumulation(embed_dim=8, num_heads=2, config=AccumulationConfig())
        >>> # three leaves, EOS among them, and one node over the first two
        >>> accumulation(leaves, values, structure).shape  # values: [1, 2, 4, 4]
        torch.Size([1, 2, 4, 4])
    """

    def __init__(self, embed_dim: int, num_heads: int, config: AccumulationConfig, leaf_dim: Optional[int] = None):
        super().__init__()
        # u_s or u_c of the paper, one a head
        self.leaf_weight = nn.Linear(leaf_dim or embed_dim, num_heads, bias=False)
        nn.init.xavier_uniform_(self.leaf_weight.weight)
        self.embeddings = None
        if not config.no_hierarchical_embeddings:
            by_leaf_distance = config.vertical_embedding == "leaf-distance"
            self.embeddings = HierarchicalEmbeddings(embed_dim // num_heads, by_leaf_distance)

    def forward(self, leaves: Tensor, values: Tensor, structure: TreeStructure) -> Tensor:
        """Accumulates values over subtrees.

        Args:
            leaves: ``[N, B, leaf_dim]``, states of the leaves as the attention receives them (L of eq. 16)
            values: ``[B, H, S, D / H]``, projected values of leaves, then nodes
            structure: of the trees

        Returns:
            ``[B, H, S, D / H]``: unchanged values of leaves, accumulated values of nodes
        """
        weights = self.leaf_weight(leaves).transpose(0, 1)  # w = L u: N x B x H -> B x N x H
        # In single precision at least: coefficients are sums of many small shares of the weights.
        weights = weights.to(torch.promote_types(weights.dtype, torch.float32))
        by_position = values.transpose(1, 2)  # B x H x S x D/H -> B x S x H x D/H
        leaf_values, node_values = by_position.split(structure.sizes, dim=1)
        summands = node_values
        if self.embeddings is not None and not self.embeddings.by_leaf_distance:
            summands = summands + self.embeddings.of_depths(structure.depth)[:, :, None].to(values.dtype)
        with without_autocast(leaves):
            nodes = accumulate(weights, leaf_values, summands, structure)  # V(U(S), w)
            if self.embeddings is not None:
                nodes = nodes + self.embeddings(weights, structure)  # + V(U(E), w)
        # Laid out as projections are, S x B x D, where batch and heads can be viewed as one.
        accumulated = torch.cat([leaf_values.transpose(0, 1), nodes.to(values.dtype).transpose(0, 1)])
        return accumulated.permute(1, 2, 0, 3)  # S x B x H x D/H -> B x H x S x D/H


def accumulate(leaf_weight: Tensor, leaf_values: Tensor, node_values: Tensor, structure: TreeStructure) -> Tensor:
    """Interpolation, upward average and weighted aggregation V(U(F(L, N)), w) in closed form (eqs. 5 to 8).

    All heads have the same trees, so there is one product for all of them.

    Args:
        leaf_weight: ``[B, N, H]``, w; its dtype is that of the computation, whose differences of sums need precision
        leaf_values: ``[B, N, H, D / H]``, L
        node_values: ``[B, M, H, D / H]``, N
        structure: of the trees

    Returns:
        ``[B, M, H, D / H]``
    """
    share, heads = structure.share.to(leaf_weight), leaf_values.shape[2:]
    # a, the sums of the nodes above each leaf, and above each node: B x S x D -> B x S x H x D/H
    above = (structure.above.to(leaf_weight) @ node_values.flatten(2).to(leaf_weight)).unflatten(2, heads)
    above_leaves, above_nodes = above.split(structure.sizes, dim=1)
    weighted = leaf_weight.unsqueeze(3) * (leaf_values + above_leaves)  # w_j (l_j + a_j): B x N x H x D/H
    branches = (share @ weighted.flatten(2)).unflatten(2, heads)  # B x M x D -> B x M x H x D/H
    return branches - (share @ leaf_weight).unsqueeze(3) * above_nodes
