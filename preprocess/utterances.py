"""GEO, ATIS and JOBS as Dong and Lapata (2016) prepared them: ``utterance<TAB>logical form``, both tokenised.

A folder has ``train.txt``, ``test.txt`` and, optionally, ``dev.txt``. Without ``dev.txt`` the validation examples are
drawn from training at random, because the files of GEO are sorted by length. ATIS is distributed with ``dev.txt`` and
without ``test.txt``: then ``dev.txt`` is the test set, and the validation examples are drawn from training.
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
    """The notation of a corpus, and the number of validation examples to draw if ``dev.txt`` is missing."""

    notation: str
    valid: int


CORPORA = {"geo": Corpus("bracket", 100), "atis": Corpus("bracket", 400), "jobs": Corpus("prolog", 100)}


def read_examples(path: Path, notation: str) -> list[Example]:
    """Reads the examples of one file.

    Raises CorpusError if a line does not have two columns, a column is empty, or a logical form cannot be read.
    """
    reader = notation_named(notation)
    return [
        Example(utterance, check_tree(form, reader, path, number))
        for number, (utterance, form) in enumerate(read_columns(path, COLUMNS), 1)
    ]


def load(data: Path, notation: str, valid: int, seed: int = 1, keep_valid: bool = False) -> Splits:
    """Reads the splits of a folder.

    Raises CorpusError if a file is missing or malformed.
    """
    paths = {name: data / f"{name}.txt" for name in ("train", "dev", "test")}
    there = {name for name, path in paths.items() if path.is_file()}
    if "train" not in there or not there & {"dev", "test"}:
        missing = paths["train"] if "train" not in there else paths["test"]
        raise CorpusError(
            f"{missing} is missing: --data takes a folder with train.txt, test.txt and, optionally, dev.txt, "
            f"whose lines are {'<TAB>'.join(COLUMNS)}"
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
