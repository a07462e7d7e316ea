"""Gigaword headlines (Graff et al. 2003; Rush et al. 2015): the first sentence of an article, and its title.

Reads the files of https://github.com/harvardnlp/sent-summary in their folders: the articles and titles of ``train``
and of ``valid.*.filter``, gzipped or not, and the 1,951 lines of the test set in ``Giga``. Samples are distributed
without the test set. Then the validation lines become the test set, and the validation set is drawn from the training
lines.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

from preprocess.corpora import Corpus, CorpusError, Pair, PrepareOptions, clean_line, parallel, read_lines

SIDES = ("article", "title")
DRAWN = 500
"""Number of training pairs that become the validation set if the test set is missing, at most a tenth of all."""


def load(data: Path, languages: Pair, options: PrepareOptions) -> Corpus:
    """Reads the splits of the folder."""
    train = _filled(_pairs(_sides(data, "train.{}.txt")))
    valid = _filled(_pairs(_sides(data, "valid.{}.filter.txt")))
    test = [_found(data, name) for name in ("input.txt", "task1_ref0.txt")]
    if all(test):
        return Corpus({"train": train, "valid": valid, "test": _pairs(test)}, {})
    pairs = list(train)
    drawn = set(random.Random(1).sample(range(len(pairs)), min(DRAWN, len(pairs) // 10)))
    splits = {
        "train": [pair for index, pair in enumerate(pairs) if index not in drawn],
        "valid": [pairs[index] for index in sorted(drawn)],
        "test": valid,
    }
    return Corpus(splits, {})


def _found(data: Path, name: str) -> Path | None:
    """Returns the first file of that name, gzipped or not, in the folder or below it."""
    paths = sorted(path for pattern in (name, f"{name}.gz") for path in data.rglob(pattern) if path.is_file())
    return paths[0] if paths else None


def _sides(data: Path, name: str) -> list[Path]:
    paths = [_found(data, name.format(side)) for side in SIDES]
    for side, path in zip(SIDES, paths):
        if path is None:
            raise CorpusError(
                f"{data} has no {name.format(side)}: --data takes the files of "
                "https://github.com/harvardnlp/sent-summary"
            )
    return paths


def _lines(path: Path) -> Iterator[str]:
    if path.suffix != ".gz":
        yield from read_lines(path)
        return
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as stream:
            for line in stream:
                yield clean_line(line)
    except (UnicodeDecodeError, EOFError, gzip.BadGzipFile) as error:
        raise CorpusError(f"{path}: not gzipped UTF-8 ({error})") from error


def _pairs(paths: list[Path]) -> Iterator[Pair]:
    return parallel(*map(_lines, paths), names=(str(paths[0]), str(paths[1])))


def _filled(pairs: Iterator[Pair]) -> Iterator[Pair]:
    """Returns the pairs whose sides are both not empty."""
    return (pair for pair in pairs if all(pair))
