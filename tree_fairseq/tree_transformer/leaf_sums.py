"""Sums over lists of shares: sparse matrices that all layers multiply their weights with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Optional

import torch
from torch import Tensor
from torch.nn import functional


class _Rows(NamedTuple):
    """A sparse matrix, row by row."""

    column: Tensor  # [Q] int32, of each entry
    share: Tensor  # [Q] float, its value
    first: Tensor  # [rows] int32, where the entries of each row begin

    def __matmul__(self, values: Tensor) -> Tensor:
        """``[columns, H]`` to ``[rows, H]``."""
        share = self.share.to(values.dtype)
        # For values that want a gradient torch would prepare one.
        return functional.embedding_bag(self.column, values.detach(), self.first, mode="sum", per_sample_weights=share)


@dataclass(frozen=True)
class LeafSums:
    """A sparse matrix of ``sums`` by leaves, and its transpose ``leaves``.

    Both products add up entries in a fixed order and keep nothing but the matrix, which all layers of a batch share:
    gathers and scattered additions would keep a weight for every entry in every layer.
    """

    sums: _Rows
    leaves: _Rows

    @classmethod
    def build(
        cls, row: Tensor, leaf: Tensor, share: Tensor, by_row: Tensor, num_rows: int, num_leaves: int
    ) -> LeafSums:
        """Lays out Q entries; those of the same sum and leaf count together.

        Args:
            row: ``[Q]`` int, the sum that each entry belongs to
            leaf: ``[Q]`` int, ascending, the leaf of each entry
            share: ``[Q]`` float, what the leaf's weight is multiplied with
            by_row: ``[Q]`` int, the order of the entries by row
            num_rows: number of sums
            num_leaves: number of leaves
        """
        row, leaf = row.int(), leaf.int()
        sums = _Rows(leaf.index_select(0, by_row), share.index_select(0, by_row), _first(row, num_rows))
        return cls(sums, leaves=_Rows(row, share, _first(leaf, num_leaves)))

    def __call__(self, weight: Tensor) -> Tensor:
        """Sums weights ``[leaves, H]``: ``[rows, H]``."""
        # Tensors, not an object that has them: torch.compile reads the arguments.
        return _Product.apply(weight, *self.sums, *self.leaves)

    def embed(self, weight: Tensor, table: Tensor) -> Tensor:
        """Sums weights ``[leaves, H]`` and multiplies the sums, ``[X, nodes, H]``, with a table ``[X, width]``.

        Returns:
            ``[width, nodes * H]``. The sums, which are many, are not kept: the backward pass adds them up again
        """
        return _Embedded.apply(weight, table, *self.sums, *self.leaves)

    def transposed(self) -> LeafSums:
        """The matrix of leaves by sums."""
        return LeafSums(self.leaves, self.sums)


def _first(number: Tensor, count: int) -> Tensor:
    """Where the groups of equal numbers from 0 begin once they are sorted, ``[count]`` int32."""
    # Counts and their sums are faster than a search for each group, and integers add up to the same in any order.
    before = number.new_zeros(count + 1).index_add_(0, number + 1, torch.ones_like(number))
    return before[:-1].cumsum(0, dtype=torch.int32)


class _Product(torch.autograd.Function):
    """A matrix times weights; its gradient is the transpose times the gradient."""

    @staticmethod
    def forward(ctx, weight: Tensor, *rows: Tensor) -> Tensor:
        ctx.save_for_backward(*rows[3:])
        return _Rows(*rows[:3]) @ weight

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Optional[Tensor], ...]:
        return _Rows(*ctx.saved_tensors) @ gradient.contiguous(), *[None] * 6


class _Embedded(torch.autograd.Function):
    """A matrix times weights, times the rows of a table."""

    @staticmethod
    def forward(ctx, weight: Tensor, table: Tensor, *matrix: Tensor) -> Tensor:
        ctx.save_for_backward(weight, table, *matrix)
        return table.t() @ _by_row(_Rows(*matrix[:3]) @ weight, table)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient: Tensor) -> tuple[Optional[Tensor], ...]:
        weight, table, *matrix = ctx.saved_tensors
        of_table = _by_row(_Rows(*matrix[:3]) @ weight, table) @ gradient.t()
        of_sums = (table @ gradient).view(-1, weight.size(1))
        return _Rows(*matrix[3:]) @ of_sums, of_table, *[None] * 6


def _by_row(sums: Tensor, table: Tensor) -> Tensor:
    """Sums ``[X * nodes, H]`` as ``[X, nodes * H]``, X the rows of the table; there may be no nodes."""
    return sums.view(len(table), sums.numel() // max(len(table), 1))
