"""Figures of benchmarks: one measured number each, with its goal, its two sides and its spread; tables of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tests.benchmarks.measuring import Timing


@dataclass(frozen=True)
class Figure:
    """One measured number, in most cases the ratio of two sides of one run."""

    name: str  # key in the line of JSON
    value: float
    goal: float | None  # lower bound of the value, or upper bound with ``at_most``; None if there is no goal
    at_most: bool = False
    what: str = ""  # a few words on what the number compares
    ours: str = ""  # what the package takes, with its unit
    peer: str = ""  # what the other side takes, with its unit
    spread: tuple[float, float] | None = None  # the smallest and the largest value of all repeats

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without a goal."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.at_most else self.value >= self.goal

    @property
    def ratio_cell(self) -> str:
        """The value, and its spread if there is one; empty if the number is not compared with anything."""
        if self.goal is None and self.ours and not self.peer:
            return ""
        spread = "" if self.spread is None else f" ({self.spread[0]:.3g} to {self.spread[1]:.3g})"
        return f"{self.value:.3g}{spread}"

    @property
    def goal_cell(self) -> str:
        """The goal and its direction."""
        return "" if self.goal is None else f"{'at most' if self.at_most else 'at least'} {self.goal:g}"

    @property
    def met_cell(self) -> str:
        return {None: "", True: "met", False: "missed"}[self.met]

    def record(self) -> dict:
        return {
            "figure": self.name,
            "what": self.what,
            "ours": self.ours,
            "peer": self.peer,
            # JSON has no word for infinity.
            "ratio": round(self.value, 7) if math.isfinite(self.value) else str(self.value),
            "spread": None if self.spread is None else [round(value, 4) for value in self.spread],
            "goal": self.goal,
            "at_most": self.at_most,
            "met": self.met,
        }

    @classmethod
    def of_record(cls, record: dict) -> Figure:
        spread = None if record["spread"] is None else tuple(record["spread"])
        names = ("goal", "at_most", "what", "ours", "peer")
        return cls(record["figure"], float(record["ratio"]), **{name: record[name] for name in names}, spread=spread)


def time_ratio(
    name: str,
    ours: Timing,
    peer: Timing,
    goal: float | None,
    at_most: bool = False,
    what: str = "",
    processor: bool = False,
) -> Figure:
    """Compares the times of two candidates that ran side by side, round by round.

    The value is the ratio of the medians: how many times as long ours takes if the goal is an upper bound, how many
    times as fast it is if the goal is a lower bound. The spread is that of the ratios of the rounds.
    """
    own, other = (timing.processor_seconds if processor else timing.seconds for timing in (ours, peer))
    above, below = (own, other) if at_most else (other, own)
    # Candidates that were not timed in the same rounds have no pairs.
    rounds = [a / b for a, b in zip(above, below) if b > 0] if len(above) == len(below) else []
    return Figure(
        name,
        statistics.median(above) / statistics.median(below),
        goal,
        at_most,
        what,
        f"{1e3 * statistics.median(own):.4g} ms",
        f"{1e3 * statistics.median(other):.4g} ms",
        (min(rounds), max(rounds)) if len(rounds) > 1 else None,
    )


def byte_ratio(
    name: str, ours: float, peer: float, goal: float | None, at_most: bool = False, what: str = ""
) -> Figure:
    """Compares the bytes of two candidates: ours over the other's if the goal is an upper bound, otherwise inverted."""
    value = ours / peer if at_most else peer / ours
    return Figure(name, value, goal, at_most, what, *(f"{count / 1e6:.4g} MB" for count in (ours, peer)))


HEADING = ("benchmark", "ours", "stock or peer", "ratio", "goal", "met?")


def figure_rows(figures: Sequence[tuple[str, Figure]]) -> list[tuple[str, ...]]:
    """Makes a table of figures, each with the name of its benchmark; the first row is the heading."""
    rows = [HEADING]
    for benchmark, figure in figures:
        named = f"{benchmark}: {figure.what or figure.name}"
        rows.append((named, figure.ours, figure.peer, figure.ratio_cell, figure.goal_cell, figure.met_cell))
    return rows


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Writes a table in Markdown; the cell of a goal that is missed is bold."""
    heading, *others = rows
    lines = [heading, ["---"] * len(heading)]
    lines += [[f"**{cell}**" if cell == "missed" else cell.replace("|", "/") for cell in row] for row in others]
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)
