"""Relations of tree nodes, and self-attention with them (Lukovnikov & Fischer 2021, Sections 3.2.1 and 3.2.2).

The path from node i to node j goes ``up`` from i to a child of their lowest common ancestor, ``across`` its children,
and ``down`` to j. If one node is an ancestor of the other, the path only goes up or down. A parent and its child are
related differently, as "k-th child of" and "k-th child". Counts from 9 on are one class.

In preorder, the nodes after i up to a later node j that are closest to the root are children of the lowest common
ancestor: those after i's branch, up to j's own branch. So running minima of depths and ranks find all three counts.

B is the number of trees, M of nodes of the largest one, n of all nodes; nodes are in preorder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

import numpy as np
import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.nn.shared_memory import FAST_ROW, PackedRows

if TYPE_CHECKING:
    from tree_fairseq.tree_insertion.tree_shapes import TreeShapes

STEPS = 10  # different counts, 0 to 9

# Rows of the embedding tables: a row of zeros, then one for each count and kind of relation.
NOTHING = 0
UP = 1
DOWN = UP + STEPS
ACROSS = DOWN + 2 * STEPS - 1  # 0 steps across; steps to the left come before it, steps to the right after it
CHILD = ACROSS + STEPS
CHILD_OF = CHILD + STEPS
_END = CHILD_OF + STEPS


# Relations as numbers: padding, then paths by steps up, down and across, then children, and parents, by rank.
_SIDEWAYS = 2 * STEPS - 1
_FIRST_CHILD = 1 + STEPS * STEPS * _SIDEWAYS
_COUNT = _FIRST_CHILD + 2 * STEPS


def pair_relations(trees: TreeShapes) -> tuple[np.ndarray, np.ndarray]:
    """Finds the relations of all pairs of nodes.

    Returns:
        - ``[B, M, M]`` int16, the number of the relation of node i to node j among the K different ones of these trees;
          0 where j is padding. Where only i is padding, it may be any other
        - ``[K, 3]`` int64, rows of the embedding tables whose sum represents a relation
    """
    up, down, across = _later_paths(trees)
    ups, downs = up + down.swapaxes(1, 2), down + up.swapaxes(1, 2)
    sideways = across - across.swapaxes(1, 2) + np.int8(STEPS - 1)
    numbers = 1 + (ups.astype(np.int16) * STEPS + downs) * _SIDEWAYS + sideways
    children = np.flatnonzero(trees.depths)
    row, parents = trees.rows[children], (trees.parents - trees.starts)[children]
    places, ranks = (trees.nodes - trees.starts)[children], np.minimum(trees.ranks[children], STEPS - 1)
    numbers[row, parents, places] = _FIRST_CHILD + ranks
    numbers[row, places, parents] = _FIRST_CHILD + STEPS + ranks
    is_padding = np.arange(trees.width) >= trees.lengths[:, None]
    numbers[np.broadcast_to(is_padding[:, None], numbers.shape)] = 0
    is_present = np.zeros(_COUNT, bool)
    is_present[numbers.ravel()] = is_present[0] = True
    return (is_present.cumsum() - 1).astype(np.int16)[numbers], _ROWS[is_present]


_PAIRS_AT_ONCE = 2**20


def _later_paths(trees: TreeShapes) -> np.ndarray:
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


def _rows_of_relations() -> np.ndarray:
    """The rows of the embedding tables for all relations, ``[count, 3]`` int64."""
    rows = np.full((_COUNT, 3), NOTHING)
    ups, downs, sideways = np.indices((STEPS, STEPS, _SIDEWAYS)).reshape(3, -1)
    rows[1:_FIRST_CHILD] = np.stack([UP + ups, DOWN + downs, ACROSS - STEPS + 1 + sideways], axis=1)
    rows[_FIRST_CHILD:, 0] = np.arange(CHILD, _END)
    return rows


_ROWS = _rows_of_relations()


def without_child_relations(rows: Tensor) -> Tensor:
    """Treats parents and children like all other pairs, an ablation: rows ``[K, 3]`` int64 of relations."""
    up, down, across = rows.unbind(1)
    is_child, is_parent = (up >= CHILD) & (up < CHILD_OF), up >= CHILD_OF
    is_family = is_child | is_parent
    return torch.stack(
        [
            torch.where(is_family, UP + is_parent.long(), up),
            torch.where(is_family, DOWN + is_child.long(), down),
            across.masked_fill(is_family, ACROSS),
        ],
        dim=1,
    )


@dataclass(frozen=True)
class PairRelations:
    """The relations of a batch as attention reads them.

    Attributes:
        numbers: ``[B, 1, M, M]`` int64, of the relation of each pair; 0 where the other node is padding, of which there
            may be more
        keys, values: ``[K, D / H]``, added to keys and values of nodes in each relation; row 0 is zero
        nodes: where the nodes are among the B * M places
        projection: weights and biases of :meth:`TreeRelationAttention.merged`; None in training
    """

    numbers: Tensor
    keys: Tensor
    values: Tensor
    nodes: PackedRows
    projection: Optional[tuple[Tensor, Tensor]] = None


class TreeRelations(nn.Module):
    """Embeddings of relations, separate ones for keys and for values, shared by all layers and heads (Equation 3)."""

    def __init__(self, head_dim: int, child_relations: bool = True):
        super().__init__()
        self.child_relations = child_relations
        count = (_END if child_relations else CHILD) - 1
        self.keys, self.values = (nn.Parameter(torch.empty(count, head_dim)) for _ in range(2))
        for table in (self.keys, self.values):
            nn.init.normal_(table, std=head_dim**-0.5)

    def forward(self, numbers: Tensor, rows: Tensor, nodes: PackedRows) -> PairRelations:
        """Embeds the relations of a batch, ``[B, M, M]`` and ``[K, 3]`` (:func:`pair_relations`)."""
        rows = rows if self.child_relations else without_child_relations(rows)
        tables = functional.pad(torch.cat([self.keys, self.values], dim=1), (0, 0, 1, 0))
        embedded = functional.embedding_bag(rows, tables, mode="sum")
        if not self.training:
            numbers = functional.pad(numbers, (0, max(0, FAST_ROW - numbers.size(2))))
        return PairRelations(numbers.long().unsqueeze(1), *embedded.chunk(2, dim=1), nodes)


class TreeRelationAttention(MultiheadAttention):
    """fairseq's multi-head self-attention in which each node attends to all nodes of its tree, with their relations:

        e_ij = (q_i k_j + q_i a^K_ij) / sqrt(D / H),    z_i = sum_j alpha_ij (v_j + a^V_ij)

    a_ij is the sum of up to three relation embeddings. Queries are multiplied with those of the K relations of the
    batch once, and each pair picks its score from the result; weights are added up by relation before they are
    multiplied with the embeddings of values. So no vector is made for a pair.
    """

    def merged(self) -> tuple[Tensor, Tensor]:
        """Weights and biases of scaled queries, keys and values together, for many calls without training."""
        scaled = self.q_proj.weight * self.scaling, self.q_proj.bias * self.scaling
        weights, biases = zip(scaled, *((layer.weight, layer.bias) for layer in (self.k_proj, self.v_proj)))
        return torch.cat(weights), torch.cat(biases)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: PairRelations, **kwargs
    ) -> tuple[Tensor, Optional[Tensor]]:
        """Attends within the trees of a batch, whose nodes are packed, ``[n, 1, D]``; weights are never returned.

        ``key`` and ``value`` are not read. ``key_padding_mask`` holds the relations, and the padding; fairseq's decoder
        layer passes it on unread.
        """
        relations, nodes = key_padding_mask, key_padding_mask.nodes
        if relations.projection is None:
            projected = (project(query) for project in (self.q_proj, self.k_proj, self.v_proj))
            queries, keys, values = (nodes.split(states, self.num_heads) for states in projected)  # B x H x M x D/H
            queries = queries * self.scaling
        else:
            projected = functional.linear(query, *relations.projection)
            queries, keys, values = nodes.split(projected, 3 * self.num_heads).chunk(3, dim=1)
        # Scores, their softmax and sums of weights are in single precision at least.
        exact = torch.promote_types(values.dtype, torch.float32)
        numbers = relations.numbers.expand(-1, self.num_heads, -1, -1)
        by_relation = (queries @ relations.keys.t()).to(exact)  # B x H x M x K
        by_relation.select(3, 0).fill_(-torch.inf)  # padding
        scores = (queries @ keys.transpose(2, 3)).to(exact)  # B x H x M x M
        if more := numbers.size(3) - scores.size(3):
            scores = functional.pad(scores, (0, more))
        weights = self.dropout_module((scores + by_relation.gather(3, numbers)).softmax(3))
        sums = torch.zeros_like(by_relation).scatter_add_(3, numbers, weights).to(values.dtype)
        output = weights[..., : values.size(2)].to(values.dtype) @ values + sums @ relations.values
        return self.out_proj(nodes.join(output)), None
