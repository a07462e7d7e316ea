"""COGS (Kim and Linzen 2020): ``sentence<TAB>logical form<TAB>category``.

Logical forms are the data set's own, with variables (``* cake ( x _ 4 ) ; like . agent ( x _ 1 , Mila ) AND ...``), or the
variable-free ones of Qiu et al. (2022), which are trees: ``paint ( agent = Paula , theme = cake ( nmod . in = closet ) )``.
``test1`` is the generalization set, whose categories are the groups of the scorer, and ``test2`` a sample of it.
"""

from __future__ import annotations

import random
from pathlib import Path

from preprocess.corpora import CorpusError
from preprocess.logical_forms import Example, Splits, check_tree, read_columns
from tree_fairseq.trees.notations import notation_named

FILES = {"train": "train.tsv", "valid": "dev.tsv", "test": "test.tsv", "test1": "gen.tsv"}
COLUMNS = ("sentence", "logical form", "category")
NOTATION = "variable-free"
VARIABLE_FREE, ORIGINAL = TARGETS = (NOTATION, "original")
SUBFOLDER = "variable_free"
"""Where the variable-free forms may lie beside the others."""


def load(data: Path, targets: str = VARIABLE_FREE, sample: int | None = None) -> Splits:
    """The splits of a folder.

    Args:
        targets: which logical forms are wanted, one of ``TARGETS``
        sample: size of ``test2``; None for none at all

    Raises:
        CorpusError: a file is missing or malformed, has the other logical forms, or fewer lines than are to be drawn
    """
    if targets == VARIABLE_FREE and (data / SUBFOLDER).is_dir():
        data = data / SUBFOLDER
    splits = {split: _read(data / name, targets, split.startswith("test")) for split, name in FILES.items()}
    if sample is not None:
        splits["test2"] = stratified(splits["test1"], sample)
    return splits


def _read(path: Path, targets: str, grouped: bool) -> list[Example]:
    found = []
    for number, (sentence, form, category) in enumerate(read_columns(path, COLUMNS), 1):
        if targets == VARIABLE_FREE:
            if " x _ " in f" {form}":
                raise CorpusError(
                    f"{path}:{number}: a logical form with variables is no tree; --data takes the folder of the variable-free forms"
                )
            check_tree(form, notation_named(NOTATION), path, number)
        elif " = " in form:
            raise CorpusError(
                f"{path}:{number}: a variable-free logical form; --data takes the folder of the original ones"
            )
        found.append(Example(sentence, form, ("_".join(category.split()),) if grouped else ()))
    return found


def stratified(examples: list[Example], size: int, seed: int = 1) -> list[Example]:
    """A random sample, in order, with as many examples of each category as of any other, or one more.

    Raises:
        CorpusError: a category has too few
    """
    members: dict[tuple[str, ...], list[int]] = {}
    for index, example in enumerate(examples):
        members.setdefault(example.groups, []).append(index)
    each, rest = divmod(size, len(members))
    if not 0 < size or each + bool(rest) > min(map(len, members.values())):
        raise CorpusError(f"{size} examples cannot be drawn evenly from {len(examples)} of {len(members)} categories")
    generator = random.Random(seed)
    drawn = [
        index for k, name in enumerate(sorted(members)) for index in generator.sample(members[name], each + (k < rest))
    ]
    return [examples[index] for index in sorted(drawn)]
