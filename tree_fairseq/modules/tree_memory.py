"""The encoder's output as the decoder's cross-attention sees it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from tree_fairseq.modules.tree_structure import TreeStructure


@dataclass(frozen=True)
class TreeMemory:
    """Encoder states of B sentences and the sentence that each row of the decoder reads.

    Beam search repeats and permutes rows; moving this index instead of the states keeps one copy of
    each sentence, whatever the beam.

    Attributes:
        states: ``[S, B, D]``, leaves then nodes
        structure: trees of the B sentences
        order: ``[rows]`` int64, sentence of each row
    """

    states: Tensor
    structure: TreeStructure
    order: Tensor
