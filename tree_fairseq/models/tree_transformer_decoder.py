"""Decoder of the Tree-Transformer: fairseq's own, whose cross-attention reads trees."""

from __future__ import annotations

from typing import Optional

from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor

from tree_fairseq.modules.tree_attention import TreeCrossAttention
from tree_fairseq.modules.tree_memory import TreeMemory


class TreeTransformerDecoder(TransformerDecoderBase):
    """fairseq's transformer decoder that attends to leaves and nodes."""

    def build_decoder_layer(self, cfg, no_encoder_attn: bool = False):
        """fairseq's layer with tree attention in the place of its cross-attention."""
        layer = super().build_decoder_layer(cfg, no_encoder_attn)
        if not no_encoder_attn:
            layer.encoder_attn = TreeCrossAttention(
                cfg.decoder.embed_dim,
                cfg.decoder.attention_heads,
                cfg,
                attend_nodes=not cfg.no_node_cross_attention,
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
        """fairseq's features; its attention weights are cut to the leaves, so that alignments and
        ``--replace-unk`` point to source words.

        Args:
            prev_output_tokens: ``[rows, T]``
            encoder_out: of :class:`TreeTransformerEncoder`
            incremental_state: state of a decoding under way
            **kwargs: of the overridden method

        Returns:
            features ``[rows, T, D]`` and a dict with ``attn`` ``[rows, T, N]``
        """
        structure = encoder_out["tree_structure"][0]
        memory = TreeMemory(structure, encoder_out["order"][0])
        # The layers hand the padding mask to their cross-attention unread: it carries the memory there.
        encoder_out = {**encoder_out, "encoder_padding_mask": [memory]}
        features, extra = super().extract_features(prev_output_tokens, encoder_out, incremental_state, **kwargs)
        extra["attn"] = [None if attn is None else attn[..., : structure.num_leaves] for attn in extra["attn"]]
        return features, extra
