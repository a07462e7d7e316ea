"""What the decoder's cross-attention knows of the encoder's output beside its states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from torch import Tensor

from tree_fairseq.modules.tree_structure import TreeStructure


@dataclass(frozen=True)
class TreeMemory:
    """The trees of B sentences and the sentence that each row of the decoder reads.

    Beam search repeats and permutes rows; moving this index instead of the states keeps one copy of
    each sentence, whatever the beam.

    Attributes:
        structure: trees of the B sentences
        order: ``[rows]`` int64, sentence of each row; None where they are the B sentences in order
    """

    structure: TreeStructure
    order: Optional[Tensor]
