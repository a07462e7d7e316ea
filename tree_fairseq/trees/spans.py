"""Trees as arrays: the label, the span ``[start, end)`` and the depth of every node, in preorder.

Spans are half-open and count leaves from the start of the line, so the trees of a line follow one another. Preorder,
spans and depths determine the trees.

`read_span_block` reads many lines of brackets at once, in whole arrays. It reads the plain lines alone: those with one
blank before each opening bracket and before each word, and no other blank. Nearly all lines are plain, because
:func:`tree_fairseq.trees.bracket.write_forest` writes them so.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tree_fairseq.trees.bracket import DEPTH_LIMIT, unescape
from tree_fairseq.trees.tree import Forest, Tree, check_preterminals


@dataclass(frozen=True, eq=False)
class TreeSpans:
    """The trees of a line as arrays; M is the number of their nodes, not counting words."""

    leaves: list[str]  # the words from left to right
    labels: list[str]  # the label of each node in preorder; preterminals and unary chains are nodes
    spans: np.ndarray  # int32 [M, 3], the columns start, end and depth; a root has depth 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpans):
            return NotImplemented
        return self.leaves == other.leaves and self.labels == other.labels and np.array_equal(self.spans, other.spans)


def encode(forest: Forest) -> TreeSpans:
    """Converts the trees of a line to arrays; the inverse is `decode`.

    Raises MixedChildrenError or OutsideTreeError if a word is not the only child of its parent.
    """
    leaves: list[str] = []
    labels: list[str] = []
    flat: list[int] = []
    # A node to enter and its depth, or None and the index in `flat` of the end of the node to leave.
    stack: list[tuple[Tree | None, int]] = [(tree, 0) for tree in reversed(forest)]
    while stack:
        node, number = stack.pop()
        if node is None:
            flat[number] = len(leaves)
            continue
        if not node.children:
            check_preterminals(forest)  # raises the error about the word
        labels.append(node.label)
        flat += (len(leaves), len(leaves) + 1, number)
        if node.is_preterminal:
            leaves.append(node.children[0].label)
        else:
            stack.append((None, len(flat) - 2))
            stack += [(child, number + 1) for child in reversed(node.children)]
    # Going through an array is faster than numpy's conversion of a list of this length.
    spans = np.frombuffer(array("i", flat), np.int32) if flat else np.empty(0, np.int32)
    return TreeSpans(leaves, labels, spans.reshape(-1, 3))


def decode(encoded: TreeSpans) -> Forest:
    """Converts the arrays that `encode` returned back to the trees."""
    # waiting[depth]: the nodes at that depth to the right of the current one, the rightmost first.
    waiting: list[list[Tree]] = [[]]
    for label, (start, _, depth) in zip(reversed(encoded.labels), reversed(encoded.spans.tolist())):
        waiting += ([] for _ in range(depth + 2 - len(waiting)))
        children = waiting[depth + 1][::-1] or [Tree(encoded.leaves[start])]
        del waiting[depth + 1 :]
        waiting[depth].append(Tree(label, children))
    return tuple(waiting[0][::-1])


def reduce_spans(spans: np.ndarray) -> np.ndarray:
    """Selects the nodes that a model reads: those over two or more leaves, and of each unary chain only the lowest.

    This drops preterminals, except those of split words, which cover several pieces. ``spans`` is int ``[M, 3]`` (or
    more columns), start and end first, in preorder. The result is int64, the rows to keep, in order.
    """
    is_lowest = np.append(~_equals_next(spans), True)[: len(spans)]
    return np.flatnonzero(is_lowest & (spans[:, 1] - spans[:, 0] >= 2))


def unary_chains(spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nodes that `reduce_spans` keeps, and the top of the unary chain of each: two int64 arrays of one length.

    The chain of ``kept[k]`` consists of the rows ``top[k] … kept[k]``, its top first.
    """
    kept = reduce_spans(spans)
    is_top = np.append(True, ~_equals_next(spans))[: len(spans)]
    top = np.maximum.accumulate(np.where(is_top, np.arange(len(spans)), 0))
    return kept, top[kept]


