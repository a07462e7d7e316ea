"""fairseq's multi-head self-attention with relations between the nodes of trees (Lukovnikov & Fischer 2021, section 3.2.2).

    e_ij = (q_i k_j + q_i a^K_ij) / sqrt(D / H),    z_i = sum_j alpha_ij (v_j + a^V_ij)

a_ij is the sum of up to three of R embeddings. Queries meet these R embeddings once and pairs pick from the result; weights are
summed up by embedding before they meet the embeddings of values. No vector is ever made for a pair.
"""

from __future__ import annotations

import functools
from typing import Optional

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from tree_fairseq.modules.heads import join_heads, split_heads
from tree_fairseq.modules.tree_relations import PairRelations


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
