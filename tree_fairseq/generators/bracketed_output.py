"""``B-`` lines of ``fairseq-interactive``: generated trees in brackets, after the ``H-`` lines in the corpus's notation."""

from __future__ import annotations

import builtins
import sys
from typing import Callable

from tree_fairseq.data.symbol_dictionary import SymbolDictionary
from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.trees.notations import notation_named

_COMMAND = "fairseq_cli.interactive"


def bracketed_line(line: str, dictionary: SymbolDictionary) -> str | None:
    """The ``B-`` line that belongs to an ``H-`` line; None for other lines, and for a hypothesis that is no tree."""
    fields = line.split("\t", 2)
    if not line.startswith("H-") or len(fields) != 3:
        return None
    try:
        tree = dictionary.notation.read(fields[2])
    except SymbolTreeError:
        return None
    return f"B-{fields[0][2:]}\t{notation_named('bracket').write(tree)}"


def print_brackets(dictionary: SymbolDictionary) -> None:
    """Has the interactive command print brackets from now on, if that is what runs; again is harmless.

    The command prints a hypothesis by itself and offers no hook there, so the name ``print`` in its module is a function
    that prints one more line.

    Args:
        dictionary: of the target
    """
    for module in (sys.modules.get(_COMMAND), sys.modules.get("__main__")):
        if module is not None and (module.__name__ == _COMMAND or getattr(module.__spec__, "name", None) == _COMMAND):
            module.print = _printing_brackets(dictionary)


def _printing_brackets(dictionary: SymbolDictionary) -> Callable[..., None]:
    def print_line(*values, **options) -> None:
        builtins.print(*values, **options)
        line = bracketed_line(values[0], dictionary) if len(values) == 1 and isinstance(values[0], str) else None
        if line is not None:
            builtins.print(line, **options)

    return print_line
