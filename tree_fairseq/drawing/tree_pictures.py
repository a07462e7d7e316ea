"""Pictures of the trees of a line as SVG."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from tree_fairseq.drawing.svg import MARGIN, document, element, heading, number, text_width
from tree_fairseq.trees.subwords import is_split_word
from tree_fairseq.trees.tree import Forest, Tree, check_preterminals

# Sizes in pixels.
_FONT_SIZE = 15
_TAG_SIZE = 12
_COLUMN_GAP = 16
_TREE_GAP = 48
_ROW_GAP = 48
_TAG_HEIGHT = 26  # a tag stands this much above its word
_LEVEL = 44  # a constituent stands this much above its highest child
_ROW_WIDTH = 1600  # trees are placed side by side up to this width, then in the next row

_STYLE = f"""
  .tree-edge {{ fill: none; stroke: #9aa5b1; stroke-width: 1.25; stroke-linecap: round }}
  .tree-piece-edge {{ stroke: #d3a45c }}
  .tree-text {{ text-anchor: middle }}
  .tree-phrase {{ font-weight: 600; fill: #1d4f8c }}
  .tree-tag {{ font-size: {_TAG_SIZE}px; fill: #616e7c }}
  .tree-piece {{ fill: #8d5a0b }}
"""


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
    width: float  # the width of the subtree
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
