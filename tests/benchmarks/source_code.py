"""Times the way from a text to its tree for programs of all languages, and for SQL sqlglot's own way.

A text is read, written and read again, because its tree is that of what is written.
"""

from __future__ import annotations

import sqlglot

from tests.benchmarks.figures import Figure, time_ratio
from tests.benchmarks.measuring import Settings, side_by_side
from tests.benchmarks.reporting import TIME_HEADINGS, Report, time_cells
from tests.source_code.programs import PROGRAMS, lines_of
from tree_fairseq.source_code.registry import registered_languages
from tree_fairseq.trees.notations import notation_named

REPEATS = 50
MOST = {"python": 0.1, "sql": 1, "java": 1, "csharp": 1, "javascript": 1}
"""Milliseconds a line: ten thousand lines a second of Python, and a thousand of the others."""


def with_sqlglot(line: str) -> None:
    """Reads a query, writes it and reads it again, as the notation does."""
    sqlglot.parse_one(sqlglot.parse_one(line).sql(comments=False, normalize_functions=False))


def run(settings: Settings) -> Report:
    lines = {name: lines_of(name) for name in PROGRAMS}
    readers = {name: notation_named(name).read for name in lines if name in registered_languages()}
    texts = {**lines, "sqlglot": lines["sql"]}

    def read(name: str) -> None:
        for _ in range(settings.choose(REPEATS, 1)):
            for line in texts[name]:
                readers[name](line)

    readers["sqlglot"] = with_sqlglot
    timing = side_by_side({name: lambda name=name: read(name) for name in readers}, settings.choose(7, 1))
    timing = {name: taken.per(settings.choose(REPEATS, 1) * len(texts[name])) for name, taken in timing.items()}
    rows = [("a line", *TIME_HEADINGS), *((name, *time_cells(taken)) for name, taken in timing.items())]
    milliseconds = {name: 1000 * timing[name].processor_median for name in MOST}
    return Report(
        "source_code",
        ", ".join(f"{len(texts[name])} of {name}" for name in readers if name != "sqlglot") + ": lines of programs",
        [
            *(
                Figure(name, milliseconds[name], most, True, f"reading a program of {name}, milliseconds a line")
                for name, most in MOST.items()
            ),
            time_ratio(
                "sqlglot",
                timing["sql"],
                timing["sqlglot"],
                0.5,
                what="reading a query, times as fast as sqlglot reads, writes and reads it again",
                processor=True,
            ),
        ],
        [rows],
        [],
    )
