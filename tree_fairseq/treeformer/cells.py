"""Which cells of a chart stand for phrases, and where they lie when the others are left out."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Optional

import torch
from torch import Tensor

from tree_fairseq.nn.shared_memory import SharedMemoryAttention


@dataclass(frozen=True)
class ChartCells:
    """The C cells of B sentences, sentence by sentence, in each the lower ones first, from left to right.

    The cell of height l that starts in column i stands for the l tokens from there on. A sentence of n tokens has
    n * h - h * (h - 1) / 2 cells of height 1 to h, or n * (n + 1) / 2 where it is shorter than h.

    Attributes:
        padding: ``[B, N]`` bool, columns without a token
        height: h, no more than N
        sentence: ``[C]`` int64
        start: ``[C]`` int64, column of the first token
        length: ``[C]`` int64, number of tokens
        rank: ``[C]`` int64, place among the cells of the sentence
        counts: ``[B]`` int64, cells of each sentence
        width: S, cells of the sentence that has most
    """

    padding: Tensor
    height: int
    sentence: Tensor
    start: Tensor
    length: Tensor
    rank: Tensor
    counts: Tensor
    width: int

    @classmethod
    def build(cls, padding: Tensor, height: int, outside: Tensor | None = None) -> ChartCells:
        """Finds the cells.

        Args:
            padding: ``[B, N]`` bool; the tokens of a sentence are in a row, padding is on either side
            height: of the chart; a shorter batch has a lower one
            outside: ``[B, N]`` bool, tokens that no phrase may contain; they have cells of their own all the same
        """
        columns = padding.size(1)
        height = min(height, columns)
        closed = padding if outside is None else padding | outside
        column = torch.arange(columns, device=padding.device)
        # The next column that no phrase may contain, N where there is none.
        barrier = torch.where(closed, column, columns).flip(1).cummin(1).values.flip(1)
        lengths = torch.arange(1, height + 1, device=padding.device).view(1, height, 1)
        is_cell = lengths <= (barrier - column).unsqueeze(1)  # B x h x N
        is_cell[:, 0] = ~padding
        sentence, level, start = is_cell.nonzero(as_tuple=True)
        counts = is_cell.flatten(1).sum(1)
        rank = torch.arange(len(sentence), device=padding.device) - (counts.cumsum(0) - counts)[sentence]
        return cls(padding, height, sentence, start, level + 1, rank, counts, int(counts.max()))

    @property
    def unused(self) -> Tensor:
        """``[B, S]`` bool, places beyond the cells of a sentence."""
        places = torch.arange(self.width, device=self.counts.device)
        return places >= self.counts.unsqueeze(1)

    @functools.cached_property
    def shares(self) -> Tensor:
        """``[B, S, N]`` float32, the share of each token in each cell."""
        batch, columns = self.padding.shape
        offset = torch.arange(columns, device=self.start.device) - self.start.unsqueeze(1)  # C x N
        covers = (offset >= 0) & (offset < self.length.unsqueeze(1))
        shares = torch.zeros(batch, self.width, columns, device=self.start.device)
        shares[self.sentence, self.rank] = covers / self.length.unsqueeze(1)
        return shares

    def spread(self, attention: Tensor, order: Tensor | None = None) -> Tensor:
        """Shares the attention that a cell gets among its tokens.

        Args:
            attention: ``[R, T, S]``, of cells
            order: ``[R]`` int64, sentence of each row, where rows are not the sentences in order

        Returns:
            ``[R, T, N]``, of tokens, with the same sums
        """
        shares = self.shares if order is None else self.shares.index_select(0, order)
        return attention @ shares.to(attention.dtype)


# FROM modules/chart_attention: fairseq's multi-head attention from target positions to the cells of a chart.


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


class ChartCrossAttention(SharedMemoryAttention):
    """Decoder cross-attention over tokens and phrases, projected for the cells alone and not for what pads the batch."""

    def read(self, states: Tensor, memory: ChartMemory) -> dict[str, Tensor]:
        """Keys and values of the cells ``[C, encoder's D]`` of B sentences; see :meth:`SharedMemoryAttention.read`."""
        unused = memory.cells.unused
        return {
            "prev_key": self._by_sentence(self.k_proj(states), memory.cells),
            "prev_value": self._by_sentence(self.v_proj(states), memory.cells),
            # A sentence of nothing but padding is looked at all the same, so that its rows stay finite.
            "prev_key_padding_mask": unused & ~unused.all(dim=1, keepdim=True),
        }

    def _by_sentence(self, projected: Tensor, cells: ChartCells) -> Tensor:
        """``[C, D]`` to ``[B, H, S, D / H]``."""
        batch = len(cells.counts)
        if len(projected) < batch * cells.width:
            # Each vector has a place of its own, so that gradients are copied back and not summed.
            places = cells.sentence * cells.width + cells.rank
            projected = projected.new_zeros(batch * cells.width, self.embed_dim).index_copy(0, places, projected)
        return projected.view(batch, cells.width, self.num_heads, self.head_dim).transpose(1, 2).contiguous()
