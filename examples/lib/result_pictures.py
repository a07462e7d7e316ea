"""Pictures of the files of ``examples/results``: the differences of all, and the panels that one file asks for.

A file asks for a panel by an entry: ``curve``, the learning curve; ``parts`` and ``depths``, the metric by parts of the
test set; ``against``, one metric over another; ``sweep``, the metric by a number in which systems differ. All pictures
need matplotlib.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from tree_fairseq.drawing.figure_files import COLOURS, as_written, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIGNIFICANT = 0.05
_WIDTH, _HEIGHT, _LEGEND_ROW = 4.8, 3.4, 0.22  # of a panel, in inches
_LINE, _LABEL = 0.16, 7.5  # of a difference: inches from line to line, and points of its name
_LINEAR = 2  # differences up to this one have a linear scale


def is_drawn(result: dict) -> bool:
    """Whether a file has a picture of its own."""
    return "measured" in result and any(panel in result for panel in _DRAWN)


def draw_differences(rows: Sequence[tuple[str, str, dict]]) -> Figure:
    """Draws differences as points with their 95 % intervals, one line each, grey if they are not significant.

    Rows are the task, whose name stands once above its rows, who is compared, and the figures.
    """
    lines: list[tuple[str, dict | None]] = []
    for task, compared in groupby(rows, key=lambda row: row[0]):
        lines += [(task, None), *((name, row) for _, name, row in compared)]
    figure = new_figure(9.0, 1.0 + _LINE * len(lines))
    axes = figure.add_subplot()
    for place, (_, row) in enumerate(lines):
        if row is None:
            continue
        (low, high), colour = row["interval"], COLOURS[0] if row["p_value"] < SIGNIFICANT else COLOURS[-1]
        axes.plot([low, high], [place, place], color=colour)
        axes.plot([row["difference"]], [place], "o", color=colour, markersize=4)
    axes.axvline(0, color="#52606d", linewidth=1)
    axes.set_yticks(range(len(lines)), [name for name, _ in lines], fontsize=_LABEL)
    for label in (label for label, (_, row) in zip(axes.get_yticklabels(), lines) if row is None):
        label.set_fontweight("bold")
    axes.set_ylim(len(lines) - 0.5, -0.5)
    # Some differences are below 1, others above 50
    axes.set_xscale("symlog", linthresh=_LINEAR, subs=[2, 5])
    low, high = axes.get_xlim()
    shown = [mark for mark in (-50, -20, -5, -2, -1, 0, 1, 2, 5, 20, 50) if low < mark < high]
    axes.set_xticks(shown, [f"{mark:+d}" if mark else "0" for mark in shown])
    axes.set_xticks([], minor=True)
    _finish(axes, f"difference of the means, 95 % interval\n(logarithmic beyond ±{_LINEAR})", None)
    return figure


def draw_result(result: dict) -> Figure:
    """Draws the panels that a file asks for; a system has the same colour in all of them."""
    systems = result["measured"]["systems"]
    chosen = [(name, draw) for name, draw in _DRAWN.items() if name in result]
    columns = max(1, 2 * len(chosen) - 1)
    names = list(result["sweep"]["lines"]) if "sweep" in result else list(systems)
    colours = {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(names)}
    figure = new_figure(_WIDTH * len(chosen), _HEIGHT + _LEGEND_ROW * -(-len(names) // columns))
    for place, (_, draw) in enumerate(chosen, start=1):
        draw(figure.add_subplot(1, len(chosen), place), result, colours)
    lines = {line.get_label(): line for axes in reversed(figure.axes) for line in axes.get_lines()}
    handles = [lines[name] for name in names if name in lines]
    legend = figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)
    as_written(legend.get_texts())
    return figure


def _draw_curve(axes: Axes, result: dict, colours: dict[str, str]) -> None:
    """A metric of the validation set by updates: the mean over the seeds, as far as all of them were trained.

    Seeds may be validated at other updates: an epoch of one has a batch more than that of another.
    """
    for system, colour in colours.items():
        curves = [np.array(curve).T for curve in result["measured"]["systems"][system].get("curve", ())]
        if not curves:  # the system reads models of others
            continue
        first, last = max(own[0] for own, _ in curves), min(own[-1] for own, _ in curves)
        updates = [update for update in curves[0][0] if first <= update <= last]
        means = np.mean([np.interp(updates, own, values) for own, values in curves], axis=0)
        axes.plot(updates, means, color=colour, label=system)
    _finish(axes, "updates", result["curve"]["title"])


def _draw_parts(axes: Axes, result: dict, colours: dict[str, str], entry: str = "parts") -> None:
    """The metric by parts of the test set, as means over the seeds."""
    for system, colour in colours.items():
        runs = result["measured"]["systems"][system].get(entry)
        if not runs:  # over trees whose depth says nothing
            continue
        names = list(runs[0])
        means = [statistics.fmean(run[name] for run in runs) for name in names]
        axes.plot(range(len(names)), means, "o-", markersize=4, color=colour, label=system)
        # A part of one length alone is 7, not 7-7
        axes.set_xticks(range(len(names)), [re.sub(r"^(\d+)-\1 ", r"\1 ", name).replace(" ", "\n") for name in names])
    _finish(axes, result[entry]["title"], next(iter(result["metrics"].values())))


def _draw_against(axes: Axes, result: dict, colours: dict[str, str]) -> None:
    """One metric over another, a point for each seed."""
    across, upwards = result["against"]
    for system, colour in colours.items():
        found = result["measured"]["systems"][system]["metrics"]
        axes.plot(found[across], found[upwards], "o", markersize=6, alpha=0.8, color=colour, label=system)
    axes.set_xlim(left=0)
    _finish(axes, result["metrics"][across], result["metrics"][upwards])


def _draw_sweep(axes: Axes, result: dict, colours: dict[str, str]) -> None:
    """The first metric by a number in which systems differ: a line through the means over the seeds, a point a seed."""
    systems, metric = result["measured"]["systems"], next(iter(result["metrics"]))
    values = sorted({float(value) for line in result["sweep"]["lines"].values() for value in line})
    places = {value: place for place, value in enumerate(values)}  # equal steps: sizes often grow by factors
    for name, line in result["sweep"]["lines"].items():
        found = {places[float(value)]: systems[line[value]]["metrics"][metric] for value in sorted(line, key=float)}
        means = [statistics.fmean(seeds) for seeds in found.values()]
        axes.plot(list(found), means, "-", color=colours[name], label=name)
        for place, seeds in found.items():
            axes.plot([place] * len(seeds), seeds, "o", markersize=4, alpha=0.6, color=colours[name])
    axes.set_xticks(range(len(values)), [f"{value:,g}" for value in values])
    _finish(axes, result["sweep"]["title"], next(iter(result["metrics"].values())))


_DRAWN = {
    "curve": _draw_curve,
    "parts": _draw_parts,
    "depths": partial(_draw_parts, entry="depths"),
    "against": _draw_against,
    "sweep": _draw_sweep,
}


def _finish(axes: Axes, across: str, upwards: str | None) -> None:
    axes.grid(axis="both" if upwards else "x", color="#e4e7eb")
    axes.set_axisbelow(True)
    labels = [axes.set_xlabel(across), *([axes.set_ylabel(upwards)] if upwards else axes.get_yticklabels())]
    as_written(labels)
