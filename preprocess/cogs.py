"""COGS (Kim and Linzen 2020) with variable-free logical forms (Qiu et al. 2022): ``sentence<TAB>logical form<TAB>category``.

The forms are trees: ``paint ( agent = Paula , theme = cake ( nmod . in = closet ) )``. ``test1`` is the generalization set,
whose categories are the groups of the scorer.
"""

from __future__ import annotations

from pathlib import Path

from preprocess.corpora import CorpusError
from preprocess.logical_forms import Example, Splits, check_tree, read_columns
from tree_fairseq.trees.notations import notation_named

FILES = {"train": "train.tsv", "valid": "dev.tsv", "test": "test.tsv", "test1": "gen.tsv"}
COLUMNS = ("sentence", "logical form", "category")
NOTATION = "variable-free"


def load(data: Path) -> Splits:
    """The splits of a folder.

    Raises:
        CorpusError: a file is missing or malformed, or its logical forms have variables
    """
    splits = {}
    for split, name in FILES.items():
        splits[split] = []
        for number, (sentence, form, category) in enumerate(read_columns(data / name, COLUMNS), 1):
            if " x _ " in f" {form}":
                raise CorpusError(
                    f"{data / name}:{number}: a logical form with variables is no tree; "
                    "--data takes the folder of the variable-free forms"
                )
            check_tree(form, notation_named(NOTATION), data / name, number)
            groups = ("_".join(category.split()),) if split.startswith("test") else ()
            splits[split].append(Example(sentence, form, groups))
    return splits
