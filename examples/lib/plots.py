"""Plots of lines with a legend, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from examples.lib.figure_files import COLOURS, as_written, new_figure, shortened
from tree_fairseq.support.python_versions import import_library

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Sizes in inches.
_WIDTH, _HEIGHT = 4.6, 3.6  # a plot with its axes
_LEGEND_ROW = 0.22
_LEGEND_LINE, _LETTER = 0.6, 0.085  # an entry of the legend has a line and letters
_NAME = 48  # longer names are cut in the legend
_PLOTS_IN_A_ROW = 3
_MOST_TICKS = 10  # up to this number, every value on the horizontal axis has a label
_MARKERS_UP_TO = 30  # lines of more points have no markers


@dataclass(frozen=True)
class Line:
    """A line through points; on a logarithmic axis their values are greater than 0.

    Lines of one ``group`` have the same colour; without it, lines of one name have.
    """

    name: str
    points: Sequence[tuple[float, float]]
    is_dashed: bool = False
    group: str = ""

    @property
    def colour_key(self) -> str:
        """The name that decides the colour."""
        return self.group or self.name


@dataclass(frozen=True)
class Plot:
    """Lines over the same axes; the names of the axes contain their units."""

    title: str
    across: str  # the name of the horizontal axis
    upwards: str  # the name of the vertical axis
    lines: Sequence[Line]
    logarithmic: bool = True  # whether the vertical axis is


def draw_plots(plots: Sequence[Plot]) -> Figure:
    """Draws plots side by side, at most three in a row, with one legend; a name has the same colour in all of them.

    Raises ValueError if there is no point to draw, and MissingLibraryError without matplotlib.
    """
    if not any(line.points for plot in plots for line in plot.lines):
        raise ValueError("there is nothing to plot: no line has a point")
    names = list(dict.fromkeys(line.name for plot in plots for line in plot.lines))
    keys = dict.fromkeys(line.colour_key for plot in plots for line in plot.lines)
    colours = {key: COLOURS[k % len(COLOURS)] for k, key in enumerate(keys)}
    columns = 2 if len(plots) == 4 else min(len(plots), _PLOTS_IN_A_ROW)
    rows = -(-len(plots) // columns)
    entry = _LEGEND_LINE + _LETTER * max(len(shortened(name, _NAME)) for name in names)
    legend_columns = min(max(1, int(columns * _WIDTH / entry)), len(names))
    legend_rows = -(-len(names) // legend_columns)
    figure = new_figure(columns * _WIDTH, rows * _HEIGHT + legend_rows * _LEGEND_ROW)
    for place, plot in enumerate(plots, start=1):
        _draw(figure.add_subplot(rows, columns, place), plot, colours)
    handles = {line.get_label(): line for axes in figure.axes for line in axes.get_lines()}
    legend = figure.legend(
        handles=[handles[shortened(name, _NAME)] for name in names if shortened(name, _NAME) in handles],
        loc="outside lower center",
        ncols=legend_columns,
        frameon=False,
    )
    as_written(legend.get_texts())
    return figure


def _draw(axes: Any, plot: Plot, colours: dict[str, str]) -> None:
    xs = sorted({x for line in plot.lines for x, _ in line.points})
    for line in plot.lines:
        axes.plot(
            [x for x, _ in line.points],
            [y for _, y in line.points],
            label=shortened(line.name, _NAME),
            color=colours[line.colour_key],
            linestyle="--" if line.is_dashed else "-",
            marker="o" if len(line.points) <= _MARKERS_UP_TO else "",
            markersize=4,
        )
    if plot.logarithmic:
        _scale_logarithmically(axes, [y for line in plot.lines for _, y in line.points])
    if len(xs) <= _MOST_TICKS and not _are_crowded(xs):
        axes.set_xticks(xs, [f"{x:g}" for x in xs])
    axes.grid(color="#e4e7eb")
    axes.set_axisbelow(True)
    as_written(
        [
            axes.set_title(shortened(plot.title, 60), fontsize=11),
            axes.set_xlabel(shortened(plot.across, 60)),
            axes.set_ylabel(shortened(plot.upwards, _NAME)),
        ]
    )


def _are_crowded(values: list[float]) -> bool:
    """Returns whether the labels of two values would touch each other."""
    spread = (values[-1] - values[0]) or 1.0
    widest = max(len(f"{value:g}") for value in values)
    gaps = [(right - left) / spread for left, right in zip(values, values[1:])]
    return min(gaps, default=1.0) < 0.025 * widest + 0.02


def _scale_logarithmically(axes: Any, values: list[float]) -> None:
    """Makes the vertical axis logarithmic, with plain numbers at 1, 2 and 5 times powers of ten."""
    ticker = import_library("matplotlib.ticker", "figures", "a plot")
    axes.set_yscale("log")
    low, high = min(values), max(values)
    # Over many decades, powers of ten are enough.
    steps = (1, 2, 5) if high < 1000 * low else (1,)
    if high < 2 * low:
        axes.set_ylim(low / 1.5, high * 1.5)
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=steps))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, place: f"{value:g}"))
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())
