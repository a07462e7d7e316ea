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
"""

from __future__ import annotations

import re

from tree_fairseq.errors import EmptySymbolTreeError, MultipleRootsError, NotationError
from tree_fairseq.trees.notations.notation import (
    GROUP,
    LITERAL_CODE,
    Notation,
    Piece,
    escape_first,
    escape_name,
    unclosed_error,
    unescape_name,
)
from tree_fairseq.trees.text import shorten
from tree_fairseq.trees.tree import Tree

_LINE_BREAKS = "\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
_STRING = re.compile(rf'"(?![\s()])(?:[^"\\{_LINE_BREAKS}]|\\[^{_LINE_BREAKS}])*"')
_TOKEN = re.compile(rf"(?P<open>\()|(?P<close>\))|(?P<string>{_STRING.pattern})(?![^\s()])|(?P<word>[^\s()]+)")
_REFUSED = re.compile(rf"[\s()]|{LITERAL_CODE}")


class BracketNotation(Notation):
    """Trees as ``( f a ( g b ) )``. The place of a node is whether it is the whole tree."""

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
        head = "" if _is_headless(node) else f"{_word(node.label)} "
        return [f"( {head}", *(piece for child in node.children for piece in ((child, False), " ")), ")"]


def _is_headless(node: Tree) -> bool:
    """Whether a node is written without its label, because its first child cannot be read as a head."""
    children = node.children
    return node.label == GROUP and (len(children) < 2 or bool(children[0].children) or children[0].label == GROUP)


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
