"""Pictures of trees: as text for a terminal, as SVG for a page."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from tree_fairseq.drawing.svg import document, number, text_width, xml_text
from tree_fairseq.trees.subwords import is_split_word
from tree_fairseq.trees.tree import Forest, Tree, check_preterminals

# Measures of the SVG in pixels.
_FONT_SIZE = 15
_TAG_SIZE = 12
_TITLE_SIZE = 17
_COLUMN_GAP = 16
_TREE_GAP = 48
_ROW_GAP = 48
_TAG_HEIGHT = 26  # of a tag above its word
_LEVEL = 44  # of a constituent above its highest child
_MARGIN = 24
_ROW_WIDTH = 1600  # trees stand side by side up to this width, then below one another

_STYLE = f"""
  .tree-edge {{ fill: none; stroke: #9aa5b1; stroke-width: 1.25; stroke-linecap: round }}
  .tree-piece-edge {{ stroke: #d3a45c }}
  .tree-text {{ text-anchor: middle; font-family: "Helvetica Neue", Helvetica, Arial, "Noto Sans", sans-serif }}
  .tree-title {{ font-size: {_TITLE_SIZE}px; font-weight: 600; fill: #323f4b; text-anchor: start }}
  .tree-phrase {{ font-size: {_FONT_SIZE}px; font-weight: 600; fill: #1d4f8c }}
  .tree-tag {{ font-size: {_TAG_SIZE}px; fill: #616e7c }}
  .tree-word {{ font-size: {_FONT_SIZE}px; fill: #1f2933 }}
  .tree-piece {{ font-size: {_FONT_SIZE}px; fill: #8d5a0b }}
"""


def tree_to_text(forest: Forest, *, ascii_only: bool = False, max_depth: int = 100) -> str:
    """Draw the trees of a line for a terminal, the root at the left, one word a row.

    Args:
        forest: the trees, drawn below one another.
        ascii_only: draw with ``|`` and ``-`` instead of box characters (words keep theirs).
        max_depth: constituents below this level are written as their words only, after ``…``.

    Returns:
        lines joined by ``\\n``, without one at the end; the empty string for an empty forest.
    """
    branch, last_branch, rule = ("|-- ", "`-- ", "|   ") if ascii_only else ("├── ", "└── ", "│   ")
    lines = []
    for tree in forest:
        # A node with what stands before it and what stands before its children's branches.
        stack = [(tree, "", "", 0)]
        while stack:
            node, before, prefix, depth = stack.pop()
            text = [node.label]
            # A unary chain shares a row.
            while len(node.children) == 1:
                node = node.children[0]
                text.append(node.label)
            if node.children and depth >= max_depth:
                text += ["..." if ascii_only else "…", *node.leaves()]
            lines.append(before + _printable(" ".join(text)))
            if depth < max_depth:
                for place, child in enumerate(reversed(node.children)):
                    mark, below = (branch, rule) if place else (last_branch, " " * len(rule))
                    stack.append((child, prefix + mark, prefix + below, depth + 1))
    return "\n".join(lines)


def _printable(text: str) -> str:
    """The text with control characters, which could steer the terminal, replaced."""
    return "".join("\ufffd" if unicodedata.category(character) in ("Cc", "Cs") else character for character in text)


def tree_to_svg(forest: Forest, title: str | None = None) -> str:
    """Draw the trees of a line as an SVG document, the words on one line at the bottom.

    The pieces of a split word hang directly under its tag.  Trees stand side by side while there is room, then in rows.

    Args:
        forest: the trees; an empty forest gives an empty picture.
        title: stands above the picture.

    Returns:
        a complete XML document, which browsers scale to the width they have.

    Raises:
        TreeFormatError: a word is not the only child of its parent.
    """
    check_preterminals(forest)
    top = float(_MARGIN)
    parts: list[str] = []
    if title is not None:
        top += _TITLE_SIZE
        parts.append(f'<text class="tree-text tree-title" x="{_MARGIN}" y="{number(top)}">{xml_text(title)}</text>')
        top += _MARGIN
    width = _MARGIN + (0.0 if title is None else text_width(title, _TITLE_SIZE))
    for row in _rows([tree.fold(_box) for tree in forest]):
        baseline = top + _FONT_SIZE + max(_elevation(root.height) for root in row)
        left = float(_MARGIN)
        for root in row:
            _place(root, left, baseline)
            parts += _draw(root)
            left += root.width + _TREE_GAP
        width = max(width, left - _TREE_GAP)
        top = baseline + _ROW_GAP
    height = top - (_ROW_GAP - _MARGIN if forest else 0)
    return document(parts, width + _MARGIN, height, style=_STYLE, title=title)


@dataclass
class _Box:
    """A node's place in the picture.

    ``width`` is what its subtree takes, ``center`` the middle of its label from the subtree's left edge; ``x`` and
    ``y`` are the label's place once the tree has been put somewhere.
    """

    text: str
    style: str
    children: list[_Box]
    width: float
    center: float
    height: int
    x: float = 0.0
    y: float = 0.0


def _box(node: Tree, children: list[_Box]) -> _Box:
    """Lay out a node above its children."""
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
    """How far above the words a node stands that has so many levels below it."""
    return _TAG_HEIGHT * min(height, 1) + _LEVEL * max(height - 1, 0)


def _rows(roots: list[_Box]) -> list[list[_Box]]:
    """Distribute trees over rows as words over the lines of a text."""
    rows: list[list[_Box]] = []
    taken = 0.0
    for root in roots:
        if not rows or taken + root.width > _ROW_WIDTH:
            rows.append([])
            taken = 0.0
        rows[-1].append(root)
        taken += root.width + _TREE_GAP
    return rows


def _place(root: _Box, left: float, baseline: float) -> None:
    stack = [(root, left)]
    while stack:
        box, edge = stack.pop()
        box.x = edge + box.center
        box.y = baseline - _elevation(box.height)
        edge += (box.width - sum(child.width for child in box.children)) / 2
        for child in box.children:
            stack.append((child, edge))
            edge += child.width


def _draw(root: _Box) -> list[str]:
    """The elements of one tree, its lines before its texts."""
    edges: list[str] = []
    bars: list[str] = []
    texts: list[str] = []
    stack = [root]
    while stack:
        box = stack.pop()
        place = f'x="{number(box.x)}" y="{number(box.y)}"'
        texts.append(f'<text class="tree-text tree-{box.style}" {place}>{xml_text(box.text)}</text>')
        if box.style == "phrase":
            edges += [_edge(box, child) for child in box.children]
        elif len(box.children) > 1:
            bars.append(_bar(box.children))
        stack.extend(reversed(box.children))
    paths = (("tree-edge", edges), ("tree-edge tree-piece-edge", bars))
    return [f'<path class="{name}" d="{"".join(path)}"/>' for name, path in paths if path] + texts


def _edge(parent: _Box, child: _Box) -> str:
    """A line that bends into the child's column above all labels of the child's row, so that no two lines cross."""
    start = parent.y + 5
    bend = parent.y + _LEVEL - _FONT_SIZE
    middle = number((start + bend) / 2)
    x = number(child.x)
    end = number(child.y - (_FONT_SIZE if child.style == "phrase" else _TAG_SIZE))
    return f"M{number(parent.x)} {number(start)}C{number(parent.x)} {middle} {x} {middle} {x} {number(bend)}V{end}"


def _bar(pieces: list[_Box]) -> str:
    """A line over the pieces of a word."""
    left = pieces[0].x - (pieces[0].width - _COLUMN_GAP) / 2
    right = pieces[-1].x + (pieces[-1].width - _COLUMN_GAP) / 2
    return f"M{number(left)} {number(pieces[0].y - _FONT_SIZE - 1)}H{number(right)}"
