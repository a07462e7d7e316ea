"""Rows of a batch without their padding: decoders of trees compute no states of padding, only attention pads."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class PackedRows:
    """Where the n positions of B rows, packed one after the other, are in ``[B, M]``.

    Attributes:
        places: ``[n]`` int64, ascending, in the flattened ``[B * M]``
        shape: B and M
    """

    places: Tensor
    shape: tuple[int, int]

    @property
    def _is_full(self) -> bool:
        return len(self.places) == self.shape[0] * self.shape[1]

    def pad(self, values: Tensor) -> Tensor:
        """Pads values ``[n, ...]`` with zeros to ``[B, M, ...]``."""
        if not self._is_full:
            zeros = values.new_zeros(self.shape[0] * self.shape[1], *values.shape[1:])
            values = zeros.index_copy(0, self.places, values)
        return values.unflatten(0, self.shape)

    def pack(self, values: Tensor) -> Tensor:
        """Takes the padding out of values ``[B, M, ...]``; the inverse of :meth:`pad`."""
        values = values.flatten(0, 1)
        return values if self._is_full else values.index_select(0, self.places)

    def split(self, states: Tensor, heads: int) -> Tensor:
        """Splits states of layers, ``[n, 1, D]``, into heads, ``[B, H, M, D / H]``."""
        return self.pad(states.squeeze(1)).unflatten(2, (heads, -1)).transpose(1, 2)

    def join(self, states: Tensor) -> Tensor:
        """Joins heads ``[B, H, M, D / H]`` to ``[n, 1, D]``."""
        return self.pack(states.transpose(1, 2).flatten(2)).unsqueeze(1)
