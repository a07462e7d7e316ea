"""Modalities of the sides of a pair of texts, and the names under which collaters add trees to ``net_input``.

A task tells models about its sides with two attributes, ``source_side`` and ``target_side``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from fairseq.data import Dictionary

from tree_fairseq.data_bin.symbol_dictionary import SymbolTable

SEQUENCE, CONSTITUENCY, SYMBOLS = "sequence", "constituency", "symbols"

TREE_INPUTS = {CONSTITUENCY: "source_spans", SYMBOLS: "source_symbol_tree"}
"""Names of the trees of a source in ``net_input``, by modality."""

SOURCE_LENGTHS = "source_lengths"
"""The lengths of sources in ``net_input``, ``[B]`` int64, an array of the host: recurrent networks need them there."""

SOURCE_INPUTS = (*TREE_INPUTS.values(), SOURCE_LENGTHS)
"""The names of the entries that collaters add about a source to ``net_input``."""

NO_SYMBOL_TREES = "this model reads symbol trees, but the batch has none; use --task structural_translation"


@dataclass(eq=False)
class Side:
    """The source or the target of a pair: a sequence, constituency trees over a sequence, or symbol trees."""

    modality: str = SEQUENCE  # ``sequence``, ``constituency`` or ``symbols``
    dictionary: Optional[Dictionary] = None  # of the tokens
    labels: Optional[Dictionary] = None  # dictionary of the labels of constituency trees
    symbols: Optional[SymbolTable] = None  # arity and branches of the symbols of symbol trees


def has_modalities(task: Any) -> bool:
    """Returns whether a task declares modalities of its sides; fairseq's own tasks do not."""
    return hasattr(task, "source_side")


def source_side(task: Any) -> Side:
    """Returns the source of a task; a sequence if the task declares nothing else."""
    return getattr(task, "source_side", Side())


def target_side(task: Any) -> Side:
    """Returns the target of a task; a sequence if the task declares nothing else."""
    return getattr(task, "target_side", Side())
