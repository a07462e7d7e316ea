"""The cells of a chart, packed without those that hold no phrase, and the decoder's cross-attention to them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from tree_fairseq.nn.phrase_bias import PhraseBias, PhraseBiasConfig
from tree_fairseq.nn.shared_memory import SharedMemoryAttention


@dataclass(frozen=True)
class ChartCells:
    """The C cells of B sentences, sorted by sentence, then from the lowest to the highest, then from left to right.

    The cell of height l that starts in column i represents the l tokens from column i on. A sentence of n >= h tokens
    has n * h - h * (h - 1) / 2 cells of heights 1 to h, a shorter one n * (n + 1) / 2.

    Attributes:
        padding: ``[B, N]`` bool, columns without a token
        height: h, at most N
        sentence, start, length: ``[C]`` int64, the sentence, the column of the first token, and the number of tokens
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
        """Enumerates the cells up to a height.

        Args:
            padding: ``[B, N]`` bool; the tokens of a sentence are consecutive, with padding on either side
            outside: ``[B, N]`` bool, tokens that no phrase may contain; each still has a cell of its own
        """
        height = min(height, padding.size(1))
        closed = padding if outside is None else padding | outside
        column = torch.arange(padding.size(1), device=padding.device)
        lengths = torch.arange(1, height + 1, device=padding.device).view(1, height, 1)
        is_cell = lengths <= (_next(closed) - column).unsqueeze(1)  # B x h x N
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
        """Distributes the attention ``[R, T, S]`` to each cell over its tokens, ``[R, T, N]``, with the same sums.

        ``order``, ``[R]`` int64, is the sentence of each row; None if row i is sentence i.
        """
        shares = self.shares if order is None else self.shares.index_select(0, order)
        return attention @ shares.to(attention.dtype)

    def highest(self) -> Tensor:
        """Returns which cells have the chart's height or cover all of a shorter run of tokens, ``[C]`` bool."""
        column = torch.arange(self.padding.size(1), device=self.padding.device)
        before = torch.where(self.padding, column, -1).cummax(1).values
        run = (_next(self.padding) - before - 1).clamp(max=self.height)  # B x N, tokens in the run around each
        return self.length == run[self.sentence, self.start]


def _next(closed: Tensor) -> Tensor:
    """Returns for each column the next one that is closed, itself included, or N; ``[B, N]`` int64."""
    column = torch.arange(closed.size(1), device=closed.device)
    return torch.where(closed, column, closed.size(1)).flip(1).cummin(1).values.flip(1)


class ChartCrossAttention(SharedMemoryAttention):
    """Decoder cross-attention to tokens and phrases; padding is not projected to keys and values."""

    def __init__(self, embed_dim: int, num_heads: int, config: PhraseBiasConfig, **kwargs):
        super().__init__(embed_dim, num_heads, **kwargs)
        if not config.no_phrase_bias:
            self.phrase_bias = PhraseBias(num_heads, config)

    def is_phrase(self, structure: ChartCells) -> Tensor:
        """The cells of more than one token."""
        places = structure.sentence * structure.width + structure.rank
        longer = torch.zeros(len(structure.counts) * structure.width, dtype=torch.bool, device=places.device)
        return longer.index_copy_(0, places, structure.length > 1).view(-1, structure.width)

    def read(self, states: Tensor, structure: ChartCells) -> tuple[Tensor, Tensor, Tensor]:
        """Projects cells ``[C, D]``."""
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
