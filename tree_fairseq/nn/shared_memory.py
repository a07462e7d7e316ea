"""Cross-attention to sentences of which there is one copy, whatever the beam."""

from __future__ import annotations

from typing import Any, Optional

import torch
from fairseq.models.transformer import TransformerDecoderBase
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn
from torch.nn import functional


def row_order(encoder_out: dict[str, list]) -> Optional[Tensor]:
    """``[rows]`` int64, sentence that each row of the decoder reads; None where rows are sentences."""
    return encoder_out["order"][0] if encoder_out["order"] else None


def with_rows_moved(encoder_out: dict[str, list], new_order: Tensor) -> dict[str, list]:
    """The same sentences for other rows.

    Beam search repeats and permutes rows. Where this index is moved instead of the states, there is one copy of each sentence.

    Args:
        encoder_out: of an encoder; ``order`` is empty or holds the sentence of each row
        new_order: ``[new rows]`` int64, the row that each row is to be
    """
    order = [held.index_select(0, new_order) for held in encoder_out["order"]] or [new_order]
    return {**encoder_out, "order": order}


def read_together(order: Optional[Tensor], count: int) -> tuple[Optional[Tensor], int]:
    """Which sentences a decoder reads, each for as many rows as there are beams.

    Args:
        order: ``[rows]`` int64, sentence that each row reads; None where rows are sentences
        count: B, of sentences

    Returns:
        ``[rows / beams]`` int64, sentences; None where they are all B in order. And how many beams read each; 1 where
        not all have equally many
    """
    if order is None:
        return None, 1
    sentences, counts = torch.unique_consecutive(order, return_counts=True)
    beams = int(counts[0])
    if not bool((counts == beams).all()):
        return order, 1
    return None if torch.equal(sentences, torch.arange(count, device=order.device)) else sentences, beams


