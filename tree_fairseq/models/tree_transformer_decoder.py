"""Decoder of the Tree-Transformer: fairseq's own, whose cross-attention reads trees."""

from __future__ import annotations

from typing import Optional

from torch import Tensor

from tree_fairseq.models.structured_memory_decoder import StructuredMemoryDecoder
from tree_fairseq.modules.shared_memory import row_order
from tree_fairseq.modules.tree_attention import TreeCrossAttention
from tree_fairseq.modules.tree_memory import TreeMemory


class TreeTransformerDecoder(StructuredMemoryDecoder):
    """fairseq's transformer decoder that attends to leaves and nodes."""

    def cross_attention(self, cfg, **kwargs) -> TreeCrossAttention:
        """Tree attention."""
        return TreeCrossAttention(config=cfg, attend_nodes=not cfg.no_node_cross_attention, **kwargs)

    def memory(self, encoder_out: dict[str, list]) -> dict[str, list]:
        """Trees, and the sentence of each row."""
        return {"encoder_padding_mask": [TreeMemory(encoder_out["tree_structure"][0], row_order(encoder_out))]}

    def describe_attention(self, attention: Optional[Tensor], encoder_out: dict[str, list]) -> dict[str, list]:
        """The weights of the leaves."""
        num_leaves = encoder_out["tree_structure"][0].num_leaves
        return {"attn": [None if attention is None else attention[..., :num_leaves]]}
