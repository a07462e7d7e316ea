"""fairseq's multi-head attention over leaves and nodes, with accumulated values of nodes."""

from __future__ import annotations

from typing import Any, Optional

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.nn.distance_bias import DistanceBias
from tree_fairseq.nn.phrase_bias import PhraseBias
from tree_fairseq.nn.shared_memory import MemoryType, SharedMemoryAttention, dropout_of_weights, split_heads
from tree_fairseq.tree_transformer.accumulation import AccumulationConfig, HierarchicalAccumulation
from tree_fairseq.tree_transformer.tree_structure import AttentionMask, TreeStructure

INITIAL_ANCESTOR_BIAS = -3.0
"""The initial bias of the attention from leaves to the nodes above them: at first, leaves attend mostly to leaves."""


class TreeAttention(MultiheadAttention):
    """The part of encoder self-attention and decoder cross-attention that accumulates values."""

    def __init__(self, embed_dim: int, num_heads: int, config: AccumulationConfig, **kwargs):
        super().__init__(embed_dim, num_heads, **kwargs)
        self.accumulation = HierarchicalAccumulation(embed_dim, num_heads, config, leaf_dim=self.kdim)

    def accumulated_values(self, states: Tensor, structure: TreeStructure) -> Tensor:
        """Projects states ``[S, B, D]`` to values, and accumulates those of nodes (eq. 16): ``[B, H, S, D / H]``."""
        values = split_heads(self.v_proj(states), self.num_heads)  # S x B x D -> B x H x S x D/H
        return self.accumulation(states[: structure.num_leaves], values, structure)


class TreeSelfAttention(TreeAttention):
    """Encoder self-attention of the Tree-Transformer (eqs. 12 to 18) with subtree masking (eq. 11).

    Two options are not in the paper: attention from leaves to leaves may have a bias by distance, and leaves may attend
    to the nodes above them, with a learned bias a head.
    """

    def __init__(self, embed_dim: int, num_heads: int, config: AccumulationConfig, **kwargs):
        super().__init__(embed_dim, num_heads, config, **kwargs)
        self.distance_bias = DistanceBias.of(num_heads, config)
        self.ancestor_bias = None
        if config.leaves_to_ancestors:
            self.ancestor_bias = nn.Parameter(torch.full((num_heads,), INITIAL_ANCESTOR_BIAS))

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: TreeStructure, **unread: Any
    ) -> tuple[Tensor, None]:
        """Attends within a batch of trees from ``query``, ``[S, B, D]``, leaves then nodes; weights are not returned.

        fairseq's encoder layer passes ``key_padding_mask`` on unread, so it is the trees; they have the masks.
        """
        structure = key_padding_mask
        queries = split_heads(self.q_proj(query), self.num_heads)  # S x B x D -> B x H x S x D/H
        keys = split_heads(self.k_proj(query), self.num_heads)
        values = self.accumulated_values(query, structure)

        # Leaves, then nodes, each with the mask of their kind; or all positions at once without subtree masks. The
        # gradient of a split is one copy; that of each slice is as large as the whole.
        attended = []
        runs = queries.split([mask.num_queries for mask in structure.masks], dim=2)
        for run, mask in zip(runs, structure.masks):
            bias = self.bias_of_leaves(mask) if mask is structure.masks[0] else mask.bias
            seen = keys[:, :, : mask.num_keys], values[:, :, : mask.num_keys]  # B x H x S' x D/H
            attended.append(self.attend(run, *seen, bias).permute(2, 0, 1, 3))  # B x H x T x D/H -> T x B x H x D/H
        return self.out_proj(torch.cat(attended).flatten(2)), None  # S x B x H x D/H -> S x B x D

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        """Scaled dot-product attention ``[B, H, T, D / H]`` with dropout of weights and an additive mask."""
        dropout = dropout_of_weights(self.dropout_module)
        return functional.scaled_dot_product_attention(queries, keys, values, bias.to(queries.dtype), dropout)

    def bias_of_leaves(self, mask: AttentionMask) -> Tensor:
        """The mask of the leaves with the learned biases that there are: ``[B, H or 1, N, S or N]``."""
        bias = mask.bias
        if self.distance_bias is not None:
            distances = self.distance_bias()  # B x H x N x N
            # Nodes come after the leaves: as keys of leaves, and as queries where subtrees are not masked.
            more_keys, more_queries = mask.num_keys - distances.size(3), mask.num_queries - distances.size(2)
            bias = bias + functional.pad(distances, (0, more_keys, 0, more_queries))
        if self.ancestor_bias is not None:
            num_nodes = mask.num_keys - mask.num_queries
            of_nodes = self.ancestor_bias[:, None, None].expand(-1, 1, num_nodes)  # H x 1 x M
            bias = bias + functional.pad(of_nodes, (mask.num_queries, 0)).to(bias)  # B x H x N x S
        return bias

    @torch.no_grad()
    def weights_of_nodes(self, states: Tensor, structure: TreeStructure) -> Tensor:
        """Attention weights of the nodes over leaves and nodes (eqs. 14 and 18), for pictures: ``[B, H, M, S]``.

        ``states`` ``[S, B, D]`` are those that :meth:`forward` gets. Fused attention, which trains, does not have them.
        """
        queries = split_heads(self.q_proj(states), self.num_heads)[:, :, structure.num_leaves :]  # B x H x M x D/H
        keys = split_heads(self.k_proj(states), self.num_heads)  # B x H x S x D/H
        logits = queries @ keys.mT / self.head_dim**0.5
        return (logits + structure.masks[-1].bias.to(logits)).softmax(-1)


