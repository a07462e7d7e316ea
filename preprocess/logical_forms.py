"""Shared parts of the readers of semantic parsing data: examples, files of columns, held-out sets, aligned output.

A reader returns the examples of each split. Its output folder contains ``{split}.{language}`` for both sides, one
example on each line. If the examples of a test set belong to groups, ``{split}.groups`` has the names of the groups of
each example, for the scorer.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from preprocess.corpora import CorpusError, Pair, clean_line, raw_lines, sample, write_columns, write_lines
from tree_fairseq.errors import InputError
from tree_fairseq.trees.notations import Notation

logger = logging.getLogger(__name__)


class Example(NamedTuple):
    """An utterance (or a tree), its logical form, and the groups that it belongs to."""

    source: str
    target: str
    groups: tuple[str, ...] = ()

    @property
    def pair(self) -> Pair:
        """Both sides."""
        return self.source, self.target


Splits = dict[str, list[Example]]


def read_columns(path: Path, names: Sequence[str]) -> Iterator[list[str]]:
    """Yields the columns of a tab-separated file, with single blanks for white space within them."""
    for number, line in enumerate(raw_lines(path), 1):
        columns = [clean_line(column) for column in line.split("\t")]
        if len(columns) != len(names):
            raise CorpusError(
                f"{path}:{number}: {len(columns) - 1} tabs where {len(names) - 1} are expected: "
                f"a line is {'<TAB>'.join(names)}"
            )
        for name, column in zip(names, columns):
            if not column:
                raise CorpusError(f"{path}:{number}: the {name} is empty")
        yield columns


def check_tree(text: str, notation: Notation, path: Path, number: int) -> str:
    """Returns the text unchanged. Raises CorpusError, naming file and line, if it is not a tree."""
    try:
        notation.read(text, path=path, line_number=number)
    except InputError as error:
        raise CorpusError(str(error)) from error
    return text


def hold_out(train: Sequence[Example], size: int, seed: int, keep: bool = False) -> tuple[list[Example], list[Example]]:
    """Draws ``size`` validation examples; returns the training examples and the drawn ones, both in order.

    Args:
        keep: whether the drawn examples stay in training, too, for a final run with a fixed number of updates
    """
    if not 0 < size < len(train):
        raise CorpusError(f"{size} examples cannot be held out of {len(train)}")
    drawn = set(random.Random(seed).sample(range(len(train)), size))
    valid = [example for index, example in enumerate(train) if index in drawn]
    rest = list(train) if keep else [example for index, example in enumerate(train) if index not in drawn]
    kept = ", and stay in training" if keep else ""
    logger.info("%d of %d training examples are held out for validation%s", size, len(train), kept)
    return rest, valid


def report_duplicates(splits: Splits) -> None:
    """Logs the size of each split, and how many examples occur more than once or in train, too."""
    train = {example.pair for example in splits["train"]}
    for split, examples in splits.items():
        if split == "train":
            logger.info("train: %d examples, %d of them distinct", len(examples), len(train))
        else:
            seen = sum(example.pair in train for example in examples)
            logger.info("%s: %d examples, %d of them occur in train", split, len(examples), seen)


def shorten(splits: Splits, subset: int | None, limit: int | None, seed: int = 1) -> Splits:
    """Samples ``subset`` training examples and keeps the first ``limit`` of every split; None keeps all."""
    if subset is not None:
        splits = {**splits, "train": sample(splits["train"], subset, seed)}
    return {split: examples[:limit] for split, examples in splits.items()}


def write_splits(splits: Splits, output: Path, languages: Pair) -> dict[str, int]:
    """Writes all splits; returns the number of examples of each."""
    for split, examples in splits.items():
        if not examples:
            raise CorpusError(f"{split} is empty")
    counts = {}
    for split, examples in splits.items():
        counts[split] = write_columns(output / split, languages, (example.pair for example in examples))
        if any(example.groups for example in examples):
            write_lines(output / f"{split}.groups", (" ".join(example.groups) for example in examples))
    return counts
