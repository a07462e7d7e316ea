"""fairseq's multi-head attention over leaves and nodes, with accumulated values of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor
from torch.nn import functional

from tree_fairseq.nn.shared_memory import MemoryType, SharedMemoryAttention, row_order, split_heads
from tree_fairseq.tree_transformer.accumulation import AccumulationConfig, HierarchicalAccumulation
from tree_fairseq.tree_transformer.tree_structure import AttentionMask, TreeStructure


@dataclass(frozen=True)
class TreeMemory:
    """The trees of B sentences, and the sentence that each row of the decoder reads.

    Beam search repeats and permutes rows. It moves this index instead of the states, so there is one copy of each
    sentence.

    Attributes:
        structure: trees of the B sentences
        order: ``[R]`` int64, sentence of each row; None where they are the B sentences in order
    """

    structure: TreeStructure
    order: Optional[Tensor]


class TreeAttention(MultiheadAttention):
    """The part of encoder self-attention and decoder cross-attention that accumulates values.

    Args:
        embed_dim: D
        num_heads: H
        config: options of the accumulation
        **kwargs: of :class:`fairseq.modules.MultiheadAttention`
    """

    def __init__(self, embed_dim: int, num_heads: int, config: AccumulationConfig, **kwargs):
        super().__init__(embed_dim, num_heads, **kwargs)
        self.accumulation = HierarchicalAccumulation(embed_dim, num_heads, config, leaf_dim=self.kdim)

    def _split_heads(self, states: Tensor) -> Tensor:
        """``[S, B, D]`` to ``[B, H, S, D / H]``."""
        return split_heads(states, self.num_heads)

    def accumulated_values(self, states: Tensor, structure: TreeStructure) -> Tensor:
        """Projects states to values and accumulates those of the nodes: ``[B, H, S, D / H]``."""
        values = self._split_heads(self.v_proj(states))
        return self.accumulation(states[: structure.num_leaves], values, structure)


class TreeSelfAttention(TreeAttention):
    """Encoder self-attention of the Tree-Transformer (eqs. 12 to 18) with subtree masking."""

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: TreeStructure,
        need_weights: bool = False,
        attn_mask: Optional[Tensor] = None,
    ) -> tuple[Tensor, None]:
        """Attends within a batch of trees.

        Args:
            query: ``[S, B, D]``, leaves then nodes
            key, value: unread
            key_padding_mask: the trees; fairseq's encoder layer passes this argument on unread
            need_weights: unread, weights are never returned
            attn_mask: unread, the trees have the mask

        Returns:
            ``[S, B, D]`` and None
        """
        structure = key_padding_mask
        heads = (
            self._split_heads(self.q_proj(query)),
            self._split_heads(self.k_proj(query)),
            self.accumulated_values(query, structure),
        )
        return self.out_proj(self.look(*heads, structure.masks)), None

    def look(self, query: Tensor, key: Tensor, value: Tensor, masks: Sequence[AttentionMask]) -> Tensor:
        """Attends within trees, each run of queries under its mask.

        Args:
            query: ``[B, H, S, D / H]``
            key: the same
            value: the same
            masks: of the queries

        Returns:
            ``[S, B, D]``, or as many rows as the masks have queries
        """
        outputs = [
            self.attend(
                query[:, :, mask.first : mask.last], key[:, :, : mask.num_keys], value[:, :, : mask.num_keys], mask.bias
            )
            for mask in masks
        ]
        return torch.cat([output.permute(2, 0, 1, 3) for output in outputs]).flatten(2)  # T x B x H x D/H to T x B x D

    def attend(self, query: Tensor, key: Tensor, value: Tensor, bias: Optional[Tensor]) -> Tensor:
        """Scaled dot-product attention ``[B, H, T, D / H]`` with dropout of weights and an additive mask."""
        dropout = self.dropout_module.p if self.training else 0.0
        return functional.scaled_dot_product_attention(
            query, key, value, None if bias is None else bias.to(query.dtype), dropout
        )


class TreeCrossAttention(SharedMemoryAttention, TreeAttention):
    """Decoder cross-attention over leaves and nodes (eqs. 21 to 24), accumulated once a sentence and layer.

    Args:
        attend_nodes: false keeps the memory to the leaves, an ablation
    """

    def __init__(self, embed_dim: int, num_heads: int, config: AccumulationConfig, attend_nodes: bool, **kwargs):
        super().__init__(embed_dim, num_heads, config, **kwargs)
        self.attend_nodes = attend_nodes
        if not attend_nodes:
            self.accumulation = None

    def read(self, states: Tensor, memory: TreeMemory) -> dict[str, Tensor]:
        """Keys and values of leaves and nodes ``[S, B, encoder's D]``; see :meth:`SharedMemoryAttention.read`."""
        structure = memory.structure
        padding = structure.padding
        if self.attend_nodes:
            values = self.accumulated_values(states, structure)
        else:
            states, padding = states[: structure.num_leaves], padding[:, : structure.num_leaves]
            values = self._split_heads(self.v_proj(states))
        return {
            "prev_key": self._split_heads(self.k_proj(states)),
            "prev_value": values,
            # Decoders attend to a sentence of nothing but padding, too, so that its rows stay finite.
            "prev_key_padding_mask": padding & ~padding.all(dim=1, keepdim=True),
        }


def _leaves_and_nodes(encoder_out: dict[str, list]) -> tuple[Tensor, TreeMemory]:
    return encoder_out["encoder_out"][0], TreeMemory(encoder_out["tree_structure"][0], row_order(encoder_out))


def _weights_of_leaves(attention: Optional[Tensor], encoder_out: dict[str, list]) -> dict[str, list]:
    num_leaves = encoder_out["tree_structure"][0].num_leaves
    return {"attn": [None if attention is None else attention[..., :num_leaves]]}


TREE_MEMORY = MemoryType(
    attention=lambda cfg, **kwargs: TreeCrossAttention(
        config=cfg, attend_nodes=not cfg.no_node_cross_attention, **kwargs
    ),
    view=_leaves_and_nodes,
    describe=_weights_of_leaves,
)
"""Leaves and nodes of the Tree-Transformer's encoder."""
