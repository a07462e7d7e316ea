"""Bracketed trees, one forest a line: ``(S (NP (DT the) (NN man)) (VP (VBZ sleeps)))``.

The reader is strict: a line either gives a forest whose written form reads back equal, or a `TreeFormatError` that says
where the fault is.  Every leaf is the only child of its preterminal.  Blanks and tabs separate, and nothing else does.

Brackets in words are escaped, see `tree_fairseq.trees.strict_reader`.
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
"""How deep a tree may be where the caller sets no limit."""

# One match for a preterminal with its word, for an opened constituent, or for a run of closing brackets; the last
# alternative catches whatever the strict reader has to judge.
_NODE = re.compile(r"\(([^ \t()]++)[ \t]*+(?:([^ \t()]++)[ \t]*+\))?|(\)++|[^ \t])")


def read_forest(
    line: str | bytes,
    *,
    path: str | os.PathLike | None = None,
    line_number: int | None = None,
    depth_limit: int = DEPTH_LIMIT,
) -> Forest:
    """Read the trees of one line.

    Args:
        line: bracketed trees, one after the other; bytes are taken for UTF-8.  One line end at the end is ignored.
        path: the file, for error messages only.
        line_number: the number of the line in it, from 1, for error messages only.
        depth_limit: how many brackets may be open at once.

    Returns:
        the forest; ``()`` for a blank line.

    Raises:
        TreeFormatError: one of its subclasses, with the column.
    """
    try:
        return StrictReader(_clean_line(line), depth_limit).read()
    except TreeFormatError as error:
        raise error.at(path, line_number) from None


def _clean_line(line: str | bytes) -> str:
    """The line as text, without its end, once it is known to hold no character that is refused everywhere."""
    if isinstance(line, bytes):
        try:
            line = line.decode("utf-8")
        except UnicodeDecodeError as error:
            message = f"byte 0x{line[error.start]:02x} is not valid UTF-8"
            column = len(line[: error.start].decode("utf-8")) + 1
            raise UnsupportedCharacterError(message, column=column) from None
    if line.endswith("\n"):
        line = line[:-1].removesuffix("\r")
    return check_characters(line)


def read_tree(line: str | bytes) -> Tree:
    """Read a line that holds exactly one tree.

    Raises:
        EmptyTreeError: the line is blank.
        OutsideTreeError: there are several trees.
        TreeFormatError: as `read_forest` has it.
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
    """The arrays of ``encode(read_forest(line))``, several times faster: no tree is built.

    Arguments and errors are those of `read_forest`.
    """
    try:
        spans = _read_spans_fast(line, depth_limit)
    except IndexError:
        # A closing bracket without an opening one.
        spans = None
    if spans is not None:
        return spans
    # The strict reader names the fault, or accepts what the fast path does not know.
    return encode(read_forest(line, path=path, line_number=line_number, depth_limit=depth_limit))


def _read_spans_fast(line: str | bytes, depth_limit: int) -> SpanForest | None:
    """The spans of a line, or None where only the strict reader can tell whether it is well formed."""
    if isinstance(line, bytes):
        return None
    if line.endswith("\n"):
        line = line[:-1].removesuffix("\r")
    if REFUSED.search(line) or "=" in line and INDEXED_LEAF.search(line):
        return None
    labels: list[str] = []
    leaves: list[str] = []
    flat: list[int] = []  # start, end, depth of each node
    open_ends: list[int] = []  # where in `flat` the end of each open node has to be written
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
                    return None  # no word inside
                flat[end] = position
        else:
            return None
    if open_ends or len(labels) > depth_limit:
        return None
    if "RB" in line:
        leaves = [unescape(leaf) for leaf in leaves]
    return spans_from_flat(leaves, labels, flat)


def write_forest(forest: Forest) -> str:
    """Write the trees of one line, separated by blanks; `read_forest` reads an equal forest back.

    Raises:
        TreeFormatError: the forest has no written form: a word that is not alone under its tag, an empty word or label,
            whitespace in a word or label, a bracket in a label.
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
    """Append the written form of a tree to ``parts``; returns its words."""
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
