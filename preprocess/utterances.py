"""GEO, ATIS and JOBS as Dong and Lapata (2016) prepared them: ``utterance<TAB>logical form``, both tokenised.

A folder has ``train.txt``, ``test.txt`` and perhaps ``dev.txt``. Without ``dev.txt`` validation examples are drawn from
training; the files of GEO are sorted by length, so their end would not do. A folder with ``dev.txt`` and no ``test.txt``
(ATIS is passed on like that) is tested on ``dev.txt``, and validated on examples drawn from training.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from preprocess.corpora import CorpusError
from preprocess.logical_forms import Example, Splits, check_tree, hold_out, read_columns
from tree_fairseq.trees.notations import notation_named

logger = logging.getLogger(__name__)

COLUMNS = ("utterance", "logical form")


@dataclass(frozen=True)
class Corpus:
    """How a corpus is written, and how many of its training examples validate where it has no ``dev.txt``."""

    notation: str
    valid: int


CORPORA = {"geo": Corpus("bracket", 100), "atis": Corpus("bracket", 400), "jobs": Corpus("prolog", 100)}


def read_examples(path: Path, notation: str) -> list[Example]:
    """The examples of one file.

    Raises:
        CorpusError: a line has not two columns, an empty one, or a logical form that cannot be read
    """
    reader = notation_named(notation)
    return [
        Example(utterance, check_tree(form, reader, path, number))
        for number, (utterance, form) in enumerate(read_columns(path, COLUMNS), 1)
    ]


def load(data: Path, notation: str, valid: int, seed: int = 1, keep_valid: bool = False) -> Splits:
    """The splits of a folder.

    Args:
        notation: of the logical forms
        valid: size of a validation set that has to be drawn from training
        seed: of that draw
        keep_valid: what is drawn, or stands in ``dev.txt``, is trained on too

    Raises:
        CorpusError: a file is missing or malformed
    """
    paths = {name: data / f"{name}.txt" for name in ("train", "dev", "test")}
    there = {name for name, path in paths.items() if path.is_file()}
    if "train" not in there or not there & {"dev", "test"}:
        missing = paths["train"] if "train" not in there else paths["test"]
        raise CorpusError(
            f"{missing} is missing: --data takes a folder with train.txt, test.txt and perhaps dev.txt, "
            f"{'<TAB>'.join(COLUMNS)} a line"
        )
    read = {name: read_examples(paths[name], notation) for name in sorted(there)}
    train, test = read["train"], read["test"] if "test" in there else read["dev"]
    if there >= {"dev", "test"}:
        validation = read["dev"]
        if keep_valid:
            train = [*train, *validation]
    else:
        if "test" not in there:
            logger.info("%s is missing: dev.txt is the test set", paths["test"])
        train, validation = hold_out(train, valid, seed, keep_valid)
    return {"train": train, "valid": validation, "test": test}
