"""Bracketed trees, one forest a line: ``(S (NP (DT the) (NN man)) (VP (VBZ sleeps)))``.

The reader is strict: it returns a forest whose written form reads back equal, or raises a `TreeFormatError` with the
place of the fault. Every leaf is the only child of its preterminal. Only blanks and tabs separate. Brackets in words
are escaped, see `tree_fairseq.trees.strict_reader`.
"""

from __future__ import annotations

import os
import re

from tree_fairseq.errors import EmptyTreeError, OutsideTreeError, TreeFormatError
from tree_fairseq.trees.spans import SpanForest, encode, spans_from_flat
from tree_fairseq.trees.strict_reader import (
    INDEXED_LEAF,
    REFUSED,
    StrictReader,
    check_label,
    check_word,
    escape,
    refuse_indexed_leaves,
    unescape,
)
from tree_fairseq.trees.tree import Forest, Tree, check_preterminals

DEPTH_LIMIT = 100_000
"""The greatest depth of a tree if the caller sets no other limit."""

# Each match is a preterminal with its word, the beginning of a constituent, or a run of closing brackets. The last
# alternative matches anything else, which only the strict reader can judge.
_NODE = re.compile(r"\(([^ \t()]++)[ \t]*+(?:([^ \t()]++)[ \t]*+\))?|(\)++|[^ \t])")


def read_forest(
    line: str, *, path: str | os.PathLike | None = None, line_number: int | None = None, depth_limit: int = DEPTH_LIMIT
) -> Forest:
    """Reads the trees of one line; a blank line is ``()``.

    Args:
        line: bracketed trees, one after the other; a line break at the end is ignored
        path, line_number: the place of the line, for messages
        depth_limit: how many brackets may be open at once

    Raises:
        TreeFormatError: one of its subclasses, with the column
    """
    try:
        return StrictReader(_without_line_break(line), depth_limit).read()
    except TreeFormatError as error:
        raise error.at(path, line_number) from None


def _without_line_break(line: str) -> str:
    return line[:-1].removesuffix("\r") if line.endswith("\n") else line


def read_tree(line: str) -> Tree:
    """Reads a line that holds exactly one tree; raises subclasses of `TreeFormatError`."""
    forest = read_forest(line)
    if not forest:
        raise EmptyTreeError("a blank line where one tree is expected")
    if len(forest) > 1:
        raise OutsideTreeError(f"{len(forest)} trees where one is expected", hint="Put each tree on its own line.")
    return forest[0]


def read_spans(
    line: str, *, path: str | os.PathLike | None = None, line_number: int | None = None, depth_limit: int = DEPTH_LIMIT
) -> SpanForest:
    """Returns ``encode(read_forest(line, ...))`` without building trees, which is several times faster."""
    try:
        spans = _read_spans_fast(_without_line_break(line), depth_limit)
    except IndexError:
        spans = None  # a closing bracket without an opening one
    if spans is not None:
        return spans
    # The strict reader names the fault, or accepts a line that the fast path does not understand.
    return encode(read_forest(line, path=path, line_number=line_number, depth_limit=depth_limit))


def _read_spans_fast(line: str, depth_limit: int) -> SpanForest | None:
    """The spans of a line, or None if only the strict reader can decide whether the line is well formed."""
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
    check_preterminals(forest)
    return " ".join(map(_write_tree, forest))


def _write_tree(tree: Tree) -> str:
    parts: list[str] = []
    words: list[str] = []
    stack: list[Tree | None] = [tree]  # None closes a constituent
    while stack:
        node = stack.pop()
        if node is None:
            parts.append(")")
            continue
        parts.append(f" ({check_label(node.label)}")
        if node.is_preterminal:
            words.append(check_word(node.children[0].label))
            parts.append(f" {escape(words[-1])})")
        else:
            stack += (None, *reversed(node.children))
    refuse_indexed_leaves(words)
    return "".join(parts)[1:]
