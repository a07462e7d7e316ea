"""fairseq's multi-head attention from target positions to the cells of a chart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from fairseq.modules import MultiheadAttention
from torch import Tensor
from torch.nn import functional

from tree_fairseq.modules.chart_cells import ChartCells


@dataclass(frozen=True)
class ChartMemory:
    """What the decoder's cross-attention knows of the chart beside its vectors.

    Attributes:
        cells: of B sentences
        order: ``[rows]`` int64, sentence that each row of the decoder reads; None where they are the B sentences in order.
            Beam search moves this index and not the vectors, of which there is one copy, whatever the beam
    """

    cells: ChartCells
    order: Optional[Tensor]

    def rows(self, values: Tensor, beams: int) -> Tensor:
        """Of each sentence that is read, once for all its beams: ``[B, ...]`` to ``[rows / beams, ...]``."""
        return values if self.order is None else values.index_select(0, self.order[::beams])


class ChartCrossAttention(MultiheadAttention):
    """Decoder cross-attention over tokens and phrases.

    Keys and values are projected once a sentence and layer, for its cells alone and not for what pads the batch. They are
    put where fairseq keeps those of a decoding that is under way, so fairseq's own attention does the rest.
    """

    def forward(
        self,
        query: Tensor,
        key: Optional[Tensor],
        value: Optional[Tensor],
        key_padding_mask: ChartMemory,
        incremental_state: Optional[dict] = None,
        need_weights: bool = True,
        need_head_weights: bool = False,
        **kwargs,
    ) -> tuple[Tensor, Optional[Tensor]]:
        """Attends from target positions to cells.

        Args:
            query: ``[T, rows, D]``, rows = B in training, B * K or fewer in generation
            key: ``[C, encoder's D]``, vectors of the cells of B sentences; read once a decoding
            value: the same; unread
            key_padding_mask: cells and rows, handed on unread by fairseq's decoder layer
            incremental_state: state of a decoding under way
            need_weights: return attention weights
            need_head_weights: of each head
            **kwargs: of :class:`fairseq.modules.MultiheadAttention`

        Returns:
            ``[T, rows, D]`` and, where asked for, the attention weights over S cells
        """
        if incremental_state is None and not (need_weights or need_head_weights):
            return self._without_weights(query, self._project(key, key_padding_mask, 1)), None
        state = {} if incremental_state is None else incremental_state
        if "prev_key" not in self._get_input_buffer(state):
            beams = 1 if incremental_state is None else self.beam_size
            self._set_input_buffer(state, self._project(key, key_padding_mask, beams))
        weights = {"need_weights": need_weights, "need_head_weights": need_head_weights}
        return super().forward(query, None, None, incremental_state=state, **weights, **kwargs)

    def _project(self, vectors: Tensor, memory: ChartMemory, beams: int) -> dict[str, Optional[Tensor]]:
        """Keys and values of the sentences in the order of the rows, one for all beams of a sentence."""
        unused = memory.cells.unused
        # A sentence of nothing but padding is looked at all the same, so that its rows stay finite.
        unused = unused & ~unused.all(dim=1, keepdim=True)
        return {
            "prev_key": memory.rows(self._by_sentence(self.k_proj(vectors), memory.cells), beams),
            "prev_value": memory.rows(self._by_sentence(self.v_proj(vectors), memory.cells), beams),
            "prev_key_padding_mask": memory.rows(unused, beams),
        }

    def _by_sentence(self, projected: Tensor, cells: ChartCells) -> Tensor:
        """``[C, D]`` to ``[B, H, S, D / H]``."""
        batch = len(cells.counts)
        if len(projected) < batch * cells.width:
            # Each vector has a place of its own, so that gradients are copied back and not summed.
            places = cells.sentence * cells.width + cells.rank
            projected = projected.new_zeros(batch * cells.width, self.embed_dim).index_copy(0, places, projected)
        return projected.view(batch, cells.width, self.num_heads, self.head_dim).transpose(1, 2).contiguous()

    def _without_weights(self, query: Tensor, memory: dict[str, Tensor]) -> Tensor:
        """Attention whose weights, T times S a head, are not kept for the backward pass."""
        length, rows, _ = query.shape
        output = functional.scaled_dot_product_attention(
            self.q_proj(query).view(length, rows, self.num_heads, self.head_dim).permute(1, 2, 0, 3),  # rows x H x T x D/H
            memory["prev_key"],
            memory["prev_value"],
            attn_mask=~memory["prev_key_padding_mask"][:, None, None],
            dropout_p=self.dropout_module.p if self.training else 0.0,
        )
        return self.out_proj(output.permute(2, 0, 1, 3).reshape(query.shape))  # T x rows x D
