"""The recurrence of a chart, level by level and without gathers, and its gradient.

With W = [W_l, W_r], a query q and a scale 1 / sqrt(d), the cell of height L that starts at i is

    y(i, L) = sum_k p_k c_k,  c_k = W_l y(i, k) + W_r y(i + k, L - k),  p = softmax_k(q . c_k / sqrt(d)),  0 < k < L

Everything but the softmax is linear. So children are pooled before they are composed, with one matrix product per level
instead of one per split point, and scores are sums of two scalars per cell:

    y(i, L) = W_l sum_k p_k y(i, k) + W_r sum_k p_k y(i + k, L - k)
    q . c_k = (W_l^T q) . y(i, k) + (W_r^T q) . y(i + k, L - k)

Cells are stored twice: by their first token, and by their last token from the highest to the lowest. Then the left
children of all split points of a cell are one slice, and the right children, in the same order, are another.

Letters: N columns, B sentences, D width, H pooling heads, h height, m = N - L + 1 cells of level L, G sets of weights.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tree_fairseq.treeformer.cells import ChartCells


class _Levels:
    """The values of all cells, stored twice, each as ``[N, B, H, h, ...]``.

    The cell of height L that starts at i is ``by_start[i, :, :, L - 1]``; if it ends with token e, it is also
    ``by_end[e, :, :, h - L]``.
    """

    def __init__(self, by_start: Tensor, by_end: Tensor):
        self.by_start, self.by_end = by_start, by_end
        self.columns, self.height = by_start.size(0), by_start.size(3)

    def left(self, level: int) -> Tensor:
        """Returns the left children of all splits of a level, a view of ``[m, B, H, L - 1, ...]``."""
        return self.by_start[: self.columns - level + 1, :, :, : level - 1]

    def right(self, level: int) -> Tensor:
        """Returns the right children in the order of the left ones."""
        return self.by_end[level - 1 :, :, :, self.height - level + 1 :]

    def at_start(self, level: int) -> Tensor:
        """Returns the cells of a level in the first order, a view of ``[m, B, H, ...]``."""
        return self.by_start[: self.columns - level + 1, :, :, level - 1]

    def at_end(self, level: int) -> Tensor:
        """Returns the cells of a level in the second order."""
        return self.by_end[level - 1 :, :, :, self.height - level]

    def write(self, level: int, values: Tensor) -> None:
        """Stores the cells of a level in both orders."""
        self.at_start(level).copy_(values)
        self.at_end(level).copy_(values)


def _weighted_sum(weights: Tensor, values: Tensor) -> Tensor:
    """Sums ``[m, B, H, K, d]`` with weights ``[m, B, H, K]`` to ``[m * B, H * d]``, in the dtype of the values."""
    rows, sentences = weights.shape[:2]
    summed = torch.bmm(weights.to(values.dtype).flatten(0, 2).unsqueeze(1), values.flatten(0, 2))
    return summed.view(rows * sentences, -1)


def build_levels(tokens: Tensor, weight: Tensor, scorers: Tensor, height: int) -> tuple[Tensor, list[Tensor]]:
    """Computes all levels of a chart.

    Args:
        tokens: ``[N, B, D]``
        weight: ``[G, D, 2 * D]``, one W for all levels, or one for each level from the second on
        scorers: ``[G, 2, H, D]`` float32 or better, ``W^T q / sqrt(d)`` for left and right children
        height: h, at most N

    Returns:
        the cells by start, ``[N, B, H, h, D / H]``, undefined beyond N; the pooling weights of levels 2 to h, ``[m, B,
        H, L - 1]`` each
    """
    (columns, batch, width), (sets, _, heads, _) = tokens.shape, scorers.shape
    shape = (columns, batch, heads, height)
    cells = _Levels(*(tokens.new_empty(*shape, width // heads) for _ in range(2)))
    scores = _Levels(*(scorers.new_empty(*shape, sets) for _ in range(2)))
    states, pooling = tokens.reshape(columns * batch, width), []
    for level in range(1, height + 1):
        rows = columns - level + 1
        if level > 1:
            which = min(level - 2, sets - 1)
            split_scores = scores.left(level)[..., which] + scores.right(level)[..., which]
            pooling.append(split_scores.softmax(-1))
            left, right = (_weighted_sum(pooling[-1], side(level)) for side in (cells.left, cells.right))
            states = left @ weight[which, :, :width].t()
            states.addmm_(right, weight[which, :, width:].t())
        cells.write(level, states.view(rows, batch, heads, -1))
        if level < height:
            # Scores are float32 or better, because a softmax magnifies their errors.
            scored = (states.to(scorers.dtype) @ scorers.flatten(0, 2).t()).view(rows, batch, sets, 2, heads)
            scores.at_start(level).copy_(scored[:, :, :, 0].transpose(2, 3))
            scores.at_end(level).copy_(scored[:, :, :, 1].transpose(2, 3))
    return cells.by_start, pooling


class ChartFunction(torch.autograd.Function):
    """The recurrence. It stores each cell once and two numbers per split point; plain autograd stores all children."""

    @staticmethod
    def forward(ctx, tokens: Tensor, weight: Tensor, scorers: Tensor, cells: ChartCells) -> Tensor:
        """Computes the given cells, ``[C, D]``; the other arguments are those of :func:`build_levels`."""
        # Padding may hold anything, even NaN, and phrases that contain it are computed, though never used.
        tokens = tokens.masked_fill(cells.padding.t().unsqueeze(-1), 0)
        by_start, pooling = build_levels(tokens, weight, scorers, cells.height)
        ctx.cells = cells
        ctx.save_for_backward(by_start, weight, scorers, *pooling)
        return by_start[cells.start, cells.sentence, :, cells.length - 1].flatten(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        """Computes the gradients of tokens, weight and scorers from the gradient of the cells, ``[C, D]``."""
        return (*_BackwardPass(ctx.cells, gradient, *ctx.saved_tensors).gradients(), None)


class _BackwardPass:
    """Computes gradients from the highest level down to the tokens.

    A cell is a child of every longer cell with the same start or the same end, each time at one split point. Its
    gradient is the sum of those cells' gradients, passed back through composition and multiplied by the pooling weight
    of the split point. Both groups are slices again. Sums are float32 or better.
    """

    def __init__(self, cells: ChartCells, gradient: Tensor, *saved: Tensor):
        by_start, self.weight, self.scorers, *self.pooling = saved
        self.cells = _Levels(by_start, torch.empty_like(by_start))
        self.height = height = self.cells.height
        for level in range(1, height):
            self.cells.at_end(level).copy_(self.cells.at_start(level))
        like, wide = self.scorers, self.scorers.dtype
        # By start, the gradient that a cell receives, then the gradient for its left children; by end, for right ones.
        self.of_children = _Levels(torch.zeros_like(by_start, dtype=wide), torch.empty_like(by_start, dtype=wide))
        # The pooling weight of a cell in each longer cell.
        self.shares = _Levels(*(like.new_zeros(*by_start.shape[:4], height) for _ in range(2)))
        self.of_scores = _Levels(*(like.new_zeros(*by_start.shape[:4], len(like)) for _ in range(2)))
        self.of_weight = torch.zeros_like(self.weight, dtype=wide)
        self.of_scorers = torch.zeros_like(like)
        values = gradient.to(wide).view(len(gradient), by_start.size(2), -1)
        self.of_children.by_start[cells.start, cells.sentence, :, cells.length - 1] = values

    def _of_states(self, level: int) -> Tensor:
        """Returns the gradient of a level's cells, ``[m * B, D]``, and adds to the gradient of the scorers."""
        received = self.of_children.at_start(level)  # m x B x H x D / H
        rows, batch = received.shape[:2]
        of_states = received.reshape(rows * batch, -1)
        if level == self.height:
            return of_states
        slot = self.height - level
        as_left = self.shares.at_start(level)[..., level:], self.of_children.by_start[:rows, :, :, level:]
        as_right = self.shares.at_end(level)[..., :slot], self.of_children.by_end[level - 1 :, :, :, :slot]
        of_states = of_states + _weighted_sum(*as_left) + _weighted_sum(*as_right)
        of_scores = torch.stack([self.of_scores.at_start(level), self.of_scores.at_end(level)], dim=2)
        of_scores = of_scores.permute(0, 1, 4, 2, 3).reshape(rows * batch, -1)  # m * B x G * 2 * H
        states = self.cells.at_start(level).reshape(rows * batch, -1).to(of_scores.dtype)
        self.of_scorers.view(of_scores.size(1), -1).addmm_(of_scores.t(), states)
        return of_states.addmm_(of_scores, self.scorers.flatten(0, 2))

    def _through(self, level: int) -> None:
        """Passes the gradient of a level to its children."""
        weights, which = self.pooling[level - 2], min(level - 2, len(self.weight) - 1)
        narrow = self._of_states(level).to(self.weight.dtype)
        of_pooled = (narrow @ self.weight[which]).view(*weights.shape[:2], 2, weights.size(2), -1)  # m, B, 2, H, D / H
        of_weights = torch.zeros_like(weights)
        children_of_sides = (self.cells.left(level), self.cells.right(level))
        halves = self.of_weight[which].chunk(2, dim=1)
        for children, of_side, of_half in zip(children_of_sides, of_pooled.unbind(2), halves):
            of_half.add_(narrow.t() @ _weighted_sum(weights, children))
            products = torch.bmm(of_side.flatten(0, 2).unsqueeze(1), children.flatten(0, 2).mT)
            of_weights += products.view(weights.shape)
        self.of_children.at_start(level).copy_(of_pooled[:, :, 0])
        self.of_children.at_end(level).copy_(of_pooled[:, :, 1])
        # No cell of this level ends in the first columns.
        self.of_children.by_end[: level - 1, :, :, self.height - level] = 0
        self.shares.left(level)[..., level - 1] = weights
        self.shares.right(level)[..., self.height - level] = weights
        of_splits = weights * (of_weights - (weights * of_weights).sum(-1, keepdim=True))
        for side in (self.of_scores.left, self.of_scores.right):
            side(level)[..., which] += of_splits

    def gradients(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the gradients of tokens, weight and scorers."""
        for level in range(self.height, 1, -1):
            self._through(level)
        columns, batch = self.cells.by_start.shape[:2]
        of_tokens = self._of_states(1).view(columns, batch, -1)
        return of_tokens.to(self.weight.dtype), self.of_weight.to(self.weight.dtype), self.of_scorers
