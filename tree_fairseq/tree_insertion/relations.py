"""Relations of tree nodes, and self-attention with them (Lukovnikov & Fischer 2021, Sections 3.2.1 and 3.2.2).

The path from node i to node j goes ``up`` from i to a child of their lowest common ancestor, ``across`` its children,
and ``down`` to j. If one node is an ancestor of the other, the path only goes up or down. A parent and its child are
related differently, as "k-th child of" and "k-th child". Counts from 9 on are one class. With A(k, j) = "j is in the
subtree of k", the lowest common ancestors and the branches below them are counted by matrix products:

    common ancestors (i, j) = sum_k A(k, i) A(k, j)
    rank of i's branch (i, j) = sum_k rank_k A(k, i) (A(parent of k, j) - A(k, j))

since the root of i's branch is the only ancestor of i that is not above j while its parent is.

For the ablation with absolute positions, :func:`structure_tokens` writes the trees as sequences of labels and brackets.
B is the number of trees, M of nodes of the largest one; nodes are in preorder and padded on the right.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Optional

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.nn.shared_memory import join_heads, split_heads


@dataclass(frozen=True)
class PreorderTrees:
    """The nodes of B trees. Padding nodes are trees of their own.

    Attributes:
        parents: ``[B, M]`` int64 indices of the parents, each before its children; -1 for roots and padding
        is_node: ``[B, M]`` bool, false at padding
        depths: ``[B, M]`` int64, edges to the root
        ends: ``[B, M]`` int64, the index after the subtree of each node
        dominates: ``[B, M, M]`` bool, whether node j is in the subtree of node i; i itself is
    """

    parents: Tensor
    is_node: Tensor
    depths: Tensor
    ends: Tensor
    dominates: Tensor

    @classmethod
    def of(cls, parents: Tensor, is_node: Tensor) -> PreorderTrees:
        """Computes depths and subtrees from the parents, without a loop over rows or nodes."""
        places = torch.arange(parents.size(1), device=parents.device)
        is_later = places > places.unsqueeze(1)  # i x j
        # The subtree of a node ends before the next node whose parent precedes it.
        is_outside = is_later & (parents.unsqueeze(1) < places.unsqueeze(1))
        ends = torch.where(is_outside, places, parents.size(1)).amin(2)
        dominates = (places >= places.unsqueeze(1)) & (places < ends.unsqueeze(2))
        return cls(parents, is_node, dominates.sum(1) - 1, ends, dominates)

    @functools.cached_property
    def places(self) -> Tensor:
        """``[M]`` int64, 0 to M - 1."""
        return torch.arange(self.parents.size(1), device=self.parents.device)

    @functools.cached_property
    def is_inner(self) -> Tensor:
        """``[B, M]`` bool, which nodes have children."""
        return self.ends > self.places + 1

    @functools.cached_property
    def ranks(self) -> Tensor:
        """``[B, M]`` int64, how many left siblings each node has."""
        are_siblings = self.parents.unsqueeze(2) == self.parents.unsqueeze(1)
        return are_siblings.tril(-1).sum(2)


def structure_tokens(labels: Tensor, trees: PreorderTrees, opening: int, closing: int, pad: int) -> tuple[Tensor, ...]:
    """Writes trees as sequences such as ``( a b ( c d ) )``: every node with children is in brackets with its subtree.

    ``labels`` are ``[B, M]`` int64, the other arguments ids. Returns the sequences, ``[B, T]`` int64, padded on the
    right; and the positions of the nodes in them, ``[B, M]`` int64, 0 for padding.
    """
    is_inner = trees.is_inner & trees.is_node
    opened = is_inner.long().cumsum(1)  # up to each node, its own bracket included
    closed = (is_inner.unsqueeze(2) & (trees.ends.unsqueeze(2) <= trees.places)).sum(1)
    places = trees.places + opened + closed
    # A closing bracket comes after all nodes of its subtree and before it, their opening brackets, and the closing
    # brackets of subtrees that end earlier, or there and deeper.
    later, earlier = trees.ends.unsqueeze(2), trees.ends.unsqueeze(1)  # of the bracket, of the others
    is_before = (earlier < later) | ((earlier == later) & (trees.places > trees.places.unsqueeze(1)))
    ends = trees.ends + opened.gather(1, trees.ends - 1) + (is_before & is_inner.unsqueeze(1)).sum(2)
    length = int((trees.is_node.sum(1) + 2 * is_inner.sum(1)).amax())
    # Padding and missing brackets are written to an extra column, which is cut off.
    tokens = torch.full((len(labels), length + 1), pad, dtype=labels.dtype, device=labels.device)
    tokens.scatter_(1, places.masked_fill(~trees.is_node, length), labels)
    tokens.scatter_(1, (places - 1).masked_fill(~is_inner, length), opening)
    tokens.scatter_(1, ends.masked_fill(~is_inner, length), closing)
    return tokens[:, :length], places.masked_fill(~trees.is_node, 0)


STEPS = 10  # different counts, 0 to 9

# Rows of the embedding tables: a row of zeros, then one for each count and kind of relation.
NOTHING = 0
UP = 1
DOWN = UP + STEPS
ACROSS = DOWN + 2 * STEPS - 1  # 0 steps across; steps to the left come before it, steps to the right after it
CHILD = ACROSS + STEPS
CHILD_OF = CHILD + STEPS
_END = CHILD_OF + STEPS


def pair_relations(trees: PreorderTrees, child_relations: bool = True) -> Tensor:
    """Returns the relations of all pairs of nodes, ``[3, B, M, M]`` int64 rows of the embedding tables.

    Their sum represents the path from node i to node j. Pairs with padding may have any. Without ``child_relations``,
    an ablation, parents and children are treated like all other pairs.
    """
    up, down, across = _paths(trees)
    is_child, is_parent = (up == 0) & (down == 1), (up == 1) & (down == 0)
    crosses = (up > 0) & (down > 0)
    # The step across from one branch to the other counts neither as up nor as down.
    most = STEPS - 1
    rows = [
        UP + (up - crosses.long()).clamp(0, most),
        DOWN + (down - crosses.long()).clamp(0, most),
        ACROSS + across.masked_fill(~crosses, 0).clamp(-most, most),
    ]
    if child_relations:
        ranks = trees.ranks.clamp(max=most)
        is_family = is_child | is_parent
        family = torch.where(is_child, CHILD + ranks.unsqueeze(1), CHILD_OF + ranks.unsqueeze(2))
        rows = [torch.where(is_family, family, rows[0]), *(row.masked_fill(is_family, NOTHING) for row in rows[1:])]
    return torch.stack(rows)


def _paths(trees: PreorderTrees) -> tuple[Tensor, Tensor, Tensor]:
    """Edges from i up to the lowest common ancestor, edges down to j, and their branches' rank difference."""
    parents = trees.parents.clamp(min=0).unsqueeze(2).expand_as(trees.dominates)
    # Counts are exact in single precision; half precision would round them.
    with torch.autocast(trees.parents.device.type, enabled=False):
        dominates = trees.dominates.float()
        common = (dominates.transpose(1, 2) @ dominates).long()  # i x j
        is_branch = dominates.gather(1, parents) - dominates
        branch_ranks = ((dominates * trees.ranks.unsqueeze(2)).transpose(1, 2) @ is_branch).long()
    levels = trees.depths + 1
    return levels.unsqueeze(2) - common, levels.unsqueeze(1) - common, branch_ranks.transpose(1, 2) - branch_ranks


