"""The source phrases that each target token attends to; figure 5 of Patel & Flanigan (2023) shows one token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tree_fairseq.drawing.svg import MARGIN, document, element, heading, text_width
from tree_fairseq.python_versions import zip_equal

# Sizes in pixels.
_FONT_SIZE = 14
_COLUMN_GAP = 14
_BAR = 9
_BAR_GAP = 3
_ROW_GAP = 9

_STYLE = """
  .phrase-source { text-anchor: middle }
  .phrase-target { text-anchor: end }
  .phrase-rule { stroke: #e4e7eb }
  .phrase-bar { fill: #1d4f8c }
"""


class AttendedPhrase(NamedTuple):
    """The source tokens ``[start, end)``, and the share of a target token's attention that they receive."""

    start: int
    end: int
    weight: float


def phrase_map_to_svg(
    source: Sequence[str], target: Sequence[str], attended: Sequence[Sequence[AttendedPhrase]], title: str | None = None
) -> str:
    """Draws, for each target token, a bar under every phrase that it attends to; darker bars have greater weights.

    Source tokens are columns and target tokens are rows. ``attended`` has the phrases of each target token, by
    decreasing weight. The result is a complete XML document.
    """
    target_edge = MARGIN + max((text_width(token, _FONT_SIZE) for token in target), default=0.0)
    edges = [target_edge + _COLUMN_GAP]
    for token in source:
        edges.append(edges[-1] + text_width(token, _FONT_SIZE) + _COLUMN_GAP)
    parts, top, width = heading(title)
    top += _FONT_SIZE
    for token, left, right in zip(source, edges, edges[1:]):
        parts.append(element("text", token, class_="phrase-source", x=(left + right) / 2, y=top))
    top += _ROW_GAP
    for token, phrases in zip_equal(target, attended):
        height = max(len(phrases) * (_BAR + _BAR_GAP), _FONT_SIZE) + _ROW_GAP
        parts.append(element("line", class_="phrase-rule", x1=MARGIN, x2=edges[-1], y1=top, y2=top))
        middle = top + height / 2 + _FONT_SIZE / 3
        parts.append(element("text", token, class_="phrase-target", x=target_edge, y=middle))
        y = top + (_ROW_GAP + _BAR_GAP) / 2
        for start, end, weight in phrases:
            note = f"{token}: {' '.join(source[start:end])}, {weight:.3f}"
            box = {"x": edges[start] + 2, "y": y, "width": edges[end] - edges[start] - 4, "height": _BAR}
            parts.append(element("rect", note=note, class_="phrase-bar", **box, fill_opacity=weight))
            y += _BAR + _BAR_GAP
        top += height
    width = max(edges[-1], width) + MARGIN
    return document(parts, width, top + MARGIN, style=_STYLE, title=title, font_size=_FONT_SIZE)
