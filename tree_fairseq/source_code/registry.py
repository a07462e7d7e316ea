"""The registry of languages."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path

from tree_fairseq.errors import NotationError
from tree_fairseq.source_code.language import Language
from tree_fairseq.source_code.python import Python
from tree_fairseq.source_code.spelling import SpelledNotation, Spelling
from tree_fairseq.source_code.sql import Sql
from tree_fairseq.source_code.tree_sitter import TreeSitter
from tree_fairseq.trees.notations import Notation, notation_named, register_notation

_NAMES: set[str] = set()


def register_language(name: str, factory: Callable[..., Language]) -> None:
    """Adds a language to the notations, or replaces the one of the same name.

    ``factory`` makes it. For a name such as ``sql:postgres``, the factory of ``sql`` gets what follows the colon.
    """

    def named(whole: str) -> Language:
        _, colon, variant = whole.partition(":")
        if not colon:
            return factory()
        try:
            inspect.signature(factory).bind(variant)
        except TypeError:
            raise NotationError(f"no notation {whole!r}: {name} has no dialects", hint=f"Give {name}.") from None
        return factory(variant)

    _NAMES.add(name)
    register_notation(name, named)


def registered_languages() -> list[str]:
    """The names of all languages, sorted."""
    return sorted(_NAMES)


def notation_of(name: str, spelling: Path | None) -> Notation:
    """The notation of a name; with the file of a spelling, its trees are spelled."""
    notation = notation_named(name)
    return notation if spelling is None else SpelledNotation(notation, Spelling.load(spelling))


def _of_module(module: str = "") -> TreeSitter:
    if not module:
        raise NotationError("tree-sitter needs the module of a grammar, such as tree-sitter:tree_sitter_go")
    return TreeSitter(module)


register_language("python", Python)
register_language("sql", Sql)
register_language("tree-sitter", _of_module)
for _name, _module in (
    ("java", "tree_sitter_java"),
    ("csharp", "tree_sitter_c_sharp"),
    ("javascript", "tree_sitter_javascript"),
):
    register_language(_name, functools.partial(TreeSitter, _module, _name))