@dataclass(frozen=True)
class PairRelations:
    """The relations of a batch as attention reads them: rows ``[3, B, M, M]`` of tables of embeddings.

    ``keys`` and ``values``, ``[relations, D / H]``, are added to keys and values; row 0 is zero. Padding is ``[B, M]``.
    """

    rows: Tensor
    keys: Tensor
    values: Tensor
    padding: Tensor


class TreeRelations(nn.Module):
    """Embeddings of relations, separate ones for keys and for values, shared by all layers and heads (Equation 3)."""

    def __init__(self, head_dim: int, child_relations: bool = True):
        super().__init__()
        self.child_relations = child_relations
        count = (_END if child_relations else CHILD) - 1
        self.keys, self.values = (nn.Parameter(torch.empty(count, head_dim)) for _ in range(2))
        for table in (self.keys, self.values):
            nn.init.normal_(table, std=head_dim**-0.5)

    def forward(self, trees: PreorderTrees) -> PairRelations:
        """Returns the relations of all pairs of nodes."""
        rows = pair_relations(trees, self.child_relations)
        keys, values = (functional.pad(table, (0, 0, 1, 0)) for table in (self.keys, self.values))
        return PairRelations(rows, keys, values, ~trees.is_node)


class TreeRelationAttention(MultiheadAttention):
    """fairseq's multi-head self-attention in which each node attends to all nodes of its tree, with their relations:

        e_ij = (q_i k_j + q_i a^K_ij) / sqrt(D / H),    z_i = sum_j alpha_ij (v_j + a^V_ij)

    a_ij is the sum of up to three relation embeddings. Queries are multiplied with the embeddings once, and each pair
    picks its scores from the result; weights are added up by relation before they are multiplied with the embeddings of
    values. So no vector is made for a pair.
    """

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: PairRelations, **kwargs
    ) -> tuple[Tensor, Optional[Tensor]]:
        """Attends within a batch of trees, ``[M, B, D]``; ``key`` and ``value`` are not read, weights never returned.

        ``key_padding_mask`` holds the relations, and the padding; fairseq's decoder layer passes it on unread.
        """
        relations = key_padding_mask
        queries, keys, values = (
            split_heads(project(query), self.num_heads) for project in (self.q_proj, self.k_proj, self.v_proj)
        )  # B x H x M x D/H
        queries = queries * self.scaling
        scores = queries @ keys.transpose(2, 3) + _pick(queries @ relations.keys.t(), relations.rows)  # B x H x M x M
        scores = scores.masked_fill(relations.padding[:, None, None], -torch.inf)
        # Softmax in single precision at least.
        weights = scores.softmax(3, dtype=torch.promote_types(scores.dtype, torch.float32)).to(values.dtype)
        weights = self.dropout_module(weights)
        by_relation = _sum_up(weights, relations.rows, len(relations.values))  # B x H x M x relations
        return self.out_proj(join_heads(weights @ values + by_relation @ relations.values)), None


def _pick(scores: Tensor, rows: Tensor) -> Tensor:
    """Adds up for each pair the scores of its relations: ``[B, H, M, relations]`` becomes ``[B, H, M, M]``."""
    parts = (scores.gather(3, row.unsqueeze(1).expand(-1, scores.size(1), -1, -1)) for row in rows)
    return functools.reduce(torch.add, parts)


def _sum_up(weights: Tensor, rows: Tensor, count: int) -> Tensor:
    """Adds up the weights of pairs by relation: ``[B, H, M, M]`` becomes ``[B, H, M, relations]``."""
    sums = weights.new_zeros(*weights.shape[:3], count)
    for row in rows:
        sums.scatter_add_(3, row.unsqueeze(1).expand_as(weights), weights)
    return sums
