"""The memory of a decoder that reads sentences many times as a whole, while rows are finished and leave."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from tree_fairseq.nn.shared_memory import ProjectedMemory


@dataclass(frozen=True)
class Memory:
    """Keys and values of B sentences for all layers of a decoder.

    Attributes:
        layers: one entry a layer
    """

    layers: tuple[ProjectedMemory, ...]

    def __len__(self) -> int:
        return len(self.layers[0].padding)

    def select(self, rows: Tensor) -> Memory:
        """The memory of some rows.

        Args:
            rows: ``[B']`` int64; they may be permuted, repeated and left out
        """
        return Memory(tuple(layer.select(rows) for layer in self.layers))
