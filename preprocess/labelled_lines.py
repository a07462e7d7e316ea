"""Examples with classes: sampling, held-out sets, counts, and the files of ``fairseq-preprocess``.

The files are those of ``--task tree_classification``: ``{split}.tsv`` with ``text<TAB>class`` on each line, or
``{split}.trees`` with a bracketed tree on each line, whose labels are classes. If the examples of a test set belong to
groups, ``{split}.groups`` has the names of the groups of each example, for the scorer.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from preprocess.corpora import CorpusError, clean_line, sample, write_lines

logger = logging.getLogger(__name__)


class Labelled(NamedTuple):
    """A text or a bracketed tree, its class, and the groups that it belongs to."""

    text: str
    name: str
    groups: tuple[str, ...] = ()


Splits = dict[str, list[Labelled]]


def hold_out(
    lines: Sequence[Labelled], size: int, seed: int, by_class: bool = True
) -> tuple[list[Labelled], list[Labelled]]:
    """Draws ``size`` validation lines from the training lines; returns the rest and the drawn lines, both in order.

    Args:
        by_class: whether both parts keep the shares of the classes; False for numbers instead of classes
    """
    from sklearn.model_selection import train_test_split

    try:
        classes = [line.name for line in lines] if by_class else None
        rest, drawn = train_test_split(range(len(lines)), test_size=size, random_state=seed, stratify=classes)
    except ValueError as error:
        raise CorpusError(f"{size} lines cannot be held out of {len(lines)}: {error}") from error
    logger.info("%d of %d training lines are held out for validation", size, len(lines))
    return [lines[index] for index in sorted(rest)], [lines[index] for index in sorted(drawn)]


def shorten(splits: Splits, limit: int | None, seed: int) -> Splits:
    """Samples ``limit`` lines of every split; None keeps all. Lines stay in order."""
    return splits if limit is None else {split: sample(lines, limit, seed) for split, lines in splits.items()}


def report(splits: Splits) -> None:
    """Logs the sizes of the classes of each split, and how many texts occur in train, too."""
    train = {line.text for line in splits["train"]}
    for split, lines in splits.items():
        counts = Counter(line.name for line in lines)
        classes = ", ".join(f"{name} {counts[name]}" for name in sorted(counts))
        seen = "" if split == "train" else f"; {sum(line.text in train for line in lines)} texts occur in train"
        logger.info("%s: %d lines (%s)%s", split, len(lines), classes, seen)


def write_splits(splits: Splits, output: Path, suffix: str) -> dict[str, int]:
    """Writes all splits; returns the number of examples of each.

    Args:
        suffix: ``tsv``, or ``trees`` if the texts are trees that contain their classes
    """
    for split, lines in splits.items():
        if not lines:
            raise CorpusError(f"{split} is empty")
        for number, line in enumerate(lines, 1):
            if not clean_line(line.text):
                raise CorpusError(f"{split}: example {number} has no text")
    counts = {}
    for split, lines in splits.items():
        rows = (line.text if suffix == "trees" else f"{clean_line(line.text)}\t{line.name}" for line in lines)
        counts[split] = write_lines(output / f"{split}.{suffix}", rows)
        if any(line.groups for line in lines):
            write_lines(output / f"{split}.groups", (" ".join(line.groups) for line in lines))
    return counts
