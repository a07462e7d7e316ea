"""The cells of a chart, and the decoder's cross-attention to them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tree_fairseq.nn.phrase_bias import PhraseBias, PhraseBiasConfig
from tree_fairseq.nn.shared_memory import SharedMemoryAttention, split_heads


@dataclass(frozen=True)
class ChartCells:
    """The S cells of a chart over N columns, from the lowest to the highest, then from left to right.

    The cell of height l that starts in column i represents the l tokens from column i on. All sentences of a batch have
    the same S = N * h - h * (h - 1) / 2 cells, some of them unused. So no size depends on what a tensor holds, and a
    GPU never waits for the processor.

    Attributes:
        padding: ``[B, N]`` bool, columns without a token
        height: h, at most N
        start, length: ``[S]`` int64, the column of the first token, and the number of tokens
        unused: ``[B, S]`` bool, cells that contain padding
    """

    padding: Tensor
    height: int
    start: Tensor
    length: Tensor
    unused: Tensor

    @classmethod
    def build(cls, padding: Tensor, height: int) -> ChartCells:
        """Enumerates the cells up to a height.

        Args:
            padding: ``[B, N]`` bool; the tokens of a sentence are consecutive, with padding on either side
        """
        columns = padding.size(1)
        height = min(height, columns)
        column = torch.arange(columns, device=padding.device)
        room = _next(padding) - column  # B x N, tokens from each column on
        starts, lengths, unused = [column], [torch.ones_like(column)], [padding]
        for length in range(2, height + 1):
            starts.append(column[: columns - length + 1])
            lengths.append(lengths[0][: columns - length + 1] * length)
            unused.append(room[:, : columns - length + 1] < length)
        return cls(padding, height, torch.cat(starts), torch.cat(lengths), torch.cat(unused, dim=1))

    @property
    def width(self) -> int:
        """S."""
        return len(self.start)

    def level(self, length: int) -> slice:
        """The cells of a length among all cells."""
        columns = self.padding.size(1)
        first = _first_place(length, columns)
        return slice(first, first + columns - length + 1)

    def places(self, sentence: int) -> Tensor:
        """The used cells of a sentence, ``[C]`` int64, ascending; for displays, because it reads the mask."""
        return (~self.unused[sentence]).nonzero().squeeze(1)

    def spread(self, attention: Tensor) -> Tensor:
        """Distributes the attention ``[R, T, S]`` to each cell over its tokens, ``[R, T, N]``, with the same sums."""
        offset = torch.arange(self.padding.size(1), device=self.start.device) - self.start.unsqueeze(1)  # S x N
        covers = (offset >= 0) & (offset < self.length.unsqueeze(1))
        return attention @ (covers / self.length.unsqueeze(1)).to(attention.dtype)

    def highest(self) -> tuple[Tensor, Tensor]:
        """Finds the cells that have the chart's height or cover all of a shorter run of tokens.

        Returns:
            ``[B, N]`` bool, whether such a cell starts in a column; and ``[B, N]`` int64, its place among the cells, 0
            if there is none
        """
        columns = self.padding.size(1)
        column = torch.arange(columns, device=self.padding.device)
        end = _next(self.padding)
        before = torch.where(self.padding, column, -1).cummax(1).values
        length = (end - before - 1).clamp(1, self.height)
        starts = ~self.padding & (column + length <= end)
        return starts, (_first_place(length, columns) + column).masked_fill(~starts, 0)


def _first_place(length, columns: int):
    """The place of the first cell of a length among all cells, for a number or a tensor of lengths."""
    return (length - 1) * columns - (length - 1) * (length - 2) // 2


def _next(padding: Tensor) -> Tensor:
    """Returns for each column the next one that is padding, itself included, or N; ``[B, N]`` int64."""
    column = torch.arange(padding.size(1), device=padding.device)
    return torch.where(padding, column, padding.size(1)).flip(1).cummin(1).values.flip(1)


class ChartCrossAttention(SharedMemoryAttention):
    """Decoder cross-attention to tokens and phrases."""

    def __init__(self, embed_dim: int, num_heads: int, config: PhraseBiasConfig, height: int, **kwargs):
        super().__init__(embed_dim, num_heads, **kwargs)
        if not config.no_phrase_bias:
            self.phrase_bias = PhraseBias(num_heads, phrases_per_token=height - 1)

    def is_phrase(self, structure: ChartCells) -> Tensor:
        """The cells of more than one token."""
        return (structure.length > 1).expand_as(structure.unused)

    def read(self, states: Tensor, structure: ChartCells) -> tuple[Tensor, Tensor, Tensor]:
        """Projects cells ``[S, B, D]``."""
        keys, values = (split_heads(project(states), self.num_heads) for project in (self.k_proj, self.v_proj))
        return keys, values, structure.unused
