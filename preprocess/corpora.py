"""Aligned text files of a recipe: reading, filtering, sampling, atomic writing.

A *prepared folder* contains ``{split}.{language}`` with one sentence on each line. Both sides of a split have the same
number of lines. ``raw/`` contains the untokenised target side of a test set if the source publishes it.
"""

from __future__ import annotations

import gzip
import heapq
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tree_fairseq.support.files import atomic_file
from tree_fairseq.support.python_versions import zip_equal

Pair = tuple[str, str]


class CorpusError(ValueError):
    """A corpus does not have the form that its recipe expects. The message names the file and the expected form."""


@dataclass(frozen=True)
class PrepareOptions:
    """``work``: folder for extracted archives. ``workers``: number of processes that tokenise."""

    work: Path
    workers: int = 1


@dataclass(frozen=True)
class Corpus:
    """Aligned splits by name (``train``, ``valid``, ``test``, ``test1``, ...) and untokenised targets of test sets.

    ``beside``: lines of further files by name, for the scorer. A file named after a split has a line for each pair.
    """

    splits: dict[str, Iterable[Pair]]
    references: dict[str, Iterable[str]]
    beside: dict[str, Iterable[str]] = field(default_factory=dict)


def clean_line(line: str) -> str:
    """Replaces every run of white space (tab, NBSP, U+2028, form feed, lone CR, ...) by one blank and strips the ends.

    Downloaded corpora contain such characters inside sentences, and later stages split lines and tokens at some of
    them.
    """
    return " ".join(line.split())


def raw_lines(path: str | Path) -> Iterator[str]:
    """Yields the lines of a UTF-8 file, which may be gzipped, without their ends; lines end at "\\n" only.

    Raises CorpusError if the file is missing, a ``.gz`` file is not gzipped, or a line is not UTF-8.
    """
    path = Path(path)
    if not path.is_file():
        raise CorpusError(f"{path} is missing")
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as stream:
            for number, line in enumerate(stream, 1):
                yield line.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path}:{number}: not UTF-8 ({error.reason})") from error
    except (EOFError, gzip.BadGzipFile) as error:
        raise CorpusError(f"{path}: not gzipped ({error})") from error


def read_lines(path: str | Path) -> Iterator[str]:
    """Yields the lines of :func:`raw_lines`, cleaned."""
    return map(clean_line, raw_lines(path))


def find_file(folder: Path, *names: str) -> Path | None:
    """Returns the first file with one of these names in the folder or below it, or None."""
    for name in names:
        if found := sorted(path for path in folder.rglob(name) if path.is_file()):
            return found[0]
    return None


def read_json_list(path: Path, hint: str = "") -> list[Any]:
    """Returns the programs of a JSON file, which contains a list of them.

    Raises CorpusError if the file is missing, is not JSON, or is not a list.

    Args:
        hint: end of the message if the file is missing
    """
    try:
        elements = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CorpusError(f"{path} is missing{hint}") from None
    except ValueError as error:
        raise CorpusError(f"{path}: not JSON ({error})") from error
    if not isinstance(elements, list):
        raise CorpusError(f"{path}: not a list of programs")
    return elements


def write_lines(path: str | Path, lines: Iterable[str]) -> int:
    """Writes lines to a file, which gets its name when it is complete; returns the number of lines."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with atomic_file(path) as stream:
        for line in lines:
            stream.write(line + "\n")
            count += 1
    return count


def parallel(left: Iterable[str], right: Iterable[str], names: Pair) -> Iterator[Pair]:
    """Yields the pairs of lines of two sides.

    Raises CorpusError, naming the shorter side, if one of them ends first.
    """
    for number, (first, second) in enumerate(zip_longest(left, right), 1):
        if first is None or second is None:
            shorter, longer = names if first is None else reversed(names)
            raise CorpusError(f"{shorter} ends before line {number} of {longer}: the two sides are not parallel")
        yield first, second


def read_pairs(source: str | Path, target: str | Path) -> Iterator[Pair]:
    """Yields the aligned lines of two files. Raises CorpusError if one of them ends first."""
    return parallel(read_lines(source), read_lines(target), (str(source), str(target)))


def write_columns(prefix: str | Path, suffixes: Sequence[str], rows: Iterable[Sequence[str]]) -> int:
    """Writes ``prefix.{suffix}``, a file for each column of the rows; returns the number of rows."""
    Path(prefix).parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with ExitStack() as stack:
        files = [stack.enter_context(atomic_file(Path(f"{prefix}.{suffix}"), sync=False)) for suffix in suffixes]
        for row in rows:
            for file, text in zip_equal(files, row):
                file.write(text + "\n")
            count += 1
    return count


def keep_pair(pair: Pair, minimum: int, maximum: int, ratio: float) -> bool:
    """Returns whether both sides have ``minimum`` to ``maximum`` words and neither is over ``ratio`` times as long.

    This is the rule of ``clean-corpus-n.perl`` of Moses.
    """
    left, right = (len(side.split()) for side in pair)
    if min(left, right) < minimum or max(left, right) > maximum:
        return False
    return max(left, right) <= ratio * min(left, right)


def short_pairs(pairs: Iterable[Pair], up_to: int | None) -> Iterator[Pair]:
    """Yields the pairs whose first side has at most ``up_to`` words, or all pairs if that is None."""
    return (pair for pair in pairs if up_to is None or len(pair[0].split()) <= up_to)


def sample(pairs: Iterable[Pair], size: int, seed: int = 1) -> list[Pair]:
    """Draws ``size`` pairs without replacement and keeps their order; returns all pairs if there are fewer.

    Reads the pairs once and keeps ``size`` of them in memory. Of two samples with one seed, the smaller is a subset of
    the larger.
    """
    generator = random.Random(seed)
    keyed = ((generator.random(), position, pair) for position, pair in enumerate(pairs))
    kept = heapq.nsmallest(size, keyed)
    return [pair for _, _, pair in sorted(kept, key=lambda item: item[1])]
