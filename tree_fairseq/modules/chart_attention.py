"""fairseq's multi-head attention from target positions to the cells of a chart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from torch import Tensor

from tree_fairseq.modules.chart_cells import ChartCells
from tree_fairseq.modules.shared_memory import SharedMemoryAttention


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
