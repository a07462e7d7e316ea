"""Pictures of the trees of a line: as text for a terminal, as SVG for a page."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

from tree_fairseq.drawing.svg import MARGIN, document, element, heading, number, text_width
from tree_fairseq.trees.subwords import is_split_word
from tree_fairseq.trees.tree import Forest, Tree, check_preterminals

_LABEL_COLUMNS = 20  # the space that a drawing of limited width keeps for labels and words

# Sizes in pixels.
_FONT_SIZE = 15
_TAG_SIZE = 12
_COLUMN_GAP = 16
_TREE_GAP = 48
_ROW_GAP = 48
_TAG_HEIGHT = 26  # of a tag above its word
_LEVEL = 44  # of a constituent above its highest child
_ROW_WIDTH = 1600  # trees are placed side by side up to this width, then in the next row

_STYLE = f"""
  .tree-edge {{ fill: none; stroke: #9aa5b1; stroke-width: 1.25; stroke-linecap: round }}
  .tree-piece-edge {{ stroke: #d3a45c }}
  .tree-text {{ text-anchor: middle }}
  .tree-phrase {{ font-weight: 600; fill: #1d4f8c }}
  .tree-tag {{ font-size: {_TAG_SIZE}px; fill: #616e7c }}
  .tree-piece {{ fill: #8d5a0b }}
"""


def tree_to_text(forest: Forest, *, max_depth: int = 100, width: int | None = None) -> str:
    """Draws the trees of a line for a terminal, below one another, with the root at the left and a word in each row.

    Constituents below ``max_depth`` are reduced to ``…`` and their words. ``width`` is the number of columns of the
    terminal: constituents that would begin too far to the right are reduced, too, and longer rows are cut with ``…``.
    Raises ValueError for a width below 8.
    """
    if width is not None:
        if width < 8:
            raise ValueError(f"a drawing needs at least 8 columns, not {width}")
        max_depth = min(max_depth, (width - _LABEL_COLUMNS) // 4 if width > _LABEL_COLUMNS else 0)
    lines = []
    for tree in forest:
        # A node, the prefix of its row, the prefix of the rows of its children, and its depth.
        stack = [(tree, "", "", 0)]
        while stack:
            node, before, prefix, depth = stack.pop()
            text = [node.label]
            # A unary chain shares a row.
            while len(node.children) == 1:
                node = node.children[0]
                text.append(node.label)
            if node.children and depth >= max_depth:
                text += ["…", *node.leaves()]
            row = before + _printable(" ".join(text))
            lines.append(row if width is None else _cut(row, width))
            if depth < max_depth:
                for place, child in enumerate(reversed(node.children)):
                    mark, below = ("├── ", "│   ") if place else ("└── ", "    ")
                    stack.append((child, prefix + mark, prefix + below, depth + 1))
    return "\n".join(lines)


def _printable(text: str) -> str:
    """The text without control characters, which could change the terminal."""
    return "".join("\ufffd" if unicodedata.category(character) in ("Cc", "Cs") else character for character in text)


def _cut(row: str, width: int) -> str:
    """The row, or its beginning and ``…`` if it has more columns than ``width``."""
    ends = list(accumulate(map(text_columns, row)))
    if not ends or ends[-1] <= width:
        return row
    return row[: bisect_right(ends, width - 1)] + "…"


def text_columns(text: str) -> int:
    """The number of columns that a text takes in a terminal; characters of East Asian scripts take two."""
    return sum(
        0 if unicodedata.category(character) in ("Mn", "Me", "Cf") else 2 if _is_wide(character) else 1
        for character in text
    )


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in ("F", "W")


def tree_to_svg(forest: Forest, title: str | None = None) -> str:
    """Draws the trees of a line as an SVG document, with all words on one line at the bottom.

    The pieces of a split word are placed directly under its tag. Trees are placed side by side, in as many rows as
    needed. Raises TreeFormatError if a word is not the only child of its parent.
    """
    check_preterminals(forest)
    parts, top, width = heading(title)
    for row in _rows([tree.fold(_box) for tree in forest]):
        baseline = top + _FONT_SIZE + max(_elevation(root.height) for root in row)
        left = float(MARGIN)
        for root in row:
            parts += _draw(root, left, baseline)
            left += root.width + _TREE_GAP
        width = max(width, left - _TREE_GAP)
        top = baseline + _ROW_GAP
    height = top - (_ROW_GAP - MARGIN if forest else 0)
    return document(parts, width + MARGIN, height, style=_STYLE, title=title, font_size=_FONT_SIZE)


@dataclass
class _Box:
    """The size of a node in the picture."""

    text: str
    style: str
    children: list[_Box]
    width: float  # of the subtree
    center: float  # the middle of the label, counted from the left edge of the subtree
    height: int  # the number of levels below


def _box(node: Tree, children: list[_Box]) -> _Box:
    """Lays out a node above its children."""
    if not children:
        width = text_width(node.label, _FONT_SIZE) + _COLUMN_GAP
        return _Box(node.label, "word", [], width, width / 2, 0)
    if is_split_word(node):
        children = [child.children[0] for child in children]
        for child in children:
            child.style = "piece"
    style = "tag" if not any(child.height for child in children) else "phrase"
    label_width = text_width(node.label, _TAG_SIZE if style == "tag" else _FONT_SIZE) + _COLUMN_GAP
    children_width = sum(child.width for child in children)
    width = max(children_width, label_width)
    first = (width - children_width) / 2 + children[0].center
    last = (width + children_width) / 2 - children[-1].width + children[-1].center
    center = min(max((first + last) / 2, label_width / 2), width - label_width / 2)
    return _Box(node.label, style, children, width, center, 1 + max(child.height for child in children))


def _elevation(height: int) -> float:
    """The distance between the words and a node of this height."""
    return _TAG_HEIGHT * min(height, 1) + _LEVEL * max(height - 1, 0)


def _rows(roots: list[_Box]) -> list[list[_Box]]:
    """Distributes trees over rows like words over the lines of a text."""
    rows: list[list[_Box]] = []
    taken = 0.0
    for root in roots:
        if not rows or taken + root.width > _ROW_WIDTH:
            rows.append([])
            taken = 0.0
        rows[-1].append(root)
        taken += root.width + _TREE_GAP
    return rows


def _draw(root: _Box, left: float, baseline: float) -> list[str]:
    """The elements of one tree: edges, then texts."""
    edges, bars, texts = [], [], []
    # A node, the left edge of its subtree, and the place of its parent if a line connects them.
    stack: list[tuple[_Box, float, tuple[float, float] | None]] = [(root, left, None)]
    while stack:
        box, left, parent = stack.pop()
        x, y = left + box.center, baseline - _elevation(box.height)
        texts.append(element("text", box.text, class_=f"tree-text tree-{box.style}", x=x, y=y))
        if parent is not None:
            edges.append(_edge(*parent, x, y - (_FONT_SIZE if box.style == "phrase" else _TAG_SIZE)))
        widths = [child.width for child in box.children]
        left += (box.width - sum(widths)) / 2
        if box.style != "phrase" and len(widths) > 1:
            # A line above the pieces of a word.
            ends = number(left + _COLUMN_GAP / 2), number(left + sum(widths) - _COLUMN_GAP / 2)
            bars.append(f"M{ends[0]} {number(baseline - _FONT_SIZE - 1)}H{ends[1]}")
        above = (x, y) if box.style == "phrase" else None
        stack += reversed([(child, edge, above) for child, edge in zip(box.children, accumulate(widths, initial=left))])
    paths = (("tree-edge", edges), ("tree-edge tree-piece-edge", bars))
    return [element("path", class_=name, d="".join(path)) for name, path in paths if path] + texts


def _edge(parent_x: float, parent_y: float, x: float, end: float) -> str:
    """A line that bends into the column of the child above all labels of its row, so that lines do not cross."""
    start, bend = parent_y + 5, parent_y + _LEVEL - _FONT_SIZE
    middle, column = number((start + bend) / 2), number(x)
    return (
        f"M{number(parent_x)} {number(start)}C{number(parent_x)} {middle} {column} {middle} {column} {number(bend)}"
        f"V{number(end)}"
    )
