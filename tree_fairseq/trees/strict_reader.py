"""Reads a line of bracketed trees or reports what is wrong with it and where; also escapes brackets in words.

A bracket in a word is escaped when the word is written: ``(`` becomes ``-LRB-`` and ``)`` becomes ``-RRB-``, as in the
Penn treebank. Backslashes make this invertible: ``k`` backslashes before a bracket are doubled, and ``k`` backslashes
before characters that really are ``-LRB`` or ``-RRB`` become ``2k + 1``. Labels are not escaped: the tag ``-LRB-`` is
written as is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tree_fairseq.errors import (
    DepthLimitError,
    DiscontinuousTreeError,
    EmptyTreeError,
    ExtraCloseError,
    MixedChildrenError,
    OutsideTreeError,
    UnclosedTreeError,
    UnlabelledTreeError,
    UnsupportedCharacterError,
)
from tree_fairseq.trees.text import character_name, shorten
from tree_fairseq.trees.tree import Forest, Tree

# All of Unicode's whitespace (str.isspace) except blank and tab, because fairseq splits tokens at all of it.
_WHITESPACE = "\n\x0b\x0c\r\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SURROGATES = "\ud800-\udfff"  # UTF-8 cannot encode them

REFUSED = re.compile(f"[{_WHITESPACE}{_SURROGATES}]")
"""Matches a character that a line of trees may not contain anywhere."""

_REFUSED_IN_WORD = re.compile(f"[ \t{_WHITESPACE}{_SURROGATES}]")
_REFUSED_IN_LABEL = re.compile(f"[() \t{_WHITESPACE}{_SURROGATES}]")
# Both begin at the first of a run of backslashes, so that their time is linear in its length.
_TO_ESCAPE = re.compile(r"(?<!\\)(\\*+)(?:([()])|(-[LR]RB))")
_ESCAPED = re.compile(r"(?<!\\)((?:\\\\)*+)(?:\\(-[LR]RB)|(-[LR]RB-))")

_CHARACTER_HINT = "Replace it in the tree and in the text by a visible character."


def escape(word: str) -> str:
    """A word as it is written between brackets; the inverse is `unescape`."""

    def escaped(found: re.Match) -> str:
        backslashes, bracket, literal = found.groups()
        return backslashes * 2 + (f"\\{literal}" if literal else "-LRB-" if bracket == "(" else "-RRB-")

    return _TO_ESCAPE.sub(escaped, word) if "(" in word or ")" in word or "RB" in word else word


def unescape(text: str) -> str:
    """The word that `escape` wrote or that a treebank contains (``-LRB-`` is ``(``)."""

    def unescaped(found: re.Match) -> str:
        backslashes, literal, bracket = found.groups()
        return backslashes[::2] + (literal or ("(" if bracket == "-LRB-" else ")"))

    return _ESCAPED.sub(unescaped, text) if "RB" in text else text


def check_label(label: str) -> str:
    """Returns the label, or raises `TreeFormatError` if it is empty or contains whitespace or a bracket."""
    if not label:
        raise UnlabelledTreeError("a constituent without a label cannot be written")
    if found := _REFUSED_IN_LABEL.search(label):
        raise UnsupportedCharacterError(f"{character_name(found.group())} in the label {label!r}")
    return label


def check_word(word: str) -> str:
    """Returns the word, or raises `TreeFormatError` if it is empty or contains whitespace."""
    if not word:
        raise EmptyTreeError("an empty word cannot be written")
    if found := _REFUSED_IN_WORD.search(word):
        message = f"{character_name(found.group())} in the word {word!r}"
        raise UnsupportedCharacterError(message, hint=_CHARACTER_HINT)
    return word


INDEXED_LEAF = re.compile(r"[ \t)]\d+=")
"""Matches in every line that has leaves like ``0=word``, and in some other lines."""

_INDEX = re.compile(r"([0-9]{1,9})=.")
_TOKEN = re.compile(r"[()]|[^ \t()]+")
_MIXED_HINT = "Give every word a tag of its own, as in (NP (DT the) (NN man))."


def refuse_indexed_leaves(leaves: list[str], column: int | None = None) -> None:
    """Raises an error for leaves such as ``0=a 2=b 1=c``, which are not words. A single such leaf may be a word."""
    if len(leaves) < 2 or not _INDEX.match(leaves[0]):
        return
    indices = [int(match[1]) for leaf in leaves if (match := _INDEX.match(leaf))]
    if len(indices) == len(leaves) and sorted(indices) == list(range(len(leaves))):
        raise DiscontinuousTreeError(
            f"leaves that carry their position, such as {leaves[0]!r}",
            column=column,
            hint="Discontinuous trees are not supported; make them projective with the tool of their treebank first.",
        )


@dataclass
class _OpenNode:
    """A constituent that has not been closed yet; its label is empty until it has been read."""

    column: int
    label: str = ""
    children: list[Tree] = field(default_factory=list)


class StrictReader:
    """Reads one line, without its line break, token by token."""

    def __init__(self, line: str, depth_limit: int):
        self.line, self.depth_limit = line, depth_limit
        self.trees: list[Tree] = []
        self.open_nodes: list[_OpenNode] = []

    def read(self) -> Forest:
        if found := REFUSED.search(self.line):
            message = f"{character_name(found.group())} in a line of trees"
            raise UnsupportedCharacterError(message, column=found.start() + 1, hint=_CHARACTER_HINT)
        for found in _TOKEN.finditer(self.line):
            text, column = found.group(), found.start() + 1
            if text == "(":
                self._open(column)
            elif text == ")":
                self._close(column)
            else:
                self._text(text, column)
        if self.open_nodes:
            count = len(self.open_nodes)
            message = f"{count} bracket{' is' if count == 1 else 's are'} never closed, the first of them opened here"
            raise UnclosedTreeError(message, column=self.open_nodes[0].column, hint="Write each tree on one line.")
        return tuple(self.trees)

    def _open(self, column: int) -> None:
        if self.open_nodes:
            parent = self.open_nodes[-1]
            if not parent.label:
                hint = "Write a label after each opening bracket, such as (ROOT (S ...))."
                raise UnlabelledTreeError("a constituent without a label", column=parent.column, hint=hint)
            if parent.children and not parent.children[0].children:
                message = f"a constituent beside the word {shorten(parent.children[0].label)!r}"
                raise MixedChildrenError(message, column=column, hint=_MIXED_HINT)
        if len(self.open_nodes) >= self.depth_limit:
            message = f"the tree is deeper than {self.depth_limit}"
            raise DepthLimitError(message, column=column, hint="Raise the depth limit if the tree is correct.")
        self.open_nodes.append(_OpenNode(column))

    def _close(self, column: int) -> None:
        if not self.open_nodes:
            raise ExtraCloseError("a closing bracket without an opening one", column=column, hint="Remove it.")
        node = self.open_nodes.pop()
        if not node.children:
            shown = f"({shorten(node.label)} )" if node.label else "()"
            hint = "Remove it, or write the word; a bracket as a word is written -LRB- or -RRB-."
            raise EmptyTreeError(f"the constituent {shown} holds no word", column=node.column, hint=hint)
        tree = Tree(node.label, node.children)
        if self.open_nodes:
            self.open_nodes[-1].children.append(tree)
            return
        refuse_indexed_leaves(tree.leaves(), node.column)
        self.trees.append(tree)

    def _text(self, text: str, column: int) -> None:
        if not self.open_nodes:
            hint = "A line may contain only whole trees, such as (S ...)."
            if text.startswith("\ufeff"):
                hint = "Save the file without a byte order mark."
            raise OutsideTreeError(f"{shorten(text)!r} belongs to no tree", column=column, hint=hint)
        node = self.open_nodes[-1]
        if not node.label:
            node.label = text
            return
        if node.children:
            beside = "a constituent" if node.children[0].children else f"the word {shorten(node.children[0].label)!r}"
            raise MixedChildrenError(f"the word {shorten(text)!r} beside {beside}", column=column, hint=_MIXED_HINT)
        node.children.append(Tree(unescape(text)))
