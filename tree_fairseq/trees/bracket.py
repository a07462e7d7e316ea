r"""Bracketed trees, one forest a line: ``(S (NP (DT the) (NN man)) (VP (VBZ sleeps)))``.

The reader is strict: a line either gives a forest whose written form reads back equal, or a `TreeFormatError` that says
where the fault is.  Every leaf is the only child of its preterminal.  Blanks and tabs separate, and nothing else does.

Brackets in words are escaped when written and only then: ``(`` becomes ``-LRB-`` and ``)`` becomes ``-RRB-``, as in the
Penn treebank.  A backslash marks a word that really holds the characters ``-LRB``, so that all words can be written:
backslashes right before a bracket are doubled, and ``k`` of them before a literal ``-LRB`` or ``-RRB`` become ``2k + 1``.
Labels are not escaped: the tag ``-LRB-`` is just that.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from tree_fairseq.errors import (
    DepthLimitError,
    DiscontinuousTreeError,
    EmptyTreeError,
    ExtraCloseError,
    MixedChildrenError,
    OutsideTreeError,
    TreeFormatError,
    UnclosedTreeError,
    UnlabelledTreeError,
    UnsupportedCharacterError,
)
from tree_fairseq.trees.spans import SpanForest, encode, spans_from_flat
from tree_fairseq.trees.text import character_name
from tree_fairseq.trees.tree import Forest, Tree, misplaced_word

DEPTH_LIMIT = 100_000
"""How deep a tree may be where the caller sets no limit."""

# All of Unicode's whitespace (str.isspace) except blank and tab: fairseq would split a token at any of it.  And the
# surrogates, which UTF-8 cannot hold.
_WHITESPACE = "\n\x0b\x0c\r\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_REFUSED = re.compile(f"[{_WHITESPACE}\ud800-\udfff]")
_REFUSED_IN_WORD = re.compile(f"[ \t{_WHITESPACE}\ud800-\udfff]")
_REFUSED_IN_LABEL = re.compile(f"[() \t{_WHITESPACE}\ud800-\udfff]")
# Both start at the first of a run of backslashes, which keeps them linear in its length.
_TO_ESCAPE = re.compile(r"(?<!\\)(\\*+)(?:([()])|(-[LR]RB))")
_ESCAPED = re.compile(r"(?<!\\)((?:\\\\)*+)(?:\\(-[LR]RB)|(-[LR]RB-))")
_TOKEN = re.compile(r"[()]|[^ \t()]+")
# One match for a preterminal with its word, for an opened constituent, or for a run of closing brackets; the last
# alternative catches whatever the strict reader has to judge.
_NODE = re.compile(r"\(([^ \t()]++)[ \t]*+(?:([^ \t()]++)[ \t]*+\))?|(\)++|[^ \t])")
_INDEXED_LEAF = re.compile(r"[ \t)]\d+=")
_INDEX = re.compile(r"(\d+)=.")


def escape(word: str) -> str:
    """A word as it stands between brackets; the inverse is `unescape`."""
    return _TO_ESCAPE.sub(_escape_match, word) if "(" in word or ")" in word or "RB" in word else word


def unescape(text: str) -> str:
    """The word that `escape` wrote, or that a treebank holds (``-LRB-`` is ``(``)."""
    return _ESCAPED.sub(_unescape_match, text) if "RB" in text else text


def _escape_match(found: re.Match) -> str:
    backslashes, bracket, literal = found.groups()
    if bracket:
        return backslashes * 2 + ("-LRB-" if bracket == "(" else "-RRB-")
    return backslashes * 2 + "\\" + literal


def _unescape_match(found: re.Match) -> str:
    backslashes, literal, bracket = found.groups()
    half = backslashes[: len(backslashes) // 2]
    return half + (literal or ("(" if bracket == "-LRB-" else ")"))


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
        return _StrictReader(_clean_line(line), depth_limit).read()
    except TreeFormatError as error:
        raise error.at(path, line_number) from None


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
    if isinstance(line, bytes) or _REFUSED.search(line) or "=" in line and _INDEXED_LEAF.search(line):
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
        if not tree.is_preterminal:
            _refuse_indexed_leaves(tree.leaves())
        if parts:
            parts.append(" ")
        _write_tree(tree, parts)
    return "".join(parts)


def _write_tree(tree: Tree, parts: list[str]) -> None:
    stack: list[Tree | None] = [tree]
    while stack:
        node = stack.pop()
        if node is None:
            parts.append(")")
            continue
        if parts and parts[-1] != " ":
            parts.append(" ")
        _check_label(node.label)
        if node.is_preterminal:
            word = node.children[0].label
            _check_word(word)
            parts.append(f"({node.label} {escape(word)})")
            continue
        parts.append("(" + node.label)
        stack.append(None)
        for child in reversed(node.children):
            if not child.children:
                raise misplaced_word(child.label, node)
            stack.append(child)


def _check_label(label: str) -> None:
    if not label:
        raise UnlabelledTreeError("a constituent without a label cannot be written")
    found = _REFUSED_IN_LABEL.search(label)
    if found:
        raise UnsupportedCharacterError(f"{character_name(found.group())} in the label {label!r}")


def _check_word(word: str) -> None:
    if not word:
        raise EmptyTreeError("an empty word cannot be written")
    found = _REFUSED_IN_WORD.search(word)
    if found:
        raise UnsupportedCharacterError(f"{character_name(found.group())} in the word {word!r}", hint=_CHARACTER_HINT)


def _refuse_indexed_leaves(leaves: list[str], column: int | None = None) -> None:
    """Refuse the leaves ``0=a 2=b 1=c``: no reading of them as words is meant.  A single such leaf may be a word."""
    if len(leaves) < 2:
        return
    found = [_INDEX.match(leaf) for leaf in leaves]
    if all(found) and sorted(int(match[1]) for match in found) == list(range(len(leaves))):
        raise DiscontinuousTreeError(
            "leaves that carry their position, such as " + repr(leaves[0]),
            column=column,
            hint="Discontinuous trees are not supported; make them projective with the tool of their treebank first.",
        )


_MIXED_HINT = "Give every word a tag of its own, as in (NP (DT the) (NN man))."
_CHARACTER_HINT = "Replace it in the tree and in the text by a visible character."


def _clean_line(line: str | bytes) -> str:
    """The line as text, without its end, once it is known to hold no character that is refused everywhere."""
    if isinstance(line, bytes):
        try:
            line = line.decode("utf-8")
        except UnicodeDecodeError as error:
            column = len(line[: error.start].decode("utf-8")) + 1
            raise UnsupportedCharacterError(f"byte 0x{line[error.start]:02x} is not valid UTF-8", column=column) from None
    if line.endswith("\n"):
        line = line[:-1].removesuffix("\r")
    found = _REFUSED.search(line)
    if found:
        message = f"{character_name(found.group())} in a line of trees"
        raise UnsupportedCharacterError(message, column=found.start() + 1, hint=_CHARACTER_HINT)
    return line


@dataclass
class _OpenNode:
    """A constituent that has not been closed yet."""

    column: int
    label: str | None
    children: list[Tree]


class _StrictReader:
    """Reads one line token by token and knows what is wrong where it stops."""

    def __init__(self, line: str, depth_limit: int):
        self.line = line
        self.depth_limit = depth_limit
        self.trees: list[Tree] = []
        self.open_nodes: list[_OpenNode] = []

    def read(self) -> Forest:
        """The forest of the line."""
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
            subject = "1 bracket is" if count == 1 else f"{count} brackets are"
            message = f"{subject} never closed, the first of them opened here"
            raise UnclosedTreeError(message, column=self.open_nodes[0].column, hint="A tree has to stand on one line.")
        return tuple(self.trees)

    def _open(self, column: int) -> None:
        if self.open_nodes:
            parent = self.open_nodes[-1]
            if parent.label is None:
                hint = "Write a label after each opening bracket, such as (ROOT (S ...))."
                raise UnlabelledTreeError("a constituent without a label", column=parent.column, hint=hint)
            if parent.children and not parent.children[0].children:
                message = f"a constituent beside the word {parent.children[0].label!r}"
                raise MixedChildrenError(message, column=column, hint=_MIXED_HINT)
        if len(self.open_nodes) >= self.depth_limit:
            message = f"the tree is deeper than {self.depth_limit}"
            raise DepthLimitError(message, column=column, hint="Raise the depth limit if this is meant.")
        self.open_nodes.append(_OpenNode(column, None, []))

    def _close(self, column: int) -> None:
        if not self.open_nodes:
            raise ExtraCloseError("a closing bracket without an opening one", column=column, hint="Remove it.")
        node = self.open_nodes.pop()
        if not node.children:
            shown = "()" if node.label is None else f"({node.label} )"
            hint = "Remove it, or write the word; a bracket as a word is written -LRB- or -RRB-."
            raise EmptyTreeError(f"the constituent {shown} holds no word", column=node.column, hint=hint)
        tree = Tree(node.label, node.children)
        if self.open_nodes:
            self.open_nodes[-1].children.append(tree)
            return
        if _INDEXED_LEAF.search(self.line):
            _refuse_indexed_leaves(tree.leaves(), node.column)
        self.trees.append(tree)

    def _text(self, text: str, column: int) -> None:
        if not self.open_nodes:
            hint = "Only whole trees, (S ...), may stand on a line."
            raise OutsideTreeError(f"{_shorten(text)!r} belongs to no tree", column=column, hint=hint)
        node = self.open_nodes[-1]
        if node.label is None:
            node.label = text
            return
        if node.children:
            beside = "a constituent" if node.children[0].children else f"the word {_shorten(node.children[0].label)!r}"
            raise MixedChildrenError(f"the word {_shorten(text)!r} beside {beside}", column=column, hint=_MIXED_HINT)
        node.children.append(Tree(unescape(text)))


def _shorten(text: str) -> str:
    """Enough of a text to recognise it in a message."""
    return text if len(text) <= 40 else text[:39] + "…"
