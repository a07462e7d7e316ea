"""Trees whose node labels are classes: the classes are taken off, and symbols that a model may read take their place.

A model predicts the classes, so they are never an input. In the tree that it reads, all nodes have the same symbol, or
the labels that a parser gives to constituents of the same words.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary

from tree_fairseq.classification.targets import UNLABELLED
from tree_fairseq.data_bin.tree_store import StoredTree
from tree_fairseq.errors import CorruptFileError, EmptyDocumentError, OutsideTreeError, UnlabelledExampleError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.pieces import SubwordModel, load_subword_model
from tree_fairseq.trees.bracket import read_spans
from tree_fairseq.trees.spans import SpanForest, decode, encode
from tree_fairseq.trees.subwords import SUBWORD_SUFFIX, split_words
from tree_fairseq.trees.text import read_lines
from tree_fairseq.trees.transforms import binarize, collapse_unary
from tree_fairseq.trees.tree import Forest, Tree

NODE_SYMBOL = "X"
"""The symbol of a node for which no parser gives a label."""


@dataclass(frozen=True)
class ClassTree:
    """A tree and its classes.

    Attributes:
        tree: its words and spans; every node is labelled `NODE_SYMBOL`
        classes: the class of each node in preorder, preterminals included; `UNLABELLED` for a node without a class
    """

    tree: SpanForest
    classes: list[str]

    @property
    def forest(self) -> Forest:
        """The tree as objects."""
        return decode(self.tree)


def read_class_tree(
    line: str, path: str | os.PathLike | None = None, number: int | None = None, needs_class: bool = True
) -> ClassTree:
    """Reads a bracketed line such as ``(3 (2 It) (4 works))``.

    Args:
        line: one tree
        path: its file, for messages
        number: of the line in the file, from 1, for messages
        needs_class: whether the root has to have a class; a tree to be classified need not

    Raises:
        TreeFormatError: the line is not a tree, or has several.
        EmptyDocumentError: it is blank.
        UnlabelledExampleError: the root has no class.
    """
    read = read_spans(line, path=path, line_number=number)
    if not read.labels:
        raise EmptyDocumentError("a blank line where a tree is expected", path, number, hint="Leave it out.")
    if (roots := int((read.spans[:, 2] == 0).sum())) > 1:
        raise OutsideTreeError(
            f"{roots} trees where one is expected", path, number, hint="Put each tree on its own line."
        )
    if needs_class and read.labels[0] == UNLABELLED:
        raise UnlabelledExampleError(
            f"the root is labelled {UNLABELLED}, so the example has no class",
            path,
            number,
            hint="Label it, or leave the line out.",
        )
    return ClassTree(put_symbols(read), read.labels)


def put_symbols(tree: SpanForest, parse: SpanForest | None = None) -> SpanForest:
    """Replaces the labels of a tree by symbols that a model may read.

    Args:
        tree: any forest
        parse: a forest over the same words: a node gets the label of the constituent with its span, the lowest one of a
            unary chain, and `NODE_SYMBOL` if there is no such constituent. Without a parse every node gets
            `NODE_SYMBOL`.

    Raises:
        ValueError: the words differ.
    """
    if parse is None:
        return SpanForest(tree.leaves, [NODE_SYMBOL] * len(tree.labels), tree.spans)
    if parse.leaves != tree.leaves:
        raise ValueError(f"a parse of {parse.leaves} for {tree.leaves}")
    # In preorder the lower nodes of a chain come later, so the lowest label remains.
    lowest = dict(zip(map(tuple, parse.spans[:, :2].tolist()), parse.labels))
    symbols = [lowest.get(tuple(span), NODE_SYMBOL) for span in tree.spans[:, :2].tolist()]
    return SpanForest(tree.leaves, symbols, tree.spans)


def split_tree(tree: SpanForest, model: SubwordModel | None) -> SpanForest:
    """Splits the words of a tree into subwords, if there is a model for that."""
    return tree if model is None else encode(split_words(decode(tree), model.split(tree.leaves)))


@dataclass(frozen=True)
class ClassTreeReader:
    """Reads lines of a file of class trees as the trees that a model reads.

    Attributes:
        subword_model: path of the model that splits words; None to keep them whole
        parses: files of bracketed parses of the words of all lines, whose labels become the symbols; none for
            `NODE_SYMBOL`
    """

    subword_model: str | None = None
    parses: tuple[Path, ...] = ()

    def __call__(self, line: str, path: Path, number: int) -> SpanForest:
        """Reads a line, given with its file and its number from 1."""
        tree = read_class_tree(line, path, number, needs_class=False).tree
        if self.parses:
            tree = put_symbols(tree, read_spans(_lines_of(self.parses)[number - 1]))
        return split_tree(tree, _subword_model(self.subword_model))


@functools.lru_cache(maxsize=1)
def _lines_of(paths: tuple[Path, ...]) -> list[str]:
    return [line for path in paths for line in read_lines(path)]


@functools.lru_cache(maxsize=1)
def _subword_model(path: str | None) -> SubwordModel | None:
    return load_subword_model(path)


def binary_tree(tree: Tree) -> Tree:
    """Gives a parse the form of binary class trees: without unary chains, and binarized to the right."""
    return binarize(collapse_unary(tree))


def word_options(options: ParserOptions) -> ParserOptions:
    """Returns the options for parsing the words of a given tree, which stay as they are."""
    return options.replace(tokenize="pretokenized", subwords="none", subword_model=None)


class ClassNodes:
    """Finds the nodes of a stored full tree that have a class token of their own.

    All nodes have one but the pieces of split words: ``(2 (2_sub un@@) (2_sub true))`` has one token, that of the word.

    Args:
        labels: dictionary of the stored ids
    """

    def __init__(self, labels: Dictionary):
        self._is_piece = np.array([symbol.endswith(SUBWORD_SUFFIX) for symbol in labels.symbols])

    def __call__(self, tree: StoredTree) -> np.ndarray:
        """Returns these nodes in preorder, which is the order of the line's class tokens: int64 ``[tokens]``."""
        return np.flatnonzero(~self._is_piece[tree.label])

    def place(self, tree: StoredTree, classes: np.ndarray, fill: int) -> np.ndarray:
        """Assigns a line of classes to the nodes.

        Args:
            tree: full tree of M nodes
            classes: int ``[tokens]``: a line of classes, without EOS
            fill: the class of the other nodes

        Returns:
            int64 ``[M]``

        Raises:
            CorruptFileError: the numbers of nodes and classes differ.
        """
        nodes = self(tree)
        if len(nodes) != len(classes):
            raise CorruptFileError(
                f"{len(classes)} classes for a tree of {len(nodes)} nodes with a class. Preprocess again"
            )
        placed = np.full(len(tree.label), fill, np.int64)
        placed[nodes] = classes
        return placed
