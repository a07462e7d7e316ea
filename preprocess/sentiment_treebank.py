"""The Stanford Sentiment Treebank (Socher et al. 2013): bracketed trees with a class from 0 to 4 at every node.

SST-5 uses the trees as they are. SST-2 maps 0 and 1 to 0, 3 and 4 to 1, leaves out sentences whose root is neutral (2),
and marks neutral nodes of the other sentences as unlabelled, as Tai, Socher and Manning (2015) do.
"""

from __future__ import annotations

import logging
from pathlib import Path

from preprocess.corpora import CorpusError
from preprocess.labelled_lines import Labelled, Splits
from preprocess.logical_forms import raw_lines
from tree_fairseq.errors import InputError
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)

UNLABELLED = "-"
FIVE = {name: name for name in "01234"}
TWO = {"0": "0", "1": "0", "2": UNLABELLED, "3": "1", "4": "1"}

_SPLITS = {"train": "train", "valid": "dev", "test": "test"}


def load_trees(data: Path, classes: dict[str, str]) -> Splits:
    """Reads the splits of a folder with ``{train,dev,test}.txt``, directly or in its folder ``trees``.

    Raises CorpusError if a file is missing, or a line is not a tree with these classes.

    Args:
        classes: new class for each of the five; sentences whose root becomes `UNLABELLED` are left out and counted
    """
    splits = {}
    for split, name in _SPLITS.items():
        path = _find(data, f"{name}.txt")
        trees = [_relabelled(line, classes, path, number) for number, line in enumerate(raw_lines(path), 1)]
        splits[split] = [Labelled(write_forest((tree,)), tree.label) for tree in trees if tree.label != UNLABELLED]
        if left := len(trees) - len(splits[split]):
            logger.info("%s: %d of %d sentences are neutral and left out", path, left, len(trees))
    return splits


def _find(data: Path, name: str) -> Path:
    """Returns the file in ``trees/``, as in the published archive, or else directly in the folder."""
    inner = data / "trees" / name
    return inner if inner.is_file() else data / name


def _relabelled(line: str, classes: dict[str, str], path: Path, number: int) -> Tree:
    try:
        forest = read_forest(
            line.replace("\N{NO-BREAK SPACE}", "_"), path=path, line_number=number
        )  # "8\u00a01/2" is one word
    except InputError as error:
        raise CorpusError(str(error)) from error
    if len(forest) != 1:
        raise CorpusError(f"{path}:{number}: {len(forest)} trees where one is expected")
    for node in forest[0].preorder():
        if not node.is_leaf and node.label not in classes:
            raise CorpusError(f"{path}:{number}: the label {node.label!r} is not a class from 0 to 4")
    tree = forest[0].map_labels(classes.__getitem__)
    return tree.map_leaves([_plain(word) for word in tree.leaves()])


def _plain(word: str) -> str:
    """Returns a word without the backslashes of the treebank: ``and\\/or`` is ``and/or``."""
    return word.replace("\\/", "/").replace("\\*", "*")
