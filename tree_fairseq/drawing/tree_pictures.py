"""Pictures of the trees of a line as SVG."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import accumulate
from xml.sax.saxutils import escape as escape_xml

from tree_fairseq.trees.subwords import is_split_word
from tree_fairseq.trees.tree import Forest, Tree

# Characters that XML 1.0 cannot represent, not even as references.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

# Sizes in pixels.
_MARGIN = 24
_LONGEST_SIDE = 2000  # a larger picture is scaled down
_TITLE_SIZE = 17
_FONT_SIZE = 15
_TAG_SIZE = 12
_COLUMN_GAP = 16
_TREE_GAP = 48
_ROW_GAP = 48
_TAG_HEIGHT = 26  # a tag stands this much above its word
_LEVEL = 44  # a constituent stands this much above its highest child
_ROW_WIDTH = 1600  # trees are placed side by side up to this width, then in the next row

_FONT = "Helvetica Neue, Helvetica, Arial, Noto Sans, sans-serif"
_STYLE = f"""
  .picture-title {{ font-size: {_TITLE_SIZE}px; font-weight: 600; fill: #323f4b }}
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
    needed.
    """
    parts, top, width = [], _MARGIN, _MARGIN
    if title is not None:
        top += _TITLE_SIZE
        parts.append(_element("text", title, class_="picture-title", x=_MARGIN, y=top))
        top, width = top + _MARGIN, _MARGIN + _text_width(title, _TITLE_SIZE)
    for row in _rows([tree.fold(_box) for tree in forest]):
        baseline = top + _FONT_SIZE + max(_elevation(root.height) for root in row)
        left = float(_MARGIN)
        for root in row:
            parts += _draw(root, left, baseline)
            left += root.width + _TREE_GAP
        width = max(width, left - _TREE_GAP)
        top = baseline + _ROW_GAP
    height = top - (_ROW_GAP - _MARGIN if forest else 0)
    return _document(parts, width + _MARGIN, height, title)


@dataclass
class _Box:
    text: str
    style: str
    children: list[_Box]
    width: float  # the width of the subtree
    center: float  # the middle of the label, counted from the left edge of the subtree
    height: int  # the number of levels below


def _box(node: Tree, children: list[_Box]) -> _Box:
    if not children:
        width = _text_width(node.label, _FONT_SIZE) + _COLUMN_GAP
        return _Box(node.label, "word", [], width, width / 2, 0)
    if is_split_word(node):
        children = [child.children[0] for child in children]
        for child in children:
            child.style = "piece"
    style = "tag" if not any(child.height for child in children) else "phrase"
    label_width = _text_width(node.label, _TAG_SIZE if style == "tag" else _FONT_SIZE) + _COLUMN_GAP
    children_width = sum(child.width for child in children)
    width = max(children_width, label_width)
    first = (width - children_width) / 2 + children[0].center
    last = (width + children_width) / 2 - children[-1].width + children[-1].center
    center = min(max((first + last) / 2, label_width / 2), width - label_width / 2)
    return _Box(node.label, style, children, width, center, 1 + max(child.height for child in children))


def _elevation(height: int) -> float:
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
    edges, bars, texts = [], [], []
    # A node, the left edge of its subtree, and the place of its parent if a line connects them.
    stack: list[tuple[_Box, float, tuple[float, float] | None]] = [(root, left, None)]
    while stack:
        box, left, parent = stack.pop()
        x, y = left + box.center, baseline - _elevation(box.height)
        texts.append(_element("text", box.text, class_=f"tree-text tree-{box.style}", x=x, y=y))
        if parent is not None:
            edges.append(_edge(*parent, x, y - (_FONT_SIZE if box.style == "phrase" else _TAG_SIZE)))
        widths = [child.width for child in box.children]
        left += (box.width - sum(widths)) / 2
        if box.style != "phrase" and len(widths) > 1:
            # A line above the pieces of a word.
            ends = _number(left + _COLUMN_GAP / 2), _number(left + sum(widths) - _COLUMN_GAP / 2)
            bars.append(f"M{ends[0]} {_number(baseline - _FONT_SIZE - 1)}H{ends[1]}")
        above = (x, y) if box.style == "phrase" else None
        stack += reversed([(child, edge, above) for child, edge in zip(box.children, accumulate(widths, initial=left))])
    paths = (("tree-edge", edges), ("tree-edge tree-piece-edge", bars))
    return [_element("path", class_=name, d="".join(path)) for name, path in paths if path] + texts


def _edge(parent_x: float, parent_y: float, x: float, end: float) -> str:
    """A line that bends into the column of the child above all labels of its row, so that lines do not cross."""
    start, bend = parent_y + 5, parent_y + _LEVEL - _FONT_SIZE
    middle, column = _number((start + bend) / 2), _number(x)
    return (
        f"M{_number(parent_x)} {_number(start)}C{_number(parent_x)} {middle} {column} {middle} {column} {_number(bend)}"
        f"V{_number(end)}"
    )


def _document(parts: list[str], width: float, height: float, title: str | None) -> str:
    """A complete XML document of elements, from back to front, which browsers scale to the available width."""
    scale = min(1.0, _LONGEST_SIDE / width, _LONGEST_SIDE / height)
    size = f'width="{_number(scale * width)}" height="{_number(scale * height)}"'
    size += f' viewBox="0 0 {_number(width)} {_number(height)}"'
    font = f'font-family="{_FONT}" font-size="{_FONT_SIZE}" fill="#1f2933"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} {font} style="max-width:100%;height:auto">',
        *([] if title is None else [f"<title>{_xml_text(title)}</title>"]),
        f"<style>{_STYLE}</style>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _element(name: str, text: str = "", **attributes: float | str) -> str:
    """An element with a text; ``class_`` is the attribute ``class``."""
    shown = "".join(
        f' {key.rstrip("_")}="{value if isinstance(value, str) else _number(value)}"'
        for key, value in attributes.items()
    )
    return f"<{name}{shown}>{_xml_text(text)}</{name}>" if text else f"<{name}{shown}/>"


def _number(value: float) -> str:
    """A length with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _xml_text(text: str) -> str:
    return escape_xml(_NOT_XML.sub("\ufffd", text))


def _text_width(text: str, font_size: float) -> float:
    return font_size * sum(_character_width(character) for character in text)


def _character_width(character: str) -> float:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me", "Mn"):
        return 0.0
    if unicodedata.east_asian_width(character) in ("F", "W"):
        return 1.0
    if character in "iljftrI.,:;'`!|()[] -":
        return 0.34
    if character in "mwMW@%":
        return 0.9
    return 0.7 if character.isupper() else 0.57
