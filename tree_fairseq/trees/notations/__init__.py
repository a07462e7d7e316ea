"""The notations in which corpora of symbol trees are written, by name."""

from __future__ import annotations

from tree_fairseq.trees.notations.json_values import JsonNotation
from tree_fairseq.trees.notations.notation import BracketNotation, Notation
from tree_fairseq.trees.notations.terms import FUNQL, PROLOG, VARIABLE_FREE, TermNotation

__all__ = ["NOTATIONS", "Notation", "notation_named"]

NOTATIONS: dict[str, Notation] = {
    "bracket": BracketNotation(),
    "funql": TermNotation(FUNQL),
    "json": JsonNotation(),
    "prolog": TermNotation(PROLOG),
    "variable-free": TermNotation(VARIABLE_FREE),
}
"""All notations: each reads a line as a tree and writes a tree as a line."""


def notation_named(name: str) -> Notation:
    """The notation of this name."""
    return NOTATIONS[name]
