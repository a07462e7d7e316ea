"""Relations between the nodes of a tree (Lukovnikov & Fischer 2021, section 3.2.1), for all pairs of a batch at once.

The way from node i to node j goes ``up`` to below their lowest common ancestor, ``across`` its children and ``down`` again; where
one is the ancestor of the other it only goes up or down. From a parent to its child and back there is no such way but the relation
"k-th child" or "k-th child of". Numbers from 9 on are one. With A(k, j) = "j belongs to the subtree of k", lowest common ancestors
and the branches below them are counted by products of matrices:

    common ancestors (i, j) = sum_k A(k, i) A(k, j)
    rank of i's branch (i, j) = sum_k rank_k A(k, i) (A(parent of k, j) - A(k, j))

since of the ancestors of i exactly the branch's root is not above j while its parent is.
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
from tree_fairseq.tree_insertion.preorder import PreorderTrees

STEPS = 10
"""Numbers that are told apart, 0 to 9."""

# Rows of the tables: a row of zeros, then one for each number and kind of relation.
NOTHING = 0
UP = 1
DOWN = UP + STEPS
ACROSS = DOWN + 2 * STEPS - 1  # 0 steps across; those to the left stand before, those to the right after it
CHILD = ACROSS + STEPS
CHILD_OF = CHILD + STEPS
_END = CHILD_OF + STEPS


def pair_relations(trees: PreorderTrees, child_relations: bool = True) -> Tensor:
    """What is between each two nodes.

    Args:
        trees: of B rows and N nodes
        child_relations: false gives parents and children ways like all others, an ablation

    Returns:
        ``[3, B, N, N]`` int64 rows of the tables, whose sum stands for the way from node i to node j; of pairs with padding any
    """
    up, down, across = _ways(trees)
    is_child, is_parent = (up == 0) & (down == 1), (up == 1) & (down == 0)
    crosses = (up > 0) & (down > 0)
    # Of a way across, the step over the branches is neither up nor down.
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


def _ways(trees: PreorderTrees) -> tuple[Tensor, Tensor, Tensor]:
    """Edges from i up to and from there down to j, and the difference of ranks of their branches; each ``[B, N, N]`` int64."""
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
    """The relations of a batch as attention reads them, R kinds of them.

    Attributes:
        rows: ``[3, B, N, N]`` int64, of :func:`pair_relations`
        keys: ``[R, D / H]``, embeddings that are added to keys; row 0 is zero
        values: ``[R, D / H]``, those that are added to values
        padding: ``[B, N]`` bool, true at padding
    """

    rows: Tensor
    keys: Tensor
    values: Tensor
    padding: Tensor


class TreeRelations(nn.Module):
    """Embeddings of relations, separate ones for keys and for values, shared by all layers and heads (eq. 3).

    Args:
        head_dim: D / H
        child_relations: as :func:`pair_relations` has it
    """

    def __init__(self, head_dim: int, child_relations: bool = True):
        super().__init__()
        self.child_relations = child_relations
        count = (_END if child_relations else CHILD) - 1
        self.keys, self.values = (nn.Parameter(torch.empty(count, head_dim)) for _ in range(2))
        for table in (self.keys, self.values):
            nn.init.normal_(table, std=head_dim**-0.5)

    def forward(self, trees: PreorderTrees) -> PairRelations:
        """The relations of all pairs of nodes."""
        rows = pair_relations(trees, self.child_relations)
        keys, values = (functional.pad(table, (0, 0, 1, 0)) for table in (self.keys, self.values))
        return PairRelations(rows, keys, values, ~trees.is_node)


# FROM modules/tree_relation_attention: fairseq's multi-head self-attention with relations between the nodes of trees (Lukovnikov & Fischer 2021, section 3.2.2).
#
#     e_ij = (q_i k_j + q_i a^K_ij) / sqrt(D / H),    z_i = sum_j alpha_ij (v_j + a^V_ij)
#
# a_ij is the sum of up to three of R embeddings. Queries meet these R embeddings once and pairs pick from the result; weights are
# summed up by embedding before they meet the embeddings of values. No vector is ever made for a pair.


class TreeRelationAttention(MultiheadAttention):
    """Self-attention of nodes, each of which sees all nodes of its tree."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: PairRelations, **kwargs
    ) -> tuple[Tensor, Optional[Tensor]]:
        """Attends within a batch of trees.

        Args:
            query: ``[N, B, D]``
            key: the same; unread
            value: the same; unread
            key_padding_mask: the relations, which know padding: fairseq's decoder layer hands this argument on unread
            **kwargs: unread; there is no incremental state, no mask of the future, and weights are never returned

        Returns:
            ``[N, B, D]`` and None
        """
        relations = key_padding_mask
        queries, keys, values = (
            split_heads(project(query), self.num_heads) for project in (self.q_proj, self.k_proj, self.v_proj)
        )  # B x H x N x D/H
        queries = queries * self.scaling
        scores = queries @ keys.transpose(2, 3) + _pick(queries @ relations.keys.t(), relations.rows)  # B x H x N x N
        scores = scores.masked_fill(relations.padding[:, None, None], -torch.inf)
        # Softmax in single precision at least.
        weights = scores.softmax(3, dtype=torch.promote_types(scores.dtype, torch.float32)).to(values.dtype)
        weights = self.dropout_module(weights)
        by_relation = _sum_up(weights, relations.rows, len(relations.values))  # B x H x N x R
        return self.out_proj(join_heads(weights @ values + by_relation @ relations.values)), None


def _pick(scores: Tensor, rows: Tensor) -> Tensor:
    """The sums ``[B, H, N, N]`` of those of the scores ``[B, H, N, R]`` of each node that are a pair's."""
    batch, heads, nodes, _ = scores.shape
    parts = (scores.gather(3, row.unsqueeze(1).expand(batch, heads, nodes, nodes)) for row in rows)
    return functools.reduce(torch.add, parts)


def _sum_up(weights: Tensor, rows: Tensor, count: int) -> Tensor:
    """The weights ``[B, H, N, N]`` of pairs, summed up ``[B, H, N, R]`` by their relations."""
    sums = weights.new_zeros(*weights.shape[:3], count)
    for row in rows:
        sums.scatter_add_(3, row.unsqueeze(1).expand_as(weights), weights)
    return sums
