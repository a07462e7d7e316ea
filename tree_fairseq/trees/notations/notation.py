r"""What all notations have in common: lines become trees and trees become lines.

Every tree can be written in every notation, and ``read(write(tree)) == tree``.  What a notation has no character for in a
name is written as ``\u`` and four hexadecimal digits, an empty name as ``\e``; names in corpora hardly ever look so.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod

from tree_fairseq.errors import EmptySymbolTreeError, InputError, NotationError
from tree_fairseq.trees.tree import Tree

GROUP = "()"
"""The label of brackets that no head stands before, such as those of ``((f a) b)`` and of ``(x)``."""

EMPTY_NAME = r"\e"

LITERAL_CODE = r"\\(?=u[0-9a-f]{4})"
"""A backslash that would be read as the beginning of a code."""

_ESCAPED = re.compile(r"\\u([0-9a-f]{4})")


class Notation(ABC):
    """One way of writing symbol trees."""

    def read(self, line: str, path: str | os.PathLike | None = None, line_number: int | None = None) -> Tree:
        """The tree that a line holds.

        Args:
            line: one line of a corpus
            path, line_number: where it comes from, for messages

        Raises:
            EmptySymbolTreeError: it holds none
            MultipleRootsError: it holds more than one
            NotationError: it is not written in this notation
        """
        try:
            if line.startswith("\ufeff"):
                raise NotationError("a byte order mark", column=1, hint="Save the file without it.")
            if not line or line.isspace():
                raise EmptySymbolTreeError(
                    "an empty line where a tree should be", hint="Remove it, and its parallel line."
                )
            return self._read(line)
        except InputError as error:
            raise error.at(path, line_number) from None

    @abstractmethod
    def write(self, tree: Tree) -> str:
        """The tree on one line, in the spacing that corpora of this notation have."""

    @abstractmethod
    def _read(self, line: str) -> Tree:
        """As ``read``, of a line that is not blank; errors know the column only."""


def unescape_name(text: str) -> str:
    """The name that ``escape_name`` wrote so."""
    if "\\" not in text:
        return text
    return "" if text == EMPTY_NAME else _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def escape_name(name: str, refused: re.Pattern) -> str:
    """A name as it can be written where the characters that ``refused`` finds mean something else.

    The pattern has to find ``LITERAL_CODE`` too.
    """
    if name in ("", EMPTY_NAME):
        return escape_first(name) if name else EMPTY_NAME
    return refused.sub(lambda found: "".join(map(_code, found[0])), name)


def escape_first(name: str) -> str:
    """A name whose first character is written as a code, so that it is nothing but a name."""
    return _code(name[0]) + name[1:]


def shorten(text: str) -> str:
    """Enough of a text to recognise it in a message."""
    return text if len(text) <= 40 else text[:39] + "…"


def _code(character: str) -> str:
    return f"\\u{ord(character):04x}"
