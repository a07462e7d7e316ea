"""The cells of a chart, and their recurrence, level by level and without gathers, with its gradient.

With W = [W_l, W_r], a query q and a scale 1 / sqrt(d), the cell of height L that starts at i is

    y(i, L) = sum_k p_k c_k,  c_k = W_l y(i, k) + W_r y(i + k, L - k),  p = softmax_k(q . c_k / sqrt(d)),  0 < k < L

Everything but the softmax is linear. So children are pooled before they are composed, with one matrix product per level
instead of one per split point, and scores are sums of two scalars per cell:

    y(i, L) = W_l sum_k p_k y(i, k) + W_r sum_k p_k y(i + k, L - k)
    q . c_k = (W_l^T q) . y(i, k) + (W_r^T q) . y(i + k, L - k)

Cells are stored once, in a table ``[h, N, B, ...]`` by level and column. The children of all splits of a level are a
view of the table, and so are all parents of a level: the next child or parent is one level further, or one level
further and one column back. On either side, children and parents come by ascending length.

Letters: N columns, B sentences, D width, h height, m = N - L + 1 cells of level L, K = L - 1 splits.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


@dataclass(frozen=True)
class ChartCells:
    """The S cells of a chart over N columns, from the lowest to the highest, then from left to right.

    The cell of height l that starts in column i represents the l tokens from column i on. All sentences of a batch have
    the same S = N * h - h * (h - 1) / 2 cells, some of them unused. So no size depends on what a tensor holds, and a
    GPU never waits for the processor.
    """

    padding: Tensor  # ``[B, N]`` bool, columns without a token
    height: int  # h, at most N
    start: Tensor  # ``[S]`` int64, the column of the first token
    length: Tensor  # ``[S]`` int64, the number of tokens
    unused: Tensor  # ``[B, S]`` bool, cells that contain padding

    @classmethod
    def build(cls, padding: Tensor, height: int) -> ChartCells:
        """Enumerates the cells up to a height; ``padding``, ``[B, N]`` bool, is on either side of a sentence."""
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

        Returns ``[B, N]`` bool, whether one starts in a column; and ``[B, N]`` int64, its place among the cells, or 0.
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


def build_levels(tokens: Tensor, weight: Tensor, scorers: Tensor, height: int) -> tuple[Tensor, list[Tensor]]:
    """Computes all levels of a chart.

    Args:
        tokens: ``[N, B, D]``
        weight: ``[D, 2 * D]``, W
        scorers: ``[2, D]`` float32 or better, ``W^T q / sqrt(d)`` for left and right children
        height: h, at most N

    Returns:
        the table of cells, ``[h, N, B, D]``, undefined beyond N; the pooling weights of levels 2 to h, ``[m, B, K]``
        each
    """
    columns, batch, width = tokens.shape
    table = tokens.new_empty(height, columns, batch, width)
    scores = scorers.new_empty(height, columns, batch, 2)
    pooling: list[Tensor] = []
    for level in range(1, height + 1):
        rows = columns - level + 1
        states = table[level - 1, :rows].view(-1, width)  # m x B x D -> m * B x D
        if level == 1:
            states.copy_(tokens.reshape(-1, width))
        else:
            of_left = _left_children(scores, level)[..., 0]  # m x B x K
            of_right = _right_children(scores, level)[..., 1].flip(2)  # m x B x K
            pooling.append((of_left + of_right).softmax(2))
            left, right = _pooled(pooling[-1], table, level)  # m * B x D
            torch.mm(left, weight[:, :width].t(), out=states)
            states.addmm_(right, weight[:, width:].t())
        if level < height:
            # Scores are float32 or better, because a softmax magnifies their errors.
            scores[level - 1, :rows] = (states.to(scorers.dtype) @ scorers.t()).view(rows, batch, 2)
    return table, pooling


class ChartFunction(torch.autograd.Function):
    """The recurrence. It stores each cell once and two numbers per split point; plain autograd stores all children."""

    @staticmethod
    def forward(ctx, tokens: Tensor, weight: Tensor, scorers: Tensor, cells: ChartCells) -> Tensor:
        """Computes all cells, ``[S, B, D]``, 0 if unused; the other arguments are those of :func:`build_levels`."""
        # Padding may hold anything, even NaN, and phrases that contain it are computed, though never used.
        tokens = tokens.masked_fill(cells.padding.t().unsqueeze(-1), 0)
        table, pooling = build_levels(tokens, weight, scorers, cells.height)
        ctx.cells = cells
        ctx.save_for_backward(table, weight, scorers, *pooling)
        encoded = tokens.new_empty(cells.width, *tokens.shape[1:])
        unused, zero = cells.unused.t().unsqueeze(-1), tokens.new_zeros(())  # S x B x 1
        for level, states in enumerate(table, 1):
            own = cells.level(level)
            torch.where(unused[own], zero, states[: own.stop - own.start], out=encoded[own])
        return encoded

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        """Computes the gradients of tokens, weight and scorers from the gradient of the cells, ``[S, B, D]``."""
        return (*_BackwardPass(ctx.cells, gradient, *ctx.saved_tensors).gradients(), None)


class _BackwardPass:
    """Computes gradients from the highest level down to the tokens.

    A cell is a child of every longer cell with the same start or the same end, each time at one split point. Its
    gradient is the sum of those cells' gradients, passed back through composition and multiplied by the pooling weight
    of the split point. Both groups are views again; a parent that does not exist has the weight 0. Sums are float32 or
    better.
    """

    def __init__(self, cells: ChartCells, gradient: Tensor, table: Tensor, weight: Tensor, scorers: Tensor, *pooling):
        self.cells, self.table, self.weight, self.scorers, self.pooling = cells, table, weight, scorers, pooling
        self.height, columns, batch, width = table.shape
        # Of each cell, S x B x D, summed in place.
        self.of_cells = gradient.to(scorers.dtype).masked_fill(cells.unused.t().unsqueeze(-1), 0)
        # Of the pooled left children of each cell, and of the right ones.
        self.of_pooled = scorers.new_empty(2, self.height, columns, batch, width)
        self.shares = scorers.new_zeros(self.height, columns, batch, self.height)
        # Parents that do not exist have the weight 0, but 0 times an uninitialised number may not be 0.
        self.of_pooled[:, 0, columns - 1 :] = 0
        for level, weights in enumerate(pooling, 2):
            rows = columns - level + 1
            self.shares[level - 1, :rows, :, : level - 1] = weights
            self.of_pooled[:, level - 1, rows:] = 0
        self.of_scores = scorers.new_zeros(self.height, columns, batch, 2)
        self.of_weight = torch.zeros_like(weight, dtype=scorers.dtype)
        self.of_scorers = torch.zeros_like(scorers)

    def gradients(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the gradients of tokens, weight and scorers."""
        for level in range(self.height, 1, -1):
            self._pass_to_children(level)
        of_tokens = self._complete(1).view(self.table.shape[1:])
        return of_tokens.to(self.weight.dtype), self.of_weight.to(self.weight.dtype), self.of_scorers

    def _complete(self, level: int) -> Tensor:
        """Adds what a level receives from longer cells and from scores: its gradient ``[m * B, D]``."""
        of_states = self.of_cells[self.cells.level(level)].flatten(0, 1)  # m x B x D -> m * B x D, a view
        if level == self.height:
            return of_states
        # A cell is a left child at the split after its own tokens. It is a right child of the first parent at the
        # first split, of the next at the second, and so on.
        as_left = _parents_of_left(self.shares, level)[..., level - 1]  # m x B x h - L
        as_right = _parents_of_right(self.shares, level, by_split=1)[..., 0]  # m x B x h - L
        of_left, of_right = (
            _parents_of_left(self.of_pooled[0], level),  # m x B x h - L x D
            _parents_of_right(self.of_pooled[1], level),
        )
        for share, of_parents in ((as_left, of_left), (as_right, of_right)):
            of_states.unsqueeze(1).baddbmm_(share.flatten(0, 1).unsqueeze(1), of_parents.flatten(0, 1))
        of_scores = self.of_scores[level - 1, : len(as_left)].flatten(0, 1)  # m * B x 2
        states = self.table[level - 1, : len(as_left)].flatten(0, 1)  # m * B x D
        self.of_scorers.addmm_(of_scores.t(), states.to(of_scores.dtype))
        return of_states.addmm_(of_scores, self.scorers)

    def _pass_to_children(self, level: int) -> None:
        """Passes the gradient of a level on to the pooled children, the weight and the scores."""
        weights = self.pooling[level - 2]  # m x B x K
        of_states = self._complete(level).to(self.weight.dtype)  # m * B x D
        pooled, of_shares = _pooled(weights, self.table, level), []
        children = _left_children(self.table, level), _right_children(self.table, level)  # m x B x K x D
        for side, (half, of_half) in enumerate(zip(self.weight.chunk(2, 1), self.of_weight.chunk(2, 1))):
            of_pooled = self.of_pooled[side, level - 1, : len(weights)].view(len(of_states), -1)  # m * B x D
            if of_half.dtype == of_states.dtype:
                of_half.addmm_(of_states.t(), pooled[side])
                torch.mm(of_states, half, out=of_pooled)
            else:
                of_half.add_(of_states.t() @ pooled[side])
                of_pooled.copy_(of_states @ half)
            of_pooled = of_pooled.to(of_states.dtype).unsqueeze(1)  # m * B x 1 x D
            of_shares.append(torch.bmm(of_pooled, children[side].flatten(0, 1).mT).view(weights.shape))
        of_weights = of_shares[0].to(weights.dtype) + of_shares[1].to(weights.dtype).flip(2)
        of_splits = weights * (of_weights - (weights * of_weights).sum(2, keepdim=True))  # of a softmax: m x B x K
        _left_children(self.of_scores, level)[..., 0] += of_splits
        _right_children(self.of_scores, level)[..., 1] += of_splits.flip(2)


