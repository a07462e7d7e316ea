"""COGS (Kim and Linzen 2020): ``sentence<TAB>logical form<TAB>category``.

Logical forms are the original ones, with variables (``* cake ( x _ 4 ) ; like . agent ( x _ 1 , Mila ) AND ...``), or
the variable-free ones of Qiu et al. (2022), which are trees: ``paint ( agent = Paula , theme = cake ( nmod . in =
closet ) )``. These are read from files, or made from the original ones, which `preprocess.cogs_forms` also restores.
``test1`` is the generalization set, whose categories are the groups of the scorer, and ``test2`` is a
sample of it.
"""

from __future__ import annotations

import random
from pathlib import Path

from preprocess.cogs_forms import NOTATION, with_variables, without_variables
from preprocess.corpora import CorpusError
from preprocess.logical_forms import Example, Splits, check_tree, read_columns
from tree_fairseq.trees.notations import notation_named

FILES = {"train": "train.tsv", "valid": "dev.tsv", "test": "test.tsv", "test1": "gen.tsv"}
COLUMNS = ("sentence", "logical form", "category")
VARIABLE_FREE, ORIGINAL = TARGETS = (NOTATION, "original")
SUBFOLDER = "variable_free"
"""Folder that may contain the variable-free forms beside the original ones."""


def load(data: Path, targets: str = VARIABLE_FREE, sample: int | None = None) -> Splits:
    """Reads the splits of a folder.

    Args:
        targets: kind of logical forms, one of ``TARGETS``
        sample: size of ``test2``; None writes no ``test2``
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
            try:
                form = without_variables(form)
            except CorpusError as error:
                raise CorpusError(f"{path}:{number}: {error}") from error
            check_tree(form, notation_named(NOTATION), path, number)
        elif " = " in form:
            raise CorpusError(
                f"{path}:{number}: a variable-free logical form; --data takes the folder of the original ones"
            )
        found.append(Example(sentence, form, ("_".join(category.split()),) if grouped else ()))
    return found


def original_forms(splits: Splits) -> Splits:
    """Returns the test sets with original forms in the place of variable-free ones."""
    tests: Splits = {}
    for split in (name for name in splits if name.startswith("test")):
        tests[split] = []
        for number, example in enumerate(splits[split], 1):
            form = with_variables(example.target, example.source)
            if without_variables(form) != example.target:
                raise CorpusError(f"{split}, sentence {number}: the form is not that of the sentence")
            tests[split].append(example._replace(target=form))
    return tests


def stratified(examples: list[Example], size: int, seed: int = 1) -> list[Example]:
    """Draws a random sample with equally many examples of each category, up to one; the examples stay in order."""
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
