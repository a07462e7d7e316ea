"""Decoder of Treeformer: fairseq's own, whose cross-attention reads a chart."""

from __future__ import annotations

from typing import Optional

from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor

from tree_fairseq.modules.chart_attention import ChartCrossAttention, ChartMemory


class TreeformerDecoder(TransformerDecoderBase):
    """fairseq's transformer decoder that attends to tokens and phrases."""

    def build_decoder_layer(self, cfg, no_encoder_attn: bool = False):
        """fairseq's layer with attention to a chart in the place of its cross-attention."""
        layer = super().build_decoder_layer(cfg, no_encoder_attn)
        if not no_encoder_attn:
            layer.encoder_attn = ChartCrossAttention(
                cfg.decoder.embed_dim,
                cfg.decoder.attention_heads,
                kdim=cfg.encoder.embed_dim,
                vdim=cfg.encoder.embed_dim,
                dropout=cfg.attention_dropout,
                encoder_decoder_attention=True,
                q_noise=cfg.quant_noise.pq,
                qn_block_size=cfg.quant_noise.pq_block_size,
            )
        return layer

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Optional[dict[str, list]],
        incremental_state: Optional[dict] = None,
        **kwargs,
    ):
        """fairseq's features; its attention weights are shared out to the tokens of phrases, so that alignments and
        ``--replace-unk`` point to source words.

        Args:
            prev_output_tokens: ``[rows, T]``
            encoder_out: of :class:`TreeformerEncoder`
            incremental_state: state of a decoding under way
            **kwargs: of the overridden method

        Returns:
            features ``[rows, T, D]`` and a dict with ``attn`` ``[rows, T, N]`` and, of cells, ``cell_attn`` ``[rows, T, S]``
        """
        cells, (order,) = encoder_out["cells"][0], encoder_out["order"] or (None,)
        # The layers hand the padding mask to their cross-attention unread: it carries the memory there.
        memory = {"encoder_out": encoder_out["cell_states"], "encoder_padding_mask": [ChartMemory(cells, order)]}
        features, extra = super().extract_features(
            prev_output_tokens, {**encoder_out, **memory}, incremental_state, **kwargs
        )
        extra["cell_attn"] = extra["attn"]
        extra["attn"] = [None if attention is None else cells.spread(attention, order) for attention in extra["cell_attn"]]
        return features, extra
