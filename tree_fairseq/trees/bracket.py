"""Bracketed trees, one forest a line: ``(S (NP (DT the) (NN man)) (VP (VBZ sleeps)))``.

The reader is strict: it returns a forest whose written form reads back equal, or raises a `TreeFormatError` with the
place of the fault. Every leaf is the only child of its preterminal. Only blanks and tabs separate. Brackets in words
are escaped, see `tree_fairseq.trees.strict_reader`.
"""

from __future__ import annotations

import os
import re

from tree_fairseq.errors import EmptyTreeError, OutsideTreeError, TreeFormatError, UnsupportedCharacterError
from tree_fairseq.trees.spans import SpanForest, encode, spans_from_flat
from tree_fairseq.trees.strict_reader import (
    INDEXED_LEAF,
    REFUSED,
    StrictReader,
    check_characters,
    check_label,
    check_word,
    escape,
    refuse_indexed_leaves,
    unescape,
)
from tree_fairseq.trees.tree import Forest, Tree, misplaced_word

DEPTH_LIMIT = 100_000
"""The greatest depth of a tree if the caller sets no other limit."""

# Each match is a preterminal with its word, the beginning of a constituent, or a run of closing brackets. The last
# alternative matches anything else, which only the strict reader can judge.
_NODE = re.compile(r"\(([^ \t()]++)[ \t]*+(?:([^ \t()]++)[ \t]*+\))?|(\)++|[^ \t])")


def read_forest(
    line: str | bytes,
    *,
    path: str | os.PathLike | None = None,
    line_number: int | None = None,
    depth_limit: int = DEPTH_LIMIT,
) -> Forest:
    """Reads the trees of one line.

    Args:
        line: bracketed trees, one after the other; bytes are decoded as UTF-8, and one line break at the end is ignored
        path: the file, for error messages only
        line_number: the number of the line in the file, from 1, for error messages only
        depth_limit: how many brackets may be open at once

    Returns:
        the forest; ``()`` for a blank line

    Raises:
        TreeFormatError: one of its subclasses, with the column
    """
    try:
        return StrictReader(_clean_line(line), depth_limit).read()
    except TreeFormatError as error:
        raise error.at(path, line_number) from None


def _clean_line(line: str | bytes) -> str:
    """The line as text without its line break, after a check of its characters."""
    if isinstance(line, bytes):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            message = f"byte 0x{line[error.start]:02x} is not valid UTF-8"
            column = len(line[: error.start].decode("utf-8")) + 1
            raise UnsupportedCharacterError(message, column=column) from None
    else:
        text = line
    return check_characters(_without_line_break(text))


def _without_line_break(line: str) -> str:
    return line[:-1].removesuffix("\r") if line.endswith("\n") else line


def read_tree(line: str | bytes) -> Tree:
    """Reads a line that holds exactly one tree.

    Raises:
        EmptyTreeError: the line is blank
        OutsideTreeError: there are several trees
        TreeFormatError: the line is malformed, see `read_forest`
    """
    forest = read_forest(line)
    if not forest:
        raise EmptyTreeError("a blank line where one tree is expected")
    if len(forest) > 1:
        raise OutsideTreeError(f"{len(forest)} trees where one is expected", hint="Put each tree on its own line.")
    return forest[0]


def read_spans(
    line: str | bytes,
    *,
    path: str | os.PathLike | None = None,
    line_number: int | None = None,
    depth_limit: int = DEPTH_LIMIT,
) -> SpanForest:
    """Returns ``encode(read_forest(line))`` without building trees, which is several times faster.

    Arguments and errors are those of `read_forest`.
    """
    try:
        spans = _read_spans_fast(line, depth_limit)
    except IndexError:
        spans = None  # a closing bracket without an opening one
    if spans is not None:
        return spans
    # The strict reader names the fault, or accepts a line that the fast path does not understand.
    return encode(read_forest(line, path=path, line_number=line_number, depth_limit=depth_limit))


def _read_spans_fast(line: str | bytes, depth_limit: int) -> SpanForest | None:
    """The spans of a line, or None if only the strict reader can decide whether the line is well formed."""
    if isinstance(line, bytes):
        return None
    line = _without_line_break(line)
    if REFUSED.search(line) or "=" in line and INDEXED_LEAF.search(line):
        return None
    labels: list[str] = []
    leaves: list[str] = []
    flat: list[int] = []  # start, end and depth of each node
    open_ends: list[int] = []  # for each open node, the index in `flat` of its end
    position = 0
    for label, word, rest in _NODE.findall(line):
        if word:
            labels.append(label)
            leaves.append(word)
            flat += (position, position + 1, len(open_ends))
            position += 1
        elif label:
            labels.append(label)
            flat += (position, -1, len(open_ends))
            open_ends.append(len(flat) - 2)
        elif rest[0] == ")":
            for _ in rest:
                end = open_ends.pop()
                if flat[end - 1] == position:
                    return None  # the constituent holds no word
                flat[end] = position
        else:
            return None
    if open_ends or len(labels) > depth_limit:
        return None
    if "RB" in line:
        leaves = [unescape(leaf) for leaf in leaves]
    return spans_from_flat(leaves, labels, flat)


def write_forest(forest: Forest) -> str:
    """Writes the trees of one line, separated by blanks; `read_forest` reads an equal forest back.

    Raises:
        TreeFormatError: the forest cannot be written, because a word is not alone under its tag, a word or label is
            empty or contains whitespace, or a label contains a bracket
    """
    parts: list[str] = []
    for tree in forest:
        if not tree.children:
            raise misplaced_word(tree.label, None)
        if parts:
            parts.append(" ")
        refuse_indexed_leaves(_write_tree(tree, parts))
    return "".join(parts)


def _write_tree(tree: Tree, parts: list[str]) -> list[str]:
    """Appends the written form of a tree to ``parts``, and returns its words."""
    words: list[str] = []
    stack: list[Tree | None] = [tree]
    while stack:
        node = stack.pop()
        if node is None:
            parts.append(")")
            continue
        if parts and parts[-1] != " ":
            parts.append(" ")
        parts.append("(" + check_label(node.label))
        if node.is_preterminal:
            words.append(check_word(node.children[0].label))
            parts.append(f" {escape(words[-1])})")
            continue
        stack.append(None)
        for child in reversed(node.children):
            if not child.children:
                raise misplaced_word(child.label, node)
            stack.append(child)
    return words
