"""The cells of a chart, packed without those that hold no phrase, and the decoder's cross-attention to them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from tree_fairseq.nn.shared_memory import SharedMemoryAttention


@dataclass(frozen=True)
class ChartCells:
    """The C cells of B sentences, sorted by sentence, then from the lowest to the highest, then from left to right.

    The cell of height l that starts in column i represents the l tokens from column i on. A sentence of n >= h tokens
    has n * h - h * (h - 1) / 2 cells of heights 1 to h, a shorter one n * (n + 1) / 2.

    Attributes:
        padding: ``[B, N]`` bool, columns without a token
        height: h, at most N
        sentence: ``[C]`` int64
        start: ``[C]`` int64, column of the first token
        length: ``[C]`` int64, number of tokens
        rank: ``[C]`` int64, index among the cells of the sentence
        counts: ``[B]`` int64, cells of each sentence
        width: S, the largest number of cells of a sentence
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
        """Enumerates the cells.

        Args:
            padding: ``[B, N]`` bool; the tokens of a sentence are consecutive, with padding on either side
            height: of the chart; limited to N
            outside: ``[B, N]`` bool, tokens that no phrase may contain; each still has a cell of its own
        """
        columns = padding.size(1)
        height = min(height, columns)
        closed = padding if outside is None else padding | outside
        column = torch.arange(columns, device=padding.device)
        # The next column that no phrase may contain, or N.
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
        """``[B, S]`` bool, padding behind the cells of a sentence."""
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
        """Distributes the attention to each cell over its tokens.

        Args:
            attention: ``[R, T, S]`` over cells
            order: ``[R]`` int64, sentence of each row; None if row i is sentence i

        Returns:
            ``[R, T, N]`` over tokens, with the same sums
        """
        shares = self.shares if order is None else self.shares.index_select(0, order)
        return attention @ shares.to(attention.dtype)


class ChartCrossAttention(SharedMemoryAttention):
    """Decoder cross-attention to tokens and phrases. Keys and values are projected for real cells only, not for
    padding.
    """

    def read(self, states: Tensor, structure: ChartCells) -> tuple[Tensor, Tensor, Tensor]:
        """Projects cells ``[C, D]`` to keys and values; see :meth:`SharedMemoryAttention.read`."""
        keys, values = (self._by_sentence(project(states), structure) for project in (self.k_proj, self.v_proj))
        return keys, values, structure.unused

    def _by_sentence(self, projected: Tensor, cells: ChartCells) -> Tensor:
        """Unpacks ``[C, D]`` to ``[B, H, S, D / H]``."""
        batch = len(cells.counts)
        if len(projected) < batch * cells.width:
            # Each vector has its own place, so the backward pass copies gradients instead of summing them.
            places = cells.sentence * cells.width + cells.rank
            projected = projected.new_zeros(batch * cells.width, self.embed_dim).index_copy(0, places, projected)
        return projected.view(batch, cells.width, self.num_heads, self.head_dim).transpose(1, 2).contiguous()
