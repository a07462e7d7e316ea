"""Relations of tree nodes, and self-attention with them (Lukovnikov & Fischer 2021, Sections 3.2.1 and 3.2.2).

The path from node i to node j goes ``up`` from i to a child of their lowest common ancestor, ``across`` its children,
and ``down`` to j. If one node is an ancestor of the other, the path only goes up or down. A parent and its child are
related differently, as "k-th child of" and "k-th child". Counts from 9 on are one class.

In preorder, the nodes after i up to a later node j that are closest to the root are children of the lowest common
ancestor: those after i's branch, up to j's own branch. So running minima of depths and ranks find all three counts.

B is the number of trees, M of nodes of the largest one, n of all nodes; nodes are in preorder.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Optional

import numpy as np
import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.nn.shared_memory import PackedRows
from tree_fairseq.tree_insertion.forests import Forest

STEPS = 10  # different counts, 0 to 9

# Rows of the embedding tables: a row of zeros, then one for each count and kind of relation.
NOTHING = 0
UP = 1
DOWN = UP + STEPS
ACROSS = DOWN + 2 * STEPS - 1  # 0 steps across; steps to the left come before it, steps to the right after it
CHILD = ACROSS + STEPS
CHILD_OF = CHILD + STEPS
_END = CHILD_OF + STEPS


def pair_relations(trees: Forest) -> np.ndarray:
    """Returns the relations of all pairs of nodes, ``[3, B, M, M]`` int8 rows of the embedding tables.

    Their sum represents the path from node i to node j. Pairs with padding may have any.
    """
    up, down, across = _later_paths(trees)
    rows = np.stack([UP + up + down.swapaxes(1, 2), DOWN + down + up.swapaxes(1, 2), ACROSS + across])
    rows[2] -= across.swapaxes(1, 2)
    children = np.flatnonzero(trees.depths)
    row, parents = trees.rows[children], (trees.parents - trees.starts)[children]
    places, ranks = (trees.nodes - trees.starts)[children], np.minimum(trees.ranks[children], STEPS - 1)
    rows[:, row, parents, places] = rows[:, row, places, parents] = NOTHING
    rows[0, row, parents, places] = CHILD + ranks
    rows[0, row, places, parents] = CHILD_OF + ranks
    return rows


_PAIRS_AT_ONCE = 2**20


def _later_paths(trees: Forest) -> np.ndarray:
    """Steps up, down and across from each node to each later one of its tree, ``[3, B, M, M]`` int8, at most 9 each.

    Entries of earlier nodes are 0.
    """
    width = trees.width
    bits = width.bit_length()
    # Depths and ranks in one number.
    dtype = np.int16 if bits <= 7 else np.int32 if bits <= 15 else np.int64
    largest, mask = np.iinfo(dtype).max, dtype(2**bits - 1)
    depths, ranks = (trees.padded(values.astype(dtype), 0) for values in (trees.depths, trees.ranks))
    low, high = (depths << bits) + ranks, (depths << bits) + (mask - ranks)
    places, most = np.arange(width), dtype(STEPS - 1)
    found = np.empty((3, len(trees), width, width), np.int8)
    size = max(1, _PAIRS_AT_ONCE // low.size)
    for first in range(0, width, size):
        some = slice(first, first + size)
        is_later = places > places[some, None]
        lowest, highest = (
            np.minimum.accumulate(np.where(is_later, keys[:, None], largest), axis=2) for keys in (low, high)
        )
        level = lowest >> bits  # the depth of both branches
        up, down = depths[:, some, None] + 1 - level, depths[:, None] + 1 - level
        forks = up > 0
        up -= forks
        down -= forks
        across = ((mask - (highest & mask)) - (lowest & mask) + 1) * forks
        for kind, counts in enumerate((up, down, across)):
            found[kind, :, some] = np.minimum(counts, most) * is_later
    return found


def without_child_relations(rows: Tensor) -> Tensor:
    """Treats parents and children like all other pairs, an ablation: ``[3, B, M, M]`` int64."""
    up, down, across = rows
    is_child, is_parent = (up >= CHILD) & (up < CHILD_OF), up >= CHILD_OF
    is_family = is_child | is_parent
    return torch.stack(
        [
            torch.where(is_family, UP + is_parent.long(), up),
            torch.where(is_family, DOWN + is_child.long(), down),
            across.masked_fill(is_family, ACROSS),
        ]
    )


@dataclass(frozen=True)
class PairRelations:
    """The relations of a batch as attention reads them: rows ``[3, B, M, M]`` int64 of tables of embeddings.

    ``keys`` and ``values``, ``[relations, D / H]``, are added to keys and values; row 0 is zero. ``is_padding`` is
    ``[B, 1, 1, M]`` bool. ``nodes`` are where the nodes are among the B * M places.
    """

    rows: Tensor
    keys: Tensor
    values: Tensor
    is_padding: Tensor
    nodes: PackedRows


class TreeRelations(nn.Module):
    """Embeddings of relations, separate ones for keys and for values, shared by all layers and heads (Equation 3)."""

    def __init__(self, head_dim: int, child_relations: bool = True):
        super().__init__()
        self.child_relations = child_relations
        count = (_END if child_relations else CHILD) - 1
        self.keys, self.values = (nn.Parameter(torch.empty(count, head_dim)) for _ in range(2))
        for table in (self.keys, self.values):
            nn.init.normal_(table, std=head_dim**-0.5)

    def forward(self, rows: Tensor, is_node: Tensor, nodes: PackedRows) -> PairRelations:
        """Looks up the relations of all pairs of nodes, ``[3, B, M, M]`` (:func:`pair_relations`)."""
        rows = rows.long() if self.child_relations else without_child_relations(rows.long())
        keys, values = (functional.pad(table, (0, 0, 1, 0)) for table in (self.keys, self.values))
        return PairRelations(rows, keys, values, ~is_node[:, None, None], nodes)


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
        """Attends within the trees of a batch, whose nodes are packed, ``[n, 1, D]``; weights are never returned.

        ``key`` and ``value`` are not read. ``key_padding_mask`` holds the relations, and the padding; fairseq's decoder
        layer passes it on unread.
        """
        relations = key_padding_mask
        queries, keys, values = (
            relations.nodes.split(project(query), self.num_heads) for project in (self.q_proj, self.k_proj, self.v_proj)
        )  # B x H x M x D/H
        queries = queries * self.scaling
        # Scores, their softmax and sums of weights are in single precision at least.
        exact = torch.promote_types(values.dtype, torch.float32)
        scores = (queries @ keys.transpose(2, 3)).to(exact)  # B x H x M x M
        scores = _picked((queries @ relations.keys.t()).to(exact), relations.rows, scores)
        weights = self.dropout_module(scores.masked_fill(relations.is_padding, -torch.inf).softmax(3))
        by_relation = _sum_up(weights, relations.rows, len(relations.values)).to(values.dtype)
        output = weights.to(values.dtype) @ values + by_relation @ relations.values
        return self.out_proj(relations.nodes.join(output)), None


def _picked(scores: Tensor, rows: Tensor, total: Tensor) -> Tensor:
    """Adds to each pair the scores ``[B, H, M, relations]`` of its relations: ``[B, H, M, M]``."""
    parts = (scores.gather(3, row.unsqueeze(1).expand(-1, scores.size(1), -1, -1)) for row in rows)
    return functools.reduce(torch.add, parts, total)


def _sum_up(weights: Tensor, rows: Tensor, count: int) -> Tensor:
    """Adds up the weights of pairs by relation: ``[B, H, M, M]`` becomes ``[B, H, M, relations]``."""
    sums = weights.new_zeros(*weights.shape[:3], count)
    for row in rows:
        sums.scatter_add_(3, row.unsqueeze(1).expand_as(weights), weights)
    return sums
