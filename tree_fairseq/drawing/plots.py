"""Line charts as SVG: a linear axis to the right, a logarithmic or a linear one upwards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tree_fairseq.drawing.svg import document, number, xml_text

# Measures in pixels.
_WIDTH, _HEIGHT = 420, 320  # of the field of a chart
_MARGIN = 24
_LEFT = 62  # for the numbers and the name of the axis upwards
_BELOW = 52
_FONT_SIZE = 13
_TITLE_SIZE = 17
_ROW = 20  # of the legend
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f")

_STYLE = f"""
  text {{ font-family: "Helvetica Neue", Helvetica, Arial, "Noto Sans", sans-serif; font-size: {_FONT_SIZE}px; fill: #1f2933 }}
  .chart-title {{ font-size: {_TITLE_SIZE}px; font-weight: 600; fill: #323f4b }}
  .chart-middle {{ text-anchor: middle }}
  .chart-end {{ text-anchor: end }}
  .chart-grid {{ stroke: #e4e7eb }}
  .chart-frame {{ fill: none; stroke: #9aa5b1 }}
  polyline {{ fill: none; stroke-width: 2 }}
"""


@dataclass(frozen=True)
class Line:
    """Points that belong together; on a logarithmic axis, what they show is greater than 0."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class LineChart:
    """Lines over the same axes.

    Attributes:
        title: above the chart
        across, upwards: names of the axes
        lines: what is drawn
        logarithmic: whether equal steps upwards are equal ratios; otherwise they are equal differences
    """

    title: str
    across: str
    upwards: str
    lines: Sequence[Line]
    logarithmic: bool = True


def charts_to_svg(charts: Sequence[LineChart]) -> str:
    """Draws charts side by side as a complete XML document; a name has the same colour in all of them."""
    names = list(dict.fromkeys(line.name for chart in charts for line in chart.lines))
    colours = {name: _COLOURS[k % len(_COLOURS)] for k, name in enumerate(names)}
    parts, left, rows = [], _MARGIN, max(len(chart.lines) for chart in charts)
    for chart in charts:
        parts += _drawn(chart, left + _LEFT, colours)
        left += _LEFT + _WIDTH + _MARGIN
    height = _MARGIN + _TITLE_SIZE + _HEIGHT + _BELOW + rows * _ROW + _MARGIN
    return document(parts, left, height, style=_STYLE, title=", ".join(chart.title for chart in charts))


def decades(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis: 1, 2 and 5 times powers of ten, from the last that is not above ``low`` to the first not below ``high``."""
    steps = [
        mantissa * 10.0**power
        for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for mantissa in (1, 2, 5)
    ]
    first = max(k for k, step in enumerate(steps) if step <= low * (1 + 1e-9))
    last = min(k for k, step in enumerate(steps) if step >= high * (1 - 1e-9))
    return steps[first : max(last, first + 1) + 1]


def even_steps(low: float, high: float) -> list[float]:
    """Ticks of a linear axis: multiples of 1, 2 or 5 times a power of ten, four to ten steps, so that all values lie between the ends."""
    spread = (high - low) or abs(high) or 1.0
    step = next(
        mantissa * 10.0**power
        for power in range(math.floor(math.log10(spread)) - 2, math.ceil(math.log10(spread)) + 1)
        for mantissa in (1, 2, 5)
        if spread / (mantissa * 10.0**power) <= 8
    )
    first = math.floor(low / step + 1e-9)
    last = max(math.ceil(high / step - 1e-9), first + 1)
    return [round(k * step, 12) for k in range(first, last + 1)]


def _drawn(chart: LineChart, left: float, colours: dict[str, str]) -> list[str]:
    """The elements of a chart whose field begins at ``left``."""
    top = _MARGIN + _TITLE_SIZE
    bottom = top + _HEIGHT
    xs = sorted({x for line in chart.lines for x, _ in line.points})
    ys = [y for line in chart.lines for _, y in line.points]
    ticks = (decades if chart.logarithmic else even_steps)(min(ys), max(ys))

    def share(y: float) -> float:
        """How far up the axis a value stands, from 0 to 1."""
        if chart.logarithmic:
            return math.log(y / ticks[0]) / math.log(ticks[-1] / ticks[0])
        return (y - ticks[0]) / (ticks[-1] - ticks[0])

    def place(x: float, y: float) -> tuple[str, str]:
        return number(left + _WIDTH * x / xs[-1]), number(bottom - _HEIGHT * share(y))

    parts = [f'<text class="chart-title" x="{number(left)}" y="{_MARGIN + 4}">{xml_text(chart.title)}</text>']
    for tick in ticks:
        _, y = place(0, tick)
        parts.append(f'<line class="chart-grid" x1="{number(left)}" x2="{number(left + _WIDTH)}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="chart-end" x="{number(left - 6)}" y="{y}" dy="4">{tick:g}</text>')
    for x in xs:
        parts.append(f'<text class="chart-middle" x="{place(x, ticks[0])[0]}" y="{bottom + 18}">{x:g}</text>')
    parts.append(f'<rect class="chart-frame" x="{number(left)}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}"/>')
    parts.append(
        f'<text class="chart-middle" x="{number(left + _WIDTH / 2)}" y="{bottom + 38}">{xml_text(chart.across)}</text>'
    )
    side, middle = number(left - 46), number(top + _HEIGHT / 2)
    parts.append(
        f'<text class="chart-middle" x="{side}" y="{middle}" transform="rotate(-90 {side} {middle})">{xml_text(chart.upwards)}</text>'
    )
    for row, line in enumerate(chart.lines):
        parts += _line(
            line, [place(x, y) for x, y in line.points], colours[line.name], left, bottom + _BELOW + row * _ROW
        )
    return parts


def _line(line: Line, places: list[tuple[str, str]], colour: str, left: float, below: float) -> list[str]:
    """A line with its points, and its row of the legend."""
    corners = " ".join(f"{x},{y}" for x, y in places)
    parts = [f'<polyline stroke="{colour}" points="{corners}"/>']
    for (x, y), (across, value) in zip(places, line.points):
        note = f"<title>{xml_text(line.name)}, {across:g}: {value:.3g}</title>"
        parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}">{note}</circle>')
    parts.append(f'<rect x="{number(left)}" y="{number(below)}" width="18" height="4" fill="{colour}"/>')
    parts.append(f'<text x="{number(left + 26)}" y="{number(below + 7)}">{xml_text(line.name)}</text>')
    return parts
