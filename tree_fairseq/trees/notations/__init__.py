"""The notations in which corpora of symbol trees are written, by name."""

from __future__ import annotations

import functools
from collections.abc import Callable

from tree_fairseq.errors import NotationError
from tree_fairseq.trees.notations.json_values import JsonNotation
from tree_fairseq.trees.notations.notation import BracketNotation, Notation
from tree_fairseq.trees.notations.term_grammars import FUNQL, PROLOG, VARIABLE_FREE
from tree_fairseq.trees.notations.terms import TermNotation
from tree_fairseq.trees.notations.top import TopNotation

__all__ = ["NOTATIONS", "Notation", "notation_named", "notation_names", "register_notation"]

NOTATIONS: dict[str, Notation] = {
    "bracket": BracketNotation(),
    "funql": TermNotation(FUNQL),
    "json": JsonNotation(),
    "prolog": TermNotation(PROLOG),
    "top": TopNotation(),
    "variable-free": TermNotation(VARIABLE_FREE),
}
"""All notations: each reads a line as a tree and writes a tree as a line."""


_FACTORIES: dict[str, Callable[[str], Notation]] = {}


def register_notation(name: str, factory: Callable[[str], Notation]) -> None:
    """Adds a notation, which ``factory`` makes of its whole name; the name may go on after a colon."""
    _FACTORIES[name] = factory
    notation_named.cache_clear()


def notation_names() -> list[str]:
    """The names of all notations, sorted."""
    return sorted([*NOTATIONS, *_FACTORIES])


@functools.cache
def notation_named(name: str) -> Notation:
    """The notation of a name. Raises NotationError for an unknown name, MissingLibraryError if a library is missing."""
    if name in NOTATIONS:
        return NOTATIONS[name]
    if (base := name.partition(":")[0]) in _FACTORIES:
        return _FACTORIES[base](name)
    raise NotationError(f"no notation {name!r}", hint=f"There are: {', '.join(notation_names())}.")
