r"""The interface of all notations, by which lines become trees and trees become lines, and S-expressions.

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

from tree_fairseq.errors import EmptySymbolTreeError, InputError, MultipleRootsError, NotationError
from tree_fairseq.trees.text import shorten
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

        Raises EmptySymbolTreeError or MultipleRootsError if it has no tree or several, and NotationError if it is not
        in this notation.
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
        return self._text(tree, self.WHOLE)

    def _text(self, tree: Tree, place: Any) -> str:
        parts: list[str] = []
        rest: list[Piece] = [(tree, place)]
        while rest:
            piece = rest.pop()
            if isinstance(piece, str):
                parts.append(piece)
            else:
                rest += reversed(self._pieces(*piece))
        return "".join(parts)

    def accepts(self, tree: Tree) -> bool:
        """Whether what is written for a tree can be read; only a programming language refuses some trees."""
        return True

    def leaf_text(self, label: str) -> str | None:
        """The text for which a leaf with this label stands; None for a leaf that stands for none."""
        return label

    @abstractmethod
    def _read(self, line: str) -> Tree:
        """Reads a line that is not blank; errors contain the column only."""

    def _pieces(self, node: Tree, place: Any) -> list[Piece]:
        """The text of a node in its place, with its children as trees; one with its own `write` has no pieces."""
        raise NotImplementedError


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


_LINE_BREAKS = "\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
_STRING = re.compile(rf'"(?![\s()])(?:[^"\\{_LINE_BREAKS}]|\\[^{_LINE_BREAKS}])*"')
_TOKEN = re.compile(rf"(?P<open>\()|(?P<close>\))|(?P<string>{_STRING.pattern})(?![^\s()])|(?P<word>[^\s()]+)")
_REFUSED = re.compile(rf"[\s()]|{LITERAL_CODE}")


class BracketNotation(Notation):
    r"""S-expressions, as in lambda calculus, bracketed trees and Lisp.

    =====================  ==============================================================
    text                   tree
    =====================  ==============================================================
    ``x``                  a leaf
    ``( f a b )``          ``f`` over ``a`` and ``b``, if ``f`` is a word
    ``( x )``, ``()``      ``()`` over ``x`` and over nothing: brackets without a head
    ``( ( f a ) b )``      ``()`` over ``f`` (over ``a``) and ``b``
    ``"two words ( "``     a leaf; the quotation marks are part of its label
    =====================  ==============================================================

    A quotation mark before a blank or a bracket is a word by itself, as in treebanks.

    The place of a node is whether it is the whole tree.
    """

    WHOLE = True

    def _read(self, line: str) -> Tree:
        columns: list[int] = []
        contents: list[list[Tree]] = [[]]  # the trees in the line so far, then those in each open bracket
        headed: list[bool] = [False]  # whether the line and each open bracket begin with a word
        for found in _TOKEN.finditer(line):
            kind = found.lastgroup
            if len(contents) == 1 and contents[0] and kind != "close":
                raise MultipleRootsError(
                    f"{shorten(found.group())!r} follows a complete tree",
                    column=found.start() + 1,
                    hint="A line contains one tree, such as ( f a b ), and nothing else.",
                )
            if kind == "open":
                columns.append(found.start() + 1)
                contents.append([])
                headed.append(False)
            elif kind == "close":
                if not columns:
                    message = "a closing bracket without an opening one"
                    raise NotationError(message, column=found.start() + 1, hint="Remove it.")
                columns.pop()
                inner = contents.pop()
                has_head = headed.pop() and len(inner) > 1
                contents[-1].append(Tree(inner[0].label, inner[1:]) if has_head else Tree(GROUP, inner))
            else:
                headed[-1] = headed[-1] or not contents[-1]
                contents[-1].append(Tree(_label(found)))
        if columns:
            raise unclosed_error(columns)
        tree = contents[0][0]
        if tree == Tree(GROUP) and "(" in line:
            raise EmptySymbolTreeError(
                "there is nothing between the brackets", hint="Write a symbol, or remove the line."
            )
        return tree

    def _pieces(self, node: Tree, is_whole: bool) -> list[Piece]:
        if not node.children and (is_whole or node.label != GROUP):
            return [_word(node.label)]
        # Brackets have no head, or are written without one whose first child cannot be read as a head.
        first = node.children[0] if len(node.children) > 1 else None
        is_headless = node.label == GROUP and (first is None or bool(first.children) or first.label == GROUP)
        head = "" if is_headless else f"{_word(node.label)} "
        return [f"( {head}", *(piece for child in node.children for piece in ((child, False), " ")), ")"]


def _label(token: re.Match) -> str:
    text = token.group()
    if token.lastgroup == "string":
        return text
    if text[0] == '"' and len(text) > 1:
        raise NotationError(
            f"the string that begins with {shorten(text)!r} does not end before a blank or a bracket",
            column=token.start() + 1,
            hint='Close it with ", and write \\" for a quotation mark inside it.',
        )
    return unescape_name(text)


def _word(label: str) -> str:
    if _STRING.fullmatch(label):
        return label
    word = escape_name(label, _REFUSED)
    return escape_first(word) if word[0] == '"' and len(word) > 1 else word