class TreeCrossAttention(SharedMemoryAttention, TreeAttention):
    """Decoder cross-attention over leaves and nodes (eqs. 21 to 24), accumulated once a sentence and layer.

    Without ``attend_nodes``, an ablation, the memory has leaves only.
    """

    def __init__(self, embed_dim: int, num_heads: int, config: AccumulationConfig, attend_nodes: bool, **kwargs):
        super().__init__(embed_dim, num_heads, config, **kwargs)
        self.attend_nodes = attend_nodes
        if not attend_nodes:
            self.accumulation = None
        elif not config.no_phrase_bias:
            self.phrase_bias = PhraseBias(num_heads)

    def read(self, states: Tensor, structure: TreeStructure) -> tuple[Tensor, Tensor, Tensor]:
        """Keys and values of leaves and nodes ``[S, B, encoder's D]``; see :meth:`SharedMemoryAttention.read`."""
        padding = structure.padding
        if self.attend_nodes:
            values = self.accumulated_values(states, structure)
        else:
            states, padding = states[: structure.num_leaves], padding[:, : structure.num_leaves]
            values = split_heads(self.v_proj(states), self.num_heads)
        return split_heads(self.k_proj(states), self.num_heads), values, padding  # B x H x S x D/H

    def is_phrase(self, structure: TreeStructure) -> Tensor:
        """The nodes."""
        place = torch.arange(structure.padding.size(1), device=structure.padding.device)
        return (place >= structure.num_leaves).expand_as(structure.padding)


def _weights_of_leaves(attention: Optional[Tensor], encoder_out: dict[str, list]) -> dict[str, list]:
    num_leaves = encoder_out["tree_structure"][0].num_leaves
    return {"attn": [None if attention is None else attention[..., :num_leaves]]}


TREE_MEMORY = MemoryType(
    attention=lambda cfg, **kwargs: TreeCrossAttention(
        config=cfg, attend_nodes=not cfg.no_node_cross_attention, **kwargs
    ),
    parts=lambda encoder_out: (encoder_out["encoder_out"][0], encoder_out["tree_structure"][0]),
    describe=_weights_of_leaves,
)
"""Leaves and nodes of the Tree-Transformer's encoder."""
