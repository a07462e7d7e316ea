"""Reports of benchmarks as text: tables, figures with their goals, one line of JSON; and pictures."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from examples.lib.figure_files import write_figure
from examples.lib.plots import Line, Plot, draw_plots
from tests.benchmarks.figures import Figure
from tests.benchmarks.measuring import Timing


@dataclass
class Report:
    benchmark: str  # name
    setting: str  # one line on the sizes and the candidates
    figures: list[Figure]  # in the order of the line of JSON
    tables: list[Sequence[Sequence[str]]] = field(default_factory=list)  # rows of cells; the first row is the heading
    notes: list[str] = field(default_factory=list)  # lines below the tables

    def text(self) -> str:
        """Returns the tables for people and, as the last line, the figures for programs."""
        goals = [("figure", "measured", "goal", "")]
        goals += [(figure.name, figure.ratio_cell, figure.goal_cell, figure.met_cell) for figure in self.figures]
        parts = [f"{self.benchmark}: {self.setting}"]
        parts += [aligned(table) for table in [*self.tables, goals]]
        parts += self.notes
        line = {"benchmark": self.benchmark, **{figure.name: round(figure.value, 4) for figure in self.figures}}
        return "\n\n".join(parts) + "\n\n" + json.dumps(line)

    def record(self) -> dict:
        figures = [figure.record() for figure in self.figures]
        return {"benchmark": self.benchmark, "setting": self.setting, "figures": figures}


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Formats rows of cells in columns: the first is aligned to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        first, *others = (
            cell.rjust(width) if k else cell.ljust(width) for k, (cell, width) in enumerate(zip(row, widths))
        )
        lines.append("  ".join([first, *others]).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.1f}"


def megabytes(count: float) -> str:
    return f"{count / 1e6:.1f}"


TIME_HEADINGS = ("ms", "fastest to slowest", "processor ms")


def time_cells(timing: Timing) -> tuple[str, str, str]:
    """Formats the time of a candidate for the columns of :data:`TIME_HEADINGS`."""
    return milliseconds(timing.median), timing.spread, milliseconds(timing.processor_median)


PEAK_NOTE = (
    "Peak MB: the most memory that torch's CPU allocator had in use at once, minus the memory in use before the call; "
    "temporaries included. Measured with torch's profiler.\n"
)


def memory_note(kept: bool) -> str:
    if kept:
        return "The C library kept freed memory; by default it returns large blocks to the system."
    return "The C library returned freed memory to the system, which slows large tensors down."


def size_table(
    title: str, sizes: Sequence[int], measured: Mapping[str, Mapping[int, float]], shown: Callable[[float], str]
) -> list[tuple[str, ...]]:
    rows = [(title, *measured)]
    cells = [[shown(values[size]) if size in values else "not run" for values in measured.values()] for size in sizes]
    return rows + [(str(size), *row) for size, row in zip(sizes, cells)]


def size_plot(title: str, axis: str, unit: str, measured: Mapping[str, Mapping[int, float]], scale: float) -> Plot:
    """Plots the measurements of such a table, multiplied by ``scale``, with a line for each name."""
    lines = [Line(name, [(size, scale * value) for size, value in values.items()]) for name, values in measured.items()]
    return Plot(title, axis, unit, lines)


def write_picture(folder: Path, name: str, plots: Sequence[Plot]) -> Path:
    """Writes plots to one SVG file, and beside it as PNG, and returns the path of the SVG file."""
    folder.mkdir(parents=True, exist_ok=True)
    return write_figure(draw_plots(plots), (folder / name).with_suffix(""))[0]