class SharedMemoryAttention(MultiheadAttention):
    """fairseq's decoder cross-attention, whose keys and values are projected once a sentence and layer.

    They are put where fairseq keeps those of a decoding that is under way, so fairseq's own attention does the rest.
    Subclasses say what is projected.
    """

    def read(self, states: Tensor, memory: Any) -> dict[str, Tensor]:
        """Projects B sentences.

        Args:
            states: of the encoder
            memory: what is known of them beside, ``order`` among it: ``[rows]`` int64, sentence of each row, or None where
                rows are sentences

        Returns:
            ``prev_key`` and ``prev_value`` ``[B, H, S, D / H]``, ``prev_key_padding_mask`` ``[B, S]`` bool, nowhere all true
        """
        raise NotImplementedError

    def forward(
        self,
        query: Tensor,
        key: Optional[Tensor],
        value: Optional[Tensor],
        key_padding_mask: Any,
        incremental_state: Optional[dict] = None,
        need_weights: bool = True,
        need_head_weights: bool = False,
        **kwargs,
    ) -> tuple[Tensor, Optional[Tensor]]:
        """Attends from target positions to sentences.

        Args:
            query: ``[T, rows, D]``, rows = B in training, B * K or fewer in generation
            key: what :meth:`read` takes; read once a decoding
            value: the same; unread
            key_padding_mask: the memory, handed on unread by fairseq's decoder layer
            incremental_state: state of a decoding under way
            need_weights: return attention weights
            need_head_weights: of each head
            **kwargs: of :class:`fairseq.modules.MultiheadAttention`

        Returns:
            ``[T, rows, D]`` and, where asked for, the attention weights over S positions
        """
        state = {} if incremental_state is None else incremental_state
        if "prev_key" not in self._get_input_buffer(state):
            # fairseq would set the number of beams, but looks for a method that its models do not have.
            projected, self.beam_size = self._project(key, key_padding_mask)
            self._set_input_buffer(state, projected)
        if not (need_weights or need_head_weights):
            return self._without_weights(query, self._get_input_buffer(state)), None
        weights = {"need_weights": need_weights, "need_head_weights": need_head_weights}
        return super().forward(query, None, None, incremental_state=state, **weights, **kwargs)

    def _project(self, states: Tensor, memory: Any) -> tuple[dict[str, Tensor], int]:
        """Keys and values of the sentences in the order of the rows, one for all beams of a sentence; and the beams."""
        projected = self.read(states, memory)
        sentences, beams = read_together(memory.order, len(projected["prev_key"]))
        if sentences is not None:
            projected = {name: values.index_select(0, sentences) for name, values in projected.items()}
        return projected, beams

    def _without_weights(self, query: Tensor, memory: dict[str, Tensor]) -> Tensor:
        """Attention whose weights, T times S a head, are not kept; all beams of a sentence read its memory at once."""
        length, rows, _ = query.shape
        sentences = len(memory["prev_key"])
        projected = self.q_proj(query).view(length, sentences, rows // sentences, self.num_heads, self.head_dim)
        output = functional.scaled_dot_product_attention(
            projected.permute(1, 3, 2, 0, 4).flatten(2, 3),  # B x H x K * T x D / H
            memory["prev_key"],
            memory["prev_value"],
            attn_mask=~memory["prev_key_padding_mask"][:, None, None],
            dropout_p=self.dropout_module.p if self.training else 0.0,
        )
        output = output.unflatten(2, (-1, length)).permute(3, 0, 2, 1, 4)  # T x B x K x H x D / H
        return self.out_proj(output.reshape(query.shape))


# FROM modules/heads: States as attention heads see them.


def split_heads(states: Tensor, heads: int) -> Tensor:
    """``[N, B, D]`` to ``[B, H, N, D / H]``."""
    length, batch, width = states.shape
    return states.view(length, batch, heads, width // heads).permute(1, 2, 0, 3)


def join_heads(states: Tensor) -> Tensor:
    """``[B, H, N, D / H]`` to ``[N, B, D]``."""
    return states.permute(2, 0, 1, 3).flatten(2)


# FROM models/structured_memory_decoder: fairseq's transformer decoder over a memory that has more to say than which of its positions are padding.


class StructuredMemoryDecoder(TransformerDecoderBase):
    """fairseq's decoder with a cross-attention of another kind; subclasses say of which, and what it reads.

    The layers hand the padding mask to their cross-attention unread: it carries the structure of the memory there.
    """

    def cross_attention(self, cfg, **kwargs) -> nn.Module:
        """The cross-attention of a layer.

        Args:
            cfg: of the model
            **kwargs: of :class:`fairseq.modules.MultiheadAttention`, width and heads included
        """
        raise NotImplementedError

    def memory(self, encoder_out: dict[str, list]) -> dict[str, list]:
        """The entries of fairseq's dict that the layers read in the place of the encoder's own."""
        raise NotImplementedError

    def describe_attention(self, attention: Optional[Tensor], encoder_out: dict[str, list]) -> dict[str, list]:
        """What is told of the attention weights ``[rows, T, S]``: ``attn``, ``[rows, T, N]`` of source tokens, and maybe more.

        Alignments and ``--replace-unk`` thereby point to source words.
        """
        raise NotImplementedError

    def build_decoder_layer(self, cfg, no_encoder_attn: bool = False):
        """fairseq's layer with another cross-attention."""
        layer = super().build_decoder_layer(cfg, no_encoder_attn)
        if not no_encoder_attn:
            layer.encoder_attn = self.cross_attention(
                cfg,
                embed_dim=cfg.decoder.embed_dim,
                num_heads=cfg.decoder.attention_heads,
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
    ) -> tuple[Tensor, dict[str, Any]]:
        """fairseq's features.

        Args:
            prev_output_tokens: ``[rows, T]``
            encoder_out: of the model's encoder
            incremental_state: state of a decoding under way
            **kwargs: of the overridden method

        Returns:
            features ``[rows, T, D]`` and a dict with what :meth:`describe_attention` tells
        """
        read = {**encoder_out, **self.memory(encoder_out)}
        features, extra = super().extract_features(prev_output_tokens, read, incremental_state, **kwargs)
        [attention] = extra["attn"]
        return features, {**extra, **self.describe_attention(attention, encoder_out)}
