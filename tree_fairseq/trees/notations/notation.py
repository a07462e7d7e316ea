r"""The interface of all notations: lines become trees, and trees become lines.

Every tree can be written in every notation, and ``read(write(tree)) == tree``. A character of a name that the notation
does not allow is written as ``\u`` and four hexadecimal digits, and an empty name as ``\e``. Names in corpora rarely
contain either.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Union

from tree_fairseq.errors import EmptySymbolTreeError, InputError, NotationError
from tree_fairseq.trees.tree import Tree

GROUP = "()"  # the label of brackets without a head, such as those of ``((f a) b)`` and of ``(x)``

EMPTY_NAME = r"\e"
LITERAL_CODE = r"\\(?=u[0-9a-f]{4})"  # pattern of a backslash that would be read as the beginning of a code

_ESCAPED = re.compile(r"\\u([0-9a-f]{4})")


# Text, or a tree to be written there and its place in its parent.
Piece = Union[str, tuple[Tree, Any]]


class Notation(ABC):
    """A notation of symbol trees."""

    WHOLE: Any = None
    """The place of a whole tree. The place is everything outside a node on which the node's text depends."""

    def read(self, line: str, path: str | os.PathLike | None = None, line_number: int | None = None) -> Tree:
        """Reads the tree of a line, which is in this place of this file.

        Raises:
            EmptySymbolTreeError: the line contains no tree
            MultipleRootsError: the line contains more than one tree
            NotationError: the line is not written in this notation
        """
        try:
            if line.startswith("\ufeff"):
                raise NotationError("a byte order mark", column=1, hint="Save the file without it.")
            if not line or line.isspace():
                message = "an empty line where a tree should be"
                raise EmptySymbolTreeError(message, hint="Remove it, and its parallel line.")
            return self._read(line)
        except InputError as error:
            raise error.at(path, line_number) from None

    def write(self, tree: Tree) -> str:
        """Writes a tree on one line, with the spacing that corpora of this notation use."""
        parts: list[str] = []
        rest: list[Piece] = [(tree, self.WHOLE)]
        while rest:
            piece = rest.pop()
            if isinstance(piece, str):
                parts.append(piece)
            else:
                rest += reversed(self._pieces(*piece))
        return "".join(parts)

    @abstractmethod
    def _read(self, line: str) -> Tree:
        """Reads a line that is not blank; errors contain the column only."""

    @abstractmethod
    def _pieces(self, node: Tree, place: Any) -> list[Piece]:
        """The text of a node in its place, with its children as trees."""


def separated(pieces: Iterable[Piece], separator: str) -> list[Piece]:
    """The pieces with a separator between them."""
    return [item for piece in pieces for item in (separator, piece)][1:]


def unescape_name(text: str) -> str:
    """The name that `escape_name` wrote."""
    if "\\" not in text:
        return text
    return "" if text == EMPTY_NAME else _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def escape_name(name: str, refused: re.Pattern) -> str:
    """Writes a name with codes for the parts that ``refused`` matches. The pattern must also match `LITERAL_CODE`."""
    if name in ("", EMPTY_NAME):
        return escape_first(name) if name else EMPTY_NAME
    return refused.sub(lambda found: "".join(map(_code, found[0])), name)


def escape_first(name: str) -> str:
    """Writes the first character of a name as a code, so that the result can only be read as a name."""
    return _code(name[0]) + name[1:]


def unclosed_error(columns: list[int]) -> NotationError:
    """The error for brackets that were opened in these columns and never closed."""
    number = "a bracket is" if len(columns) == 1 else f"{len(columns)} brackets are"
    message = f"{number} never closed, the first of them opened here"
    hint = "Close every bracket, and write each tree on one line."
    return NotationError(message, column=columns[0], hint=hint)


def _code(character: str) -> str:
    return f"\\u{ord(character):04x}"
