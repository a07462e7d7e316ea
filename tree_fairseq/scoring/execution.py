"""Execution accuracy of SQL: whether a query returns what the reference returns from the same SQLite database.

Rows are compared as a multiset, or as a list if the reference has an ORDER BY of its own, outside of subqueries. The
columns must be in the same order; their names do not matter. The queries of a model are not trusted: they run in a
child process (:mod:`tree_fairseq.scoring.query_sandbox`).
"""

from __future__ import annotations

import json
import logging
import re
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring import query_sandbox
from tree_fairseq.source_code.sql import Sql, with_line_breaks
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.notations import Notation
from tree_fairseq.trees.text import read_lines

logger = logging.getLogger(__name__)

SECONDS, MEGABYTES, ROWS = 5, 256, 100_000  # the limits of a query
_GRACE = 3  # seconds after which a child that does not stop by itself is killed
_START = 60  # seconds to copy a database
_STUCK, _ENDED = f"more than {SECONDS} seconds", "the process ended"

_STRINGS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_PARENTHESES = re.compile(r"\([^()]*\)")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")
_ORDER = re.compile(r"\border\s+by\b", re.IGNORECASE)


class Answer(NamedTuple):
    """The result of a query: the number of its rows and their digests, or an error; and the rows that are shown."""

    rows: int = 0
    ordered: str = ""
    unordered: str = ""
    error: str = ""
    columns: Sequence[str] = ()
    shown: Sequence[Sequence[str]] = ()


class Database:
    """A SQLite file whose queries run in a child process; each query runs once. Answers have the first ``shown`` rows.

    Raises ScoringError if the file is missing or not a database.
    """

    def __init__(self, path: Path, shown: int = 0):
        self.path, self._shown = path, shown
        self._answers: dict[str, Answer] = {}
        if not path.is_file():
            raise ScoringError(f"{path} is missing: --database takes a SQLite file")
        self._child: subprocess.Popen | None = None
        self._start()

    def answer(self, query: str) -> Answer:
        """Runs a query within its limits."""
        if query not in self._answers:
            self._answers[query] = self._ask(self._child or self._start(), query)
        return self._answers[query]

    def close(self) -> None:
        """Ends the child process; the next query starts another one."""
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None

    def _ask(self, child: subprocess.Popen, query: str) -> Answer:
        assert child.stdin is not None
        try:
            child.stdin.write(json.dumps(query) + "\n")
            child.stdin.flush()
            found = _read(child, SECONDS + _GRACE)
        except BrokenPipeError:
            found = {"error": _ENDED}
        if found.get("error") in (_ENDED, _STUCK, query_sandbox.OUT_OF_MEMORY):
            self.close()
        return Answer(**found)

    def _start(self) -> subprocess.Popen:
        limits = map(str, (SECONDS, MEGABYTES, ROWS, self._shown))
        command = [sys.executable, "-I", query_sandbox.__file__, str(self.path.resolve()), *limits]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._child = child = subprocess.Popen(command, env={}, cwd="/", text=True, encoding="utf-8", **pipes)
        first = _read(child, _START)
        if "error" in first:
            self.close()
            raise ScoringError(f"{self.path} cannot be read as a SQLite database: {first['error']}")
        return child


def _read(child: subprocess.Popen, seconds: int) -> dict[str, Any]:
    """The next line of a child, which may be too late or never come."""
    assert child.stdout is not None
    if not select.select([child.stdout], [], [], seconds)[0]:
        return {"error": _STUCK}
    line = child.stdout.readline()
    return json.loads(line) if line else {"error": _ENDED}


def is_ordered(query: str) -> bool:
    """Whether the rows of a query have an order: an ORDER BY that is in no brackets."""
    text, brackets = _STRINGS.sub("''", query), 1
    while brackets:
        text, brackets = _PARENTHESES.subn(" ", text)
    return _ORDER.search(text) is not None


def filled(query: str, values: Mapping[str, str]) -> str:
    """Puts values in the places of parameters, such as ``:year0``, and of names that stand for them in some corpora."""
    if not values:
        return query
    names = "|".join(map(re.escape, sorted(values, key=len, reverse=True)))

    def value(found: re.Match) -> str:
        part, quote = found[0], found[0][0]
        if quote in "'\"":
            return re.sub(rf"\b(?:{names})\b", lambda name: values[name[0]].replace(quote, 2 * quote), part)
        text = values.get(part.removeprefix(":"), part)  # a comment stays
        if quote != ":" or _NUMBER.fullmatch(text):
            return text
        return "'" + text.replace("'", "''") + "'"

    return re.sub(rf"{_STRINGS.pattern}|:?\b(?:{names})\b", value, query, flags=re.DOTALL)


def read_values(path: Path, count: int) -> list[dict[str, str]]:
    """Reads the values of each question, a JSON object a line; without the file there are none.

    Raises ScoringError for another number of lines and for a line that is not an object of texts.
    """
    if not path.is_file():
        return [{}] * count
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            rows.append({str(name): str(value) for name, value in json.loads(line).items()})
        except (ValueError, AttributeError):
            raise ScoringError(f"{path}:{number}: not a JSON object, such as {{'city_name0': 'austin'}}") from None
    if len(rows) != count:
        raise ScoringError(f"{path} has {len(rows)} lines, the references are {count}")
    return rows


class Execution:
    """The references of a test set on a database.

    A name that stands for a value, such as ``city_name0``, is replaced before a query runs: the file beside the
    references (``path``) that ends in ``.variables`` has a JSON object of names and values for each line. SQLite runs
    the translation of queries in another dialect.
    """

    def __init__(self, database: Path, references: Sequence[str], path: Path, notation: Notation | None = None):
        self._translated = notation.translated if isinstance(notation, Sql) else str
        self._with_line_breaks = notation.with_line_breaks if isinstance(notation, Sql) else with_line_breaks
        self._values = read_values(path.with_suffix(".variables"), len(references))
        self._database, self._references = Database(database), list(map(self._with_line_breaks, references))
        self.answers = self._run(references)
        self.failed = [number for number, answer in enumerate(self.answers) if answer.error]
        self.empty = sum(not answer.rows and not answer.error for answer in self.answers)
        if self.failed:
            first = self.failed[0]
            message = "%s: %d of %d references do not run, and no output is right there; the first is %d: %s"
            logger.warning(message, database, len(self.failed), len(references), first + 1, self.answers[first].error)

    def outcomes(self, outputs: Sequence[str]) -> dict[str, list[bool]]:
        """``execution``: the query returns what the reference returns; ``runs``: it returns rows, or none, at all."""
        answers, right = self._run(outputs), []
        for query, wanted, found in zip(self._references, self.answers, answers):
            same = found.ordered == wanted.ordered if is_ordered(query) else found.unordered == wanted.unordered
            right.append(same and not wanted.error and not found.error)
        return {"execution": right, "runs": [not answer.error for answer in answers]}

    def _run(self, queries: Sequence[str]) -> list[Answer]:
        try:
            pairs = zip_equal(map(self._with_line_breaks, queries), self._values)
            return [self._database.answer(self._translated(filled(*pair))) for pair in pairs]
        finally:
            self._database.close()
