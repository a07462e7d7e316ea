"""Plots of lines as SVG: the horizontal axis is linear, the vertical one logarithmic or linear."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tree_fairseq.drawing.svg import MARGIN, TITLE_SIZE, document, element

# Sizes in pixels.
_WIDTH, _HEIGHT = 420, 320  # of the area of a plot
_LEFT = 62  # for the ticks and the name of the vertical axis
_BELOW = 52  # for those of the horizontal axis
_ROW = 20  # of the legend
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f")

_STYLE = """
  .plot-middle { text-anchor: middle }
  .plot-end { text-anchor: end }
  .plot-grid { stroke: #e4e7eb }
  .plot-frame { fill: none; stroke: #9aa5b1 }
  polyline { fill: none; stroke-width: 2 }
"""


@dataclass(frozen=True)
class Line:
    """Points that are connected; on a logarithmic axis their values are greater than 0."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Plot:
    """Lines over the same axes."""

    title: str
    across: str  # the name of the horizontal axis
    upwards: str  # the name of the vertical axis
    lines: Sequence[Line]
    logarithmic: bool = True  # whether the vertical axis is


def plots_to_svg(plots: Sequence[Plot]) -> str:
    """Draws plots side by side as a complete XML document; lines of the same name have the same colour in all plots."""
    names = list(dict.fromkeys(line.name for plot in plots for line in plot.lines))
    colours = {name: _COLOURS[k % len(_COLOURS)] for k, name in enumerate(names)}
    parts, left, rows = [], MARGIN, max(len(plot.lines) for plot in plots)
    for plot in plots:
        parts += _plot(plot, left + _LEFT, colours)
        left += _LEFT + _WIDTH + MARGIN
    height = MARGIN + TITLE_SIZE + _HEIGHT + _BELOW + rows * _ROW + MARGIN
    return document(parts, left, height, style=_STYLE, title=", ".join(plot.title for plot in plots))


def decades(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis: 1, 2 and 5 times powers of ten, just enough to enclose ``[low, high]``."""
    steps = _round_numbers(math.floor(math.log10(low)), math.ceil(math.log10(high)))
    first = max(k for k, step in enumerate(steps) if step <= low * (1 + 1e-9))
    last = min(k for k, step in enumerate(steps) if step >= high * (1 - 1e-9))
    return steps[first : max(last, first + 1) + 1]


def even_steps(low: float, high: float) -> list[float]:
    """Ticks of a linear axis: multiples of 1, 2 or 5 times a power of ten, just enough to enclose ``[low, high]``."""
    spread = (high - low) or abs(high) or 1.0
    power = math.log10(spread)
    step = next(step for step in _round_numbers(math.floor(power) - 2, math.ceil(power)) if spread / step <= 8)
    first = math.floor(low / step + 1e-9)
    last = max(math.ceil(high / step - 1e-9), first + 1)
    return [round(k * step, 12) for k in range(first, last + 1)]


def _round_numbers(first_power: int, last_power: int) -> list[float]:
    return [mantissa * 10.0**power for power in range(first_power, last_power + 1) for mantissa in (1, 2, 5)]


def _plot(plot: Plot, left: float, colours: dict[str, str]) -> list[str]:
    """The elements of a plot whose area begins at ``left``."""
    top = MARGIN + TITLE_SIZE
    bottom = top + _HEIGHT
    xs = sorted({x for line in plot.lines for x, _ in line.points})
    ys = [y for line in plot.lines for _, y in line.points]
    ticks = (decades if plot.logarithmic else even_steps)(min(ys), max(ys))
    scale = math.log if plot.logarithmic else float
    low, high = scale(ticks[0]), scale(ticks[-1])

    def place(x: float, y: float) -> tuple[float, float]:
        return left + _WIDTH * x / xs[-1], bottom - _HEIGHT * (scale(y) - low) / (high - low)

    parts = [element("text", plot.title, class_="picture-title", x=left, y=MARGIN + 4)]
    for tick in ticks:
        _, y = place(0, tick)
        parts.append(element("line", class_="plot-grid", x1=left, x2=left + _WIDTH, y1=y, y2=y))
        parts.append(element("text", f"{tick:g}", class_="plot-end", x=left - 6, y=y, dy=4))
    for x in xs:
        parts.append(element("text", f"{x:g}", class_="plot-middle", x=place(x, ticks[0])[0], y=bottom + 18))
    parts.append(element("rect", class_="plot-frame", x=left, y=top, width=_WIDTH, height=_HEIGHT))
    parts.append(element("text", plot.across, class_="plot-middle", x=left + _WIDTH / 2, y=bottom + 38))
    side, middle = left - 46, top + _HEIGHT / 2
    turned = f"rotate(-90 {side:g} {middle:g})"
    parts.append(element("text", plot.upwards, class_="plot-middle", x=side, y=middle, transform=turned))
    for row, line in enumerate(plot.lines):
        colour, below = colours[line.name], bottom + _BELOW + row * _ROW
        places = [place(x, y) for x, y in line.points]
        parts.append(element("polyline", stroke=colour, points=" ".join(f"{x:.2f},{y:.2f}" for x, y in places)))
        for (x, y), (across, value) in zip(places, line.points):
            note = f"{line.name}, {across:g}: {value:.3g}"
            parts.append(element("circle", note=note, cx=x, cy=y, r=3, fill=colour))
        parts.append(element("rect", x=left, y=below, width=18, height=4, fill=colour))
        parts.append(element("text", line.name, x=left + 26, y=below + 7))
    return parts
