r"""S-expressions: lambda calculus, bracketed trees, Lisp.

=====================  ==============================================================
text                   tree
=====================  ==============================================================
``x``                  a leaf
``( f a b )``          ``f`` over ``a`` and ``b``; ``f`` is a word and not alone
``( x )``, ``()``      ``()`` over ``x``, and over nothing: brackets without a head
``( ( f a ) b )``      ``()`` over ``f`` (over ``a``) and ``b``
``"two words ( "``     a leaf, its label with the quotation marks
=====================  ==============================================================

A quotation mark before a blank or a bracket is a word of its own, as in treebanks.
"""

from __future__ import annotations

import re

from tree_fairseq.errors import EmptySymbolTreeError, MultipleRootsError, NotationError
from tree_fairseq.trees.notations.notation import (
    GROUP,
    LITERAL_CODE,
    Notation,
    escape_first,
    escape_name,
    shorten,
    unescape_name,
)
from tree_fairseq.trees.tree import Tree

_LINE_BREAKS = "\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
_STRING = re.compile(rf'"(?![\s()])(?:[^"\\{_LINE_BREAKS}]|\\[^{_LINE_BREAKS}])*"')
_TOKEN = re.compile(rf"(?P<open>\()|(?P<close>\))|(?P<string>{_STRING.pattern})(?![^\s()])|(?P<word>[^\s()]+)")
_REFUSED = re.compile(rf"[\s()]|{LITERAL_CODE}")


class BracketNotation(Notation):
    """Trees as ``( f a ( g b ) )``."""

    def _read(self, line: str) -> Tree:
        columns: list[int] = []
        # Of each open bracket, and of the line itself, what stands in it so far.
        contents: list[list[Tree]] = [[]]
        # Whether the bracket begins with a word, which is its head if more follows.
        headed: list[bool] = [False]
        for found in _TOKEN.finditer(line):
            kind = found.lastgroup
            if len(contents) == 1 and contents[0] and kind != "close":
                raise MultipleRootsError(
                    f"{shorten(found.group())!r} follows a complete tree",
                    column=found.start() + 1,
                    hint="A line holds one tree, ( f a b ), and nothing beside it.",
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
                tree = _bracketed(contents.pop(), headed.pop())
                contents[-1].append(tree)
            else:
                headed[-1] = headed[-1] or not contents[-1]
                contents[-1].append(Tree(_label(found)))
        if columns:
            number = "a bracket is" if len(columns) == 1 else f"{len(columns)} brackets are"
            raise NotationError(
                f"{number} never closed, the first of them opened here",
                column=columns[0],
                hint="Close every bracket; a tree has to stand on one line.",
            )
        tree = contents[0][0]
        if tree == Tree(GROUP) and "(" in line:
            message = "brackets with nothing between them are no tree"
            raise EmptySymbolTreeError(message, hint="Write a symbol, or remove the line.")
        return tree

    def write(self, tree: Tree) -> str:
        if tree == Tree(GROUP):
            return _word(GROUP)
        parts: list[str] = []
        stack: list[Tree | str] = [tree]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                parts.append(node)
            elif not node.children and node.label != GROUP:
                parts.append(_word(node.label))
            else:
                parts.append("(")
                if not _is_headless(node):
                    parts.append(_word(node.label))
                stack.append(")")
                stack.extend(reversed(node.children))
        return " ".join(parts)


def _bracketed(content: list[Tree], headed: bool) -> Tree:
    if headed and len(content) > 1:
        return Tree(content[0].label, content[1:])
    return Tree(GROUP, content)


def _is_headless(node: Tree) -> bool:
    """Whether the brackets of a node are written without its label: only where its first child is not taken for a head."""
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
            hint='Close it with ", and write \\" for a quotation mark inside.',
        )
    return unescape_name(text)


def _word(label: str) -> str:
    if _STRING.fullmatch(label):
        return label
    word = escape_name(label, _REFUSED)
    return escape_first(word) if word[0] == '"' and len(word) > 1 else word
