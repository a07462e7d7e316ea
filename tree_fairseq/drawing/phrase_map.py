"""Which phrases of a source each target token attends to, as a picture: what figure 5 of Patel & Flanigan shows of one token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tree_fairseq.drawing.svg import document, number, text_width, xml_text

# Measures of the SVG in pixels.
_FONT_SIZE = 14
_TITLE_SIZE = 17
_MARGIN = 24
_COLUMN_GAP = 14
_BAR = 9
_BAR_GAP = 3
_ROW_GAP = 9

_STYLE = f"""
  text {{ font-family: "Helvetica Neue", Helvetica, Arial, "Noto Sans", sans-serif; font-size: {_FONT_SIZE}px; fill: #1f2933 }}
  .phrase-title {{ font-size: {_TITLE_SIZE}px; font-weight: 600; fill: #323f4b }}
  .phrase-source {{ text-anchor: middle }}
  .phrase-target {{ text-anchor: end }}
  .phrase-rule {{ stroke: #e4e7eb }}
  .phrase-bar {{ fill: #1d4f8c }}
"""


class AttendedPhrase(NamedTuple):
    """The tokens ``[start, end)`` of the source, and the share of a target token's attention that goes to them."""

    start: int
    end: int
    weight: float


def phrase_map_to_svg(
    source: Sequence[str], target: Sequence[str], attended: Sequence[Sequence[AttendedPhrase]], title: str | None = None
) -> str:
    """Draw, for each target token, a bar under the source tokens of every phrase that it attends to, the darker the more.

    Args:
        source: tokens, each a column.
        target: tokens, each a row.
        attended: of each target token the phrases to draw, the one with the greatest weight first.
        title: stands above the picture.

    Returns:
        a complete XML document.
    """
    label_width = max((text_width(token, _FONT_SIZE) for token in target), default=0.0)
    edges = [_MARGIN + label_width + _COLUMN_GAP]
    for token in source:
        edges.append(edges[-1] + text_width(token, _FONT_SIZE) + _COLUMN_GAP)
    top = float(_MARGIN)
    parts = []
    if title is not None:
        top += _TITLE_SIZE
        parts.append(f'<text class="phrase-title" x="{_MARGIN}" y="{number(top)}">{xml_text(title)}</text>')
        top += _MARGIN
    top += _FONT_SIZE
    for token, left, right in zip(source, edges, edges[1:]):
        parts.append(
            f'<text class="phrase-source" x="{number((left + right) / 2)}" y="{number(top)}">{xml_text(token)}</text>'
        )
    top += _ROW_GAP
    for token, phrases in zip(target, attended, strict=True):
        height = max(len(phrases) * (_BAR + _BAR_GAP), _FONT_SIZE) + _ROW_GAP
        parts.append(
            f'<line class="phrase-rule" x1="{_MARGIN}" x2="{number(edges[-1])}" y1="{number(top)}" y2="{number(top)}"/>'
        )
        middle = number(top + height / 2 + _FONT_SIZE / 3)
        parts.append(
            f'<text class="phrase-target" x="{number(_MARGIN + label_width)}" y="{middle}">{xml_text(token)}</text>'
        )
        for place, phrase in enumerate(phrases):
            y = top + _ROW_GAP / 2 + place * (_BAR + _BAR_GAP) + _BAR_GAP / 2
            left, right = edges[phrase.start] + 2, edges[phrase.end] - 2
            note = f"{token}: {' '.join(source[phrase.start : phrase.end])}, {phrase.weight:.3f}"
            parts.append(
                f'<rect class="phrase-bar" x="{number(left)}" y="{number(y)}" width="{number(right - left)}" height="{_BAR}" '
                f'fill-opacity="{phrase.weight:.2f}"><title>{xml_text(note)}</title></rect>'
            )
        top += height
    width = max(edges[-1], _MARGIN + (0.0 if title is None else text_width(title, _TITLE_SIZE)))
    return document(parts, width + _MARGIN, top + _MARGIN, style=_STYLE, title=title)
