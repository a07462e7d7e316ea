"""The recurrence of a chart, level by level and without gathers, and its gradient.

With W = [W_l, W_r], a query q and a scale 1 / sqrt(d), the cell of height L that starts at i is

    y(i, L) = sum_k p_k c_k,  c_k = W_l y(i, k) + W_r y(i + k, L - k),  p = softmax_k(q . c_k / sqrt(d)),  0 < k < L

Everything but the softmax is linear. So children are pooled before they are composed, with one matrix product per level
instead of one per split point, and scores are sums of two scalars per cell:

    y(i, L) = W_l sum_k p_k y(i, k) + W_r sum_k p_k y(i + k, L - k)
    q . c_k = (W_l^T q) . y(i, k) + (W_r^T q) . y(i + k, L - k)

Cells are stored once, in a table ``[h, N, B, ...]`` by level and column. The children of all splits of a level, and all
parents of a level, are views of the table: from one child or parent to the next, the address grows by one level, or by
one level minus one column. So children and parents come by ascending length, on either side.

Letters: N columns, B sentences, D width, H pooling heads, h height, m = N - L + 1 cells of level L, K = L - 1 splits,
G sets of weights.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tree_fairseq.treeformer.cells import ChartCells


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
    grows by one split from one parent to the next.
    """
    by_level, by_column, by_sentence, *rest = table.stride()
    size = (table.size(1) - level + 1, table.size(2), table.size(0) - level, *table.shape[3:])
    first = table.storage_offset() + level * by_level - by_column
    return table.as_strided(size, (by_column, by_sentence, by_level - by_column + by_split, *rest), first)


def _by_head(values: Tensor, heads: int) -> Tensor:
    """``[m, B, K, D]`` to ``[m * B * H, K, D / H]``, a view if there is one head."""
    return values.unflatten(-1, (heads, -1)).transpose(2, 3).flatten(0, 2)


def _as_rows(weights: Tensor, dtype: torch.dtype) -> Tensor:
    """``[m, B, H, K]`` to ``[m * B * H, 1, K]``."""
    return weights.to(dtype).flatten(0, 2).unsqueeze(1)


