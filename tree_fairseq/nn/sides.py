"""The sides of a pair: each is a sequence, constituency trees over a sequence, or symbol trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from fairseq.data import Dictionary

from tree_fairseq.data_bin.symbol_dictionary import SymbolTable

SEQUENCE, CONSTITUENCY, SYMBOLS = "sequence", "constituency", "symbols"

TREE_INPUTS = {CONSTITUENCY: "source_spans", SYMBOLS: "source_symbol_tree"}
"""Where the trees of a source are in ``net_input``, by modality."""


@dataclass
class Side:
    """A side of a task, as far as models have to know it.

    Attributes:
        modality: ``sequence``, ``constituency`` or ``symbols``
        labels: of constituency trees, the dictionary of labels
        symbols: of symbol trees, arity and branches of each symbol
    """

    modality: str = SEQUENCE
    labels: Optional[Dictionary] = None
    symbols: Optional[SymbolTable] = None


def source_side(task) -> Side:
    """The source of a task; a sequence where the task is fairseq's own, which knows nothing else."""
    return getattr(task, "source_side", Side())


def target_side(task) -> Side:
    """The target of a task; as :func:`source_side`."""
    return getattr(task, "target_side", Side())