def _pooled(weights: Tensor, table: Tensor, level: int) -> Tensor:
    """Sums the children of a level on either side with the weights of their splits ``[m, B, K]``: ``[2, m * B, D]``."""
    shares = weights.to(table.dtype).flatten(0, 1).unsqueeze(1)  # m x B x K -> m * B x 1 x K
    pooled = table.new_empty(2, len(shares), 1, table.size(3))
    torch.bmm(shares, _left_children(table, level).flatten(0, 1), out=pooled[0])
    torch.bmm(shares.flip(2), _right_children(table, level).flatten(0, 1), out=pooled[1])
    return pooled.squeeze(2)


def _left_children(table: Tensor, level: int) -> Tensor:
    """The left children of all splits of a level, a view ``[m, B, K, ...]``; the first has one token."""
    return table[: level - 1, : table.size(1) - level + 1].movedim(0, 2)


def _right_children(table: Tensor, level: int) -> Tensor:
    """The right children, a view ``[m, B, K, ...]``; the first has one token, so splits come from right to left."""
    by_level, by_column, by_sentence, *rest = table.stride()
    size = (table.size(1) - level + 1, table.size(2), level - 1, *table.shape[3:])
    first = table.storage_offset() + (level - 1) * by_column
    return table.as_strided(size, (by_column, by_sentence, by_level - by_column, *rest), first)


def _parents_of_left(table: Tensor, level: int) -> Tensor:
    """The cells that start where a cell of a level starts and are longer, a view ``[m, B, h - L, ...]``."""
    return table[level:, : table.size(1) - level + 1].movedim(0, 2)


def _parents_of_right(table: Tensor, level: int, by_split: int = 0) -> Tensor:
    """The cells that end where a cell of a level ends and are longer, a view ``[m, B, h - L, ...]``.

    Those that would begin before the first column are other places of the table. With ``by_split``, the address also
    grows by this many numbers from one parent to the next.
    """
    by_level, by_column, by_sentence, *rest = table.stride()
    size = (table.size(1) - level + 1, table.size(2), table.size(0) - level, *table.shape[3:])
    first = table.storage_offset() + level * by_level - by_column
    return table.as_strided(size, (by_column, by_sentence, by_level - by_column + by_split, *rest), first)