def _pooled(weights: Tensor, table: Tensor, level: int) -> Tensor:
    """Sums the children of a level with the weights of their splits ``[m, B, H, K]``: ``[m * B, 2 * D]``."""
    rows, batch, heads, _ = weights.shape
    pooled = table.new_empty(2, rows * batch * heads, 1, table.size(3) // heads)
    torch.bmm(_as_rows(weights, table.dtype), _by_head(_left_children(table, level), heads), out=pooled[0])
    torch.bmm(_as_rows(weights.flip(-1), table.dtype), _by_head(_right_children(table, level), heads), out=pooled[1])
    return pooled.view(2, rows * batch, -1)


def _product_into(result: Tensor, left: Tensor, right: Tensor) -> None:
    """Stores a matrix product, computed in the precision of its factors."""
    if result.dtype == left.dtype:
        torch.mm(left, right, out=result)
    else:
        result.copy_(left @ right)


def build_levels(
    tokens: Tensor, weight: Tensor, scorers: Tensor, height: int, written: Callable[[int, Tensor], None] | None = None
) -> tuple[Tensor, list[Tensor]]:
    """Computes all levels of a chart.

    Args:
        tokens: ``[N, B, D]``
        weight: ``[G, D, 2 * D]``, one W for all levels, or one for each level from the second on
        scorers: ``[G, 2, H, D]`` float32 or better, ``W^T q / sqrt(d)`` for left and right children
        height: h, at most N
        written: is called with each level and its cells ``[m, B, D]``

    Returns:
        the table of cells, ``[h, N, B, D]``, undefined beyond N; the pooling weights of levels 2 to h, ``[m, B, H, L -
        1]`` each
    """
    (columns, batch, width), (sets, _, heads, _) = tokens.shape, scorers.shape
    cells = tokens.new_empty(height, columns, batch, width)
    scores = scorers.new_empty(height, columns, batch, 2, heads, sets)
    pooling: list[Tensor] = []
    for level in range(1, height + 1):
        rows = columns - level + 1
        states = cells[level - 1, :rows].view(-1, width)  # m * B x D
        if level == 1:
            states.copy_(tokens.reshape(-1, width))
        else:
            which = min(level - 2, sets - 1)
            left = _left_children(scores, level)[:, :, :, 0, :, which]  # m x B x K x H
            right = _right_children(scores, level)[:, :, :, 1, :, which].flip(2)
            pooling.append((left + right).transpose(2, 3).softmax(-1))
            left, right = _pooled(pooling[-1], cells, level)
            torch.mm(left, weight[which, :, :width].t(), out=states)
            states.addmm_(right, weight[which, :, width:].t())
        if written is not None:
            written(level, cells[level - 1, :rows])
        if level < height:
            # Scores are float32 or better, because a softmax magnifies their errors.
            scored = (states.to(scorers.dtype) @ scorers.flatten(0, 2).t()).view(rows, batch, sets, 2, heads)
            scores[level - 1, :rows] = scored.permute(0, 1, 3, 4, 2)
    return cells, pooling


class ChartFunction(torch.autograd.Function):
    """The recurrence. It stores each cell once and two numbers per split point; plain autograd stores all children."""

    @staticmethod
    def forward(ctx, tokens: Tensor, weight: Tensor, scorers: Tensor, cells: ChartCells) -> Tensor:
        """Computes all cells, ``[S, B, D]``, 0 if unused; the other arguments are those of :func:`build_levels`."""
        # Padding may hold anything, even NaN, and phrases that contain it are computed, though never used.
        tokens = tokens.masked_fill(cells.padding.t().unsqueeze(-1), 0)
        encoded = tokens.new_empty(cells.width, *tokens.shape[1:])
        unused, zero = cells.unused.t().unsqueeze(-1), tokens.new_zeros(())  # S x B x 1

        def write(level: int, states: Tensor) -> None:
            own = cells.level(level)
            torch.where(unused[own], zero, states, out=encoded[own])

        table, pooling = build_levels(tokens, weight, scorers, cells.height, write)
        ctx.cells = cells
        ctx.save_for_backward(table, weight, scorers, *pooling)
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

    def __init__(self, positions: ChartCells, gradient: Tensor, *saved: Tensor):
        self.table, self.weight, self.scorers, *self.pooling = saved
        self.positions, like, wide = positions, self.scorers, self.scorers.dtype
        self.height, columns, batch, width = self.table.shape
        heads = like.size(2)
        # Of each cell, summed in place.
        self.of_cells = gradient.to(wide).masked_fill(positions.unused.t().unsqueeze(-1), 0)
        # Of the pooled left children of each cell, and of the right ones.
        self.of_pooled = like.new_empty(2, self.height, columns, batch, width)
        self.shares = like.new_zeros(self.height, columns, batch, heads, self.height)
        # Parents that do not exist have the weight 0, but 0 times an uninitialised number may not be 0.
        self.of_pooled[:, 0, columns - 1 :] = 0
        for level, weights in enumerate(self.pooling, 2):
            rows = columns - level + 1
            self.shares[level - 1, :rows, :, :, : level - 1] = weights
            self.of_pooled[:, level - 1, rows:] = 0
        self.of_scores = like.new_zeros(self.height, columns, batch, 2, heads, len(like))
        self.of_weight = torch.zeros_like(self.weight, dtype=wide)
        self.of_scorers = torch.zeros_like(like)

    def _shares_of(self, level: int) -> tuple[Tensor, Tensor]:
        """Returns the weights of a level's cells in their parents, as left and as right children, ``[m, B, H, h - L]``.

        As a left child, a cell is at the split after its own tokens; as a right one, in the first parent, it is at the
        first split, in the next at the second, and so on.
        """
        as_left = _parents_of_left(self.shares, level)[..., level - 1]
        as_right = _parents_of_right(self.shares, level, self.shares.stride(-1))[..., 0]
        return as_left.transpose(2, 3), as_right.transpose(2, 3)

    def _of_states(self, level: int) -> Tensor:
        """Completes the gradient of a level's cells, ``[m * B, D]``, and adds to the gradient of the scorers."""
        received = self.of_cells[self.positions.level(level)]  # m x B x D
        of_states = received.view(-1, received.size(2))
        if level == self.height:
            return of_states
        heads = self.shares.size(3)
        by_head = of_states.view(len(of_states) * heads, 1, -1)
        parents = (_parents_of_left(self.of_pooled[0], level), _parents_of_right(self.of_pooled[1], level))
        for share, of_parents in zip(self._shares_of(level), parents):
            by_head.baddbmm_(_as_rows(share, share.dtype), _by_head(of_parents, heads))
        rows = len(received)
        of_scores = self.of_scores[level - 1, :rows].permute(0, 1, 4, 2, 3).reshape(len(of_states), -1)
        states = self.table[level - 1, :rows].view(len(of_states), -1).to(of_scores.dtype)
        self.of_scorers.view(of_scores.size(1), -1).addmm_(of_scores.t(), states)
        return of_states.addmm_(of_scores, self.scorers.flatten(0, 2))

    def _through(self, level: int) -> None:
        """Passes the gradient of a level to its children."""
        weights, which = self.pooling[level - 2], min(level - 2, len(self.weight) - 1)
        rows, _, heads, _ = weights.shape
        narrow = self._of_states(level).to(self.weight.dtype)  # m * B x D
        halves = self.weight[which].chunk(2, dim=1)
        children = (_left_children(self.table, level), _right_children(self.table, level))
        pooled, of_weights = _pooled(weights, self.table, level), []
        for side, (half, of_half) in enumerate(zip(halves, self.of_weight[which].chunk(2, dim=1))):
            if of_half.dtype == narrow.dtype:
                of_half.addmm_(narrow.t(), pooled[side])
            else:
                of_half.add_(narrow.t() @ pooled[side])
            of_side = self.of_pooled[side, level - 1, :rows].view(len(narrow), -1)
            _product_into(of_side, narrow, half)
            of_side = of_side.to(narrow.dtype).view(len(narrow) * heads, 1, -1)
            of_weights.append(
                torch.bmm(of_side, _by_head(children[side], heads).mT).view(weights.shape).to(weights.dtype)
            )
        of_weights = of_weights[0] + of_weights[1].flip(-1)
        of_splits = weights * (of_weights - (weights * of_weights).sum(-1, keepdim=True))
        of_splits = of_splits.transpose(2, 3)  # m x B x K x H
        _left_children(self.of_scores, level)[:, :, :, 0, :, which] += of_splits
        _right_children(self.of_scores, level)[:, :, :, 1, :, which] += of_splits.flip(2)

    def gradients(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the gradients of tokens, weight and scorers."""
        for level in range(self.height, 1, -1):
            self._through(level)
        of_tokens = self._of_states(1).view(self.table.shape[1:])
        return of_tokens.to(self.weight.dtype), self.of_weight.to(self.weight.dtype), self.of_scorers
