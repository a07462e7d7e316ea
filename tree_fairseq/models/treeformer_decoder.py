"""Decoder of Treeformer: fairseq's own, whose cross-attention reads a chart."""

from __future__ import annotations

from typing import Optional

from torch import Tensor

from tree_fairseq.models.structured_memory_decoder import StructuredMemoryDecoder
from tree_fairseq.modules.chart_attention import ChartCrossAttention, ChartMemory
from tree_fairseq.modules.shared_memory import row_order


class TreeformerDecoder(StructuredMemoryDecoder):
    """fairseq's transformer decoder that attends to tokens and phrases."""

    def cross_attention(self, cfg, **kwargs) -> ChartCrossAttention:
        """Attention to a chart."""
        return ChartCrossAttention(**kwargs)

    def memory(self, encoder_out: dict[str, list]) -> dict[str, list]:
        """Tokens and phrases, and the sentence of each row."""
        memory = ChartMemory(encoder_out["cells"][0], row_order(encoder_out))
        return {"encoder_out": encoder_out["cell_states"], "encoder_padding_mask": [memory]}

    def describe_attention(self, attention: Optional[Tensor], encoder_out: dict[str, list]) -> dict[str, list]:
        """The weights shared out to the tokens of phrases, and as ``cell_attn``, ``[rows, T, S]``, those of cells."""
        spread = None if attention is None else encoder_out["cells"][0].spread(attention, row_order(encoder_out))
        return {"attn": [spread], "cell_attn": [attention]}