def _equals_next(spans: np.ndarray) -> np.ndarray:
    """bool ``[M - 1]``: whether the next row has the same span. In preorder it is the only child then."""
    return (spans[1:, :2] == spans[:-1, :2]).all(axis=1)


def reduced_depth(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The depth of each node among the given nodes, for instance among those that `reduce_spans` keeps.

    In preorder a node follows its ancestors and the nodes that end before it starts. Its depth is therefore its rank
    minus the number of nodes that end before it starts. ``start`` and ``end`` are int ``[M]``, in preorder; the result
    is int32 ``[M]``, 0 at each root.
    """
    ended = np.searchsorted(np.sort(end), start, side="right")
    return (np.arange(len(start)) - ended).astype(np.int32)


_OPEN, _CLOSE, _BLANK, _NEWLINE, _REFUSED, _OTHER = range(6)
_KINDS = np.full(256, _OTHER, np.uint8)
for _character, _kind in ((b"(", _OPEN), (b")", _CLOSE), (b" ", _BLANK), (b"\n", _NEWLINE)):
    _KINDS[ord(_character)] = _kind
# White space that is refused, and the tab, which may take the place of a blank.
_KINDS[list(b"\t\x0b\x0c\r\x1c\x1d\x1e\x1f")] = _REFUSED

# Whether a character of one kind may be followed by one of another, without or with text between them.
_ALLOWED = np.zeros(5 * 2 * 5, bool)
for _before, _text, _after in (
    (_OPEN, 1, _BLANK),  # a label
    (_BLANK, 1, _CLOSE),  # a word
    (_BLANK, 0, _OPEN),
    (_CLOSE, 0, _CLOSE),
    (_CLOSE, 0, _BLANK),
    (_CLOSE, 0, _NEWLINE),
    (_NEWLINE, 0, _OPEN),
    (_NEWLINE, 0, _NEWLINE),
):
    _ALLOWED[(_before * 2 + _text) * 5 + _after] = True

# The white space of Unicode beyond ASCII.
_WHITE = re.compile(rb"\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2(?:\x80[\x80-\x8a\xa8\xa9\xaf]|\x81\x9f)|\xe3\x80\x80")


class SpanBlock(NamedTuple):
    """The trees of the plain lines of a text."""

    # which lines of the text are plain, ``[lines]`` bool; the other attributes leave out all other lines
    is_plain: np.ndarray
    # leaf_counts, node_counts: of each line, int32
    leaf_counts: np.ndarray
    node_counts: np.ndarray
    # int32 ``[M, 4]``, the nodes of all lines in preorder: position of the label in ``labels``, start, end, depth, as
    # in `TreeSpans`
    rows: np.ndarray
    labels: list[str]  # every label once
    text: bytes  # the words of each line, separated by blanks, as lines of UTF-8


def read_span_block(data: bytes, *, is_checked: bool = False) -> SpanBlock:
    """Reads the plain lines of UTF-8 text, each of which ends with a line feed.

    Without ``is_checked``, a line that may be malformed is not plain, so that `read_forest` can judge it.
    """
    characters = np.frombuffer(data, np.uint8)
    kinds = _KINDS[characters]
    places = np.flatnonzero(kinds != _OTHER)
    kinds = kinds[places]
    is_plain = _plain_lines(data, kinds, places, is_checked)
    if not is_plain.all():
        kept = is_plain[np.cumsum(kinds == _NEWLINE) - (kinds == _NEWLINE)]
        kinds, places = kinds[kept], places[kept]

    is_open, is_close = kinds == _OPEN, kinds == _CLOSE
    is_word = np.zeros(len(kinds), bool)  # a blank before a word
    is_word[:-1] = (kinds[:-1] == _BLANK) & is_close[1:]
    level = np.cumsum(is_open.astype(np.int32) - is_close, dtype=np.int32)
    words = np.cumsum(is_word, dtype=np.int32)
    ends = np.flatnonzero(kinds == _NEWLINE)
    leaf_counts = np.diff(words[ends], prepend=np.int32(0))
    words_before = np.repeat(words[ends] - leaf_counts, np.diff(ends, prepend=-1))

    opens, closes = np.flatnonzero(is_open), np.flatnonzero(is_close)
    rows = np.empty((len(opens), 4), np.int32)
    rows[:, 0], labels = _number_labels(characters, places[opens] + 1, places[opens + 1] if len(opens) else opens)
    rows[:, 1] = (words - words_before)[opens]
    rows[:, 3] = depth = level[opens] - 1
    # Of the brackets at one level, every closing one belongs to the opening one before it.
    rows[_by_level(depth), 2] = (words - words_before)[closes[_by_level(level[closes])]]

    node_counts = np.diff(np.cumsum(is_open, dtype=np.int32)[ends], prepend=np.int32(0))
    text = _text_of(characters, places, is_word, words - words_before == 1, ends)
    if b"\\" in text or b"B-" in text:
        text = unescape(text.decode("utf-8")).encode("utf-8")
    return SpanBlock(is_plain, leaf_counts, node_counts, rows, labels, text)


def _plain_lines(data: bytes, kinds: np.ndarray, places: np.ndarray, is_checked: bool) -> np.ndarray:
    """Returns which lines are plain and well formed, given the kinds and places of all characters but text."""
    newlines = places[kinds == _NEWLINE]
    ends = np.flatnonzero(kinds == _NEWLINE)
    bad = np.zeros(len(newlines), bool)

    before = np.append(np.uint8(_NEWLINE), kinds[:-1])
    has_text = np.diff(places, prepend=-1) > 1
    refused = (kinds == _REFUSED) | (before == _REFUSED)
    code = (np.where(refused, 0, before).astype(np.intp) * 2 + has_text) * 5 + np.where(refused, 0, kinds)
    wrong = refused | ~_ALLOWED[code]
    # A word stands behind a label.
    wrong[2:] |= has_text[2:] & (kinds[2:] == _CLOSE) & (kinds[:-2] != _OPEN)
    bad[np.searchsorted(ends, np.flatnonzero(wrong))] = True

    change = (kinds == _OPEN).astype(np.int32) - (kinds == _CLOSE)
    level = np.cumsum(change, dtype=np.int32)
    at_start = np.append(np.int32(0), level[ends[:-1]])[: len(ends)]
    bad |= level[ends] != at_start
    if len(ends):
        starts = np.append(0, ends[:-1] + 1)
        bad |= np.minimum.reduceat(level, starts) < at_start
        bad |= np.maximum.reduceat(level, starts) - at_start > DEPTH_LIMIT
    if not is_checked:
        # A leaf such as ``0=word`` may carry its position.
        equals = (match.start() for match in re.finditer(b"=", data))
        found = [place for place in equals if data[place - 1 : place].isdigit()]
        if not data.isascii():
            found += [match.start() for match in _WHITE.finditer(data)]
        bad[np.searchsorted(newlines, found)] = True
    return ~bad


def _by_level(level: np.ndarray) -> np.ndarray:
    """Returns the order of brackets by level, and from left to right within it."""
    # Numpy sorts integers of sixteen bits in linear time.
    return np.argsort(level.astype(np.uint16) if level.max(initial=0) < 1 << 16 else level, kind="stable")


def _text_of(
    characters: np.ndarray, places: np.ndarray, is_word: np.ndarray, is_first: np.ndarray, ends: np.ndarray
) -> bytes:
    """Returns the words with the blanks before them, but for the first of a line, and the ends of lines."""
    change = np.zeros(len(characters) + 1, np.int8)
    words = np.flatnonzero(is_word)
    change[places[words] + is_first[words]] = 1
    change[places[words + 1]] -= 1
    change[places[ends]] += 1
    change[places[ends] + 1] -= 1
    return characters[np.cumsum(change[:-1], dtype=np.int8).view(bool)].tobytes()


def _number_labels(characters: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Numbers labels, given where each starts and ends: the number of each, and all labels by number."""
    numbers: dict[bytes, int] = {}
    data = characters.tobytes()
    found = [numbers.setdefault(data[start:end], len(numbers)) for start, end in zip(starts.tolist(), ends.tolist())]
    return np.array(found, np.int32), [name.decode("utf-8") for name in numbers]
