"""What a benchmark hands back, as text: tables, the figures beside their goals, one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Figure:
    """One measured number.

    Attributes:
        name: its key in the line of JSON
        value: as measured
        goal: what it should be at least, or at most
        at_most: the goal is an upper bound
    """

    name: str
    value: float
    goal: float
    at_most: bool = False

    @property
    def met(self) -> bool:
        """Whether the goal is reached."""
        return self.value <= self.goal if self.at_most else self.value >= self.goal


@dataclass
class Report:
    """The outcome of one benchmark.

    Attributes:
        benchmark: its name
        setting: one line on sizes and on what was compared
        figures: in the order of the line of JSON
        tables: rows of cells, the first row the heading
        notes: lines below the tables
    """

    benchmark: str
    setting: str
    figures: list[Figure]
    tables: list[Sequence[Sequence[str]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Tables for people and, as the last line, the figures for programs."""
        goals = [("figure", "measured", "goal", "")]
        for figure in self.figures:
            bound = "at most" if figure.at_most else "at least"
            verdict = "met" if figure.met else "missed"
            goals.append((figure.name, f"{figure.value:.3g}", f"{bound} {figure.goal:g}", verdict))
        parts = [f"{self.benchmark}: {self.setting}"]
        parts += [aligned(table) for table in [*self.tables, goals]]
        parts += self.notes
        line = {"benchmark": self.benchmark, **{figure.name: round(figure.value, 4) for figure in self.figures}}
        return "\n\n".join(parts) + "\n\n" + json.dumps(line)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells in columns: the first column to the left, the others to the right."""
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
    """Seconds as a cell of a table."""
    return f"{1e3 * seconds:.1f}"


def megabytes(count: float) -> str:
    """Bytes as a cell of a table."""
    return f"{count / 1e6:.1f}"
