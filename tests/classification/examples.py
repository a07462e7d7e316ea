"""Files of examples to be classified, and the preprocessing command called on them."""

from __future__ import annotations

import os
import random
from pathlib import Path

from fairseq import options
from fairseq_cli import preprocess

import tests.parsing.fake_parsers  # noqa: F401  (registers parsers)
from tests.data_bin.corpora import write_lines
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.tree import Tree

WORDS = ["a", "good", "film", "is", "not", "(", "so", "über", "bad", ".", "unseen"]


def random_tree(chooser: random.Random, words: int, classes: str = "01234") -> Tree:
    """A binary tree whose node labels are classes; a node below the root has none at times."""
    label = chooser.choice(classes + "-")
    if words == 1:
        return Tree(label, [Tree(chooser.choice(WORDS))])
    left = chooser.randint(1, words - 1)
    return Tree(label, [random_tree(chooser, left, classes), random_tree(chooser, words - left, classes)])


def write_trees(folder: Path, seed: int = 0, **splits: int) -> Path:
    """Writes ``SPLIT.trees`` with given numbers of lines; every class is that of a root if there are five lines."""
    chooser = random.Random(seed)
    for split, count in splits.items():
        drawn = [random_tree(chooser, chooser.randint(1, 8)) for _ in range(count)]
        write_lines(
            folder / f"{split}.trees",
            [write_forest((Tree(str(line % 5), tree.children),)) for line, tree in enumerate(drawn)],
        )
    return folder


def write_rows(folder: Path, seed: int = 0, **splits: int) -> Path:
    """Writes ``SPLIT.tsv`` with so many lines each, of the classes pos, neg and 10 and 9."""
    chooser = random.Random(seed)
    for split, count in splits.items():
        texts = [" ".join(chooser.choices(WORDS, k=chooser.randint(1, 9))) for _ in range(count)]
        write_lines(
            folder / f"{split}.tsv",
            [f"{text}\t{('pos', 'neg', '10', '9')[line % 4]}" for line, text in enumerate(texts)],
        )
    return folder


def classify(*arguments: object) -> None:
    """``fairseq-preprocess --task tree_classification ARGUMENTS``, in this process."""
    parser = options.get_preprocessing_parser()
    preprocess.main(parser.parse_args(["--task", "tree_classification", *map(os.fspath, map(str, arguments))]))
