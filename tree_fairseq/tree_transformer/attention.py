"""fairseq's multi-head attention over leaves and nodes, with accumulated values of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Optional

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.nn.distance_bias import DistanceBias
from tree_fairseq.nn.phrase_bias import PhraseBias
from tree_fairseq.nn.shared_memory import MemoryType, SharedMemoryAttention
from tree_fairseq.tree_transformer.accumulation import AccumulationConfig, HierarchicalAccumulation
from tree_fairseq.tree_transformer.tree_structure import AttentionMask, TreeStructure

INITIAL_ANCESTOR_BIAS = -3.0
"""Of the attention from leaves to nodes above them: a model starts close to one whose leaves attend to leaves alone."""


class TreeAttention(MultiheadAttention):
    """The part of encoder self-attention and decoder cross-attention that accumulates values."""

    def __init__(self, embed_dim: int, num_heads: int, config: AccumulationConfig, **kwargs):
        super().__init__(embed_dim, num_heads, **kwargs)
        self.accumulation = HierarchicalAccumulation(embed_dim, num_heads, config, leaf_dim=self.kdim)

    def _split_heads(self, states: Tensor) -> Tensor:
        """``[S, B, D]`` to ``[B, H, S, D / H]``."""
        return states.unflatten(2, (self.num_heads, -1)).permute(1, 2, 0, 3)

    def accumulated_values(self, states: Tensor, structure: TreeStructure) -> Tensor:
        """Projects states to values and accumulates those of the nodes: ``[B, H, S, D / H]``."""
        values = self._split_heads(self.v_proj(states))
        return self.accumulation(states[: structure.num_leaves], values, structure)


class TreeSelfAttention(TreeAttention):
    """Encoder self-attention of the Tree-Transformer (eqs. 12 to 18) with subtree masking.

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
        heads = (
            self._split_heads(self.q_proj(query)),
            self._split_heads(self.k_proj(query)),
            self.accumulated_values(query, structure),
        )
        return self.out_proj(self.look(*heads, self.biased(structure.masks))), None

    def biased(self, masks: Sequence[AttentionMask]) -> Sequence[AttentionMask]:
        """The masks of a :class:`TreeStructure`, that of the leaves with the biases that there are."""
        if self.distance_bias is None and self.ancestor_bias is None:
            return masks
        leaves, *others = masks
        bias = leaves.bias
        if self.distance_bias is not None:
            distances = self.distance_bias()
            # Nodes come after the leaves: as keys of leaves, and as queries where subtrees are not masked.
            more = leaves.num_keys - distances.size(3), leaves.last - distances.size(2)
            bias = bias + functional.pad(distances, (0, more[0], 0, more[1]))
        if self.ancestor_bias is not None:
            num_leaves, num_nodes = leaves.last, leaves.num_keys - leaves.last
            of_nodes = self.ancestor_bias[:, None, None].expand(-1, 1, num_nodes)
            bias = bias + functional.pad(of_nodes, (num_leaves, 0)).to(bias)  # B x H x N x S
        return [replace(leaves, bias=bias), *others]

    def look(self, query: Tensor, key: Tensor, value: Tensor, masks: Sequence[AttentionMask]) -> Tensor:
        """Attends within trees from ``[B, H, S, D / H]``, each run of queries under its mask.

        Returns:
            ``[S, B, D]``, or as many rows as the masks have queries
        """
        # The gradient of a split is one copy; that of each slice is as large as the whole.
        runs = query.split([masks[0].first, *(mask.last - mask.first for mask in masks)], dim=2)[1:]
        outputs = [
            self.attend(
                run,
                *(
                    tensor.narrow(2, 0, mask.num_keys) if mask.num_keys < tensor.size(2) else tensor
                    for tensor in (key, value)
                ),
                mask.bias,
            )
            for run, mask in zip(runs, masks)
        ]
        return torch.cat([output.permute(2, 0, 1, 3) for output in outputs]).flatten(2)  # T x B x H x D/H to T x B x D

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """Adds the initial bias on ancestors to the checkpoint of a model whose leaves do not attend to them."""
        super().upgrade_state_dict_named(state_dict, name)
        if self.ancestor_bias is not None and f"{name}.ancestor_bias" not in state_dict:
            state_dict[f"{name}.ancestor_bias"] = torch.full_like(self.ancestor_bias, INITIAL_ANCESTOR_BIAS)

    @torch.no_grad()
    def weights_of_nodes(self, states: Tensor, structure: TreeStructure) -> Tensor:
        """Attention weights of the nodes over leaves and nodes (eqs. 14 and 18), for pictures: ``[B, H, M, S]``.

        ``states`` ``[S, B, D]`` are those that :meth:`forward` gets. Fused attention, which trains, does not have them.
        """
        mask, first = structure.masks[-1], structure.num_leaves
        query, key = self._split_heads(self.q_proj(states)), self._split_heads(self.k_proj(states))
        logits = query[:, :, first:] @ key.mT / self.head_dim**0.5
        return (logits + mask.bias.to(logits)).softmax(-1)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
        """Scaled dot-product attention ``[B, H, T, D / H]`` with dropout of weights and an additive mask."""
        drops = self.training or self.dropout_module.apply_during_inference
        dropout = self.dropout_module.p if drops else 0.0
        return functional.scaled_dot_product_attention(query, key, value, bias.to(query.dtype), dropout)


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
            self.phrase_bias = PhraseBias(num_heads, config)

    def read(self, states: Tensor, structure: TreeStructure) -> tuple[Tensor, Tensor, Tensor]:
        """Keys and values of leaves and nodes ``[S, B, encoder's D]``; see :meth:`SharedMemoryAttention.read`."""
        padding = structure.padding
        if self.attend_nodes:
            values = self.accumulated_values(states, structure)
        else:
            states, padding = states[: structure.num_leaves], padding[:, : structure.num_leaves]
            values = self._split_heads(self.v_proj(states))
        return self._split_heads(self.k_proj(states)), values, padding

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
