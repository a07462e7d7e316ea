"""Trees whose node labels are classes: the classes are taken off, and symbols that a model may read take their place.

A model predicts the classes, so they are never an input. In the tree that it reads, all nodes have the same symbol, or
the labels that a parser gives to constituents of the same words.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tree_fairseq.classification.targets import UNLABELLED
from tree_fairseq.errors import EmptyDocumentError, OutsideTreeError, UnlabelledExampleError
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.pieces import SubwordModel, load_subword_model
from tree_fairseq.trees.bracket import read_spans
from tree_fairseq.trees.spans import SpanForest, decode, encode
from tree_fairseq.trees.subwords import split_words
from tree_fairseq.trees.text import read_lines
from tree_fairseq.trees.tree import Tree, binarize, collapse_unary

NODE_SYMBOL = "X"
"""The symbol of a node for which no parser gives a label."""


class ClassTree(NamedTuple):
    """A tree whose nodes are all labelled `NODE_SYMBOL`, and the class of each node in preorder, or `UNLABELLED`."""

    tree: SpanForest
    classes: list[str]


def read_class_tree(
    line: str, path: str | os.PathLike | None = None, number: int | None = None, needs_class: bool = True
) -> ClassTree:
    """Reads one bracketed tree such as ``(3 (2 It) (4 works))``; ``path`` and ``number`` are for messages.

    Raises:
        TreeFormatError: the line is not a tree, or has several.
        EmptyDocumentError: it is blank.
        UnlabelledExampleError: the root has no class but needs one.
    """
    read = read_spans(line, path=path, line_number=number)
    if not read.labels:
        raise EmptyDocumentError("a blank line where a tree is expected", path, number, hint="Leave it out.")
    if (roots := int((read.spans[:, 2] == 0).sum())) > 1:
        hint = "Put each tree on its own line."
        raise OutsideTreeError(f"{roots} trees where one is expected", path, number, hint=hint)
    if needs_class and read.labels[0] == UNLABELLED:
        problem = f"the root is labelled {UNLABELLED}, so the example has no class"
        raise UnlabelledExampleError(problem, path, number, hint="Label it, or leave the line out.")
    return ClassTree(put_symbols(read), read.labels)


def put_symbols(tree: SpanForest, parse: SpanForest | None = None) -> SpanForest:
    """Replaces the labels of a tree by symbols that a model may read.

    With a parse of the same words, a node gets the label of the constituent with its span, the lowest one of a unary
    chain, and `NODE_SYMBOL` if there is no such constituent. Without a parse every node gets `NODE_SYMBOL`.
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

    ``subword_model`` is the path of the model that splits words. ``parses`` are files of bracketed parses of the words
    of all lines, whose labels become the symbols.
    """

    subword_model: str | None = None
    parses: tuple[Path, ...] = ()

    def __call__(self, line: str, path: Path, number: int) -> SpanForest:
        tree = read_class_tree(line, path, number, needs_class=False).tree
        if self.parses:
            tree = put_symbols(tree, read_spans(_lines_of(self.parses)[number - 1]))
        return split_tree(tree, _subword_model(self.subword_model))


@functools.lru_cache(maxsize=1)
def _lines_of(paths: tuple[Path, ...]) -> list[str]:
    return [line for path in paths for line in read_lines(path)]


_subword_model = functools.lru_cache(maxsize=1)(load_subword_model)


def binary_tree(tree: Tree) -> Tree:
    """Gives a parse the form of binary class trees: without unary chains, and binarized to the right."""
    return binarize(collapse_unary(tree))


def word_options(options: ParserOptions) -> ParserOptions:
    """Returns the options for parsing the words of a given tree, which stay as they are."""
    return options.replace(tokenize="pretokenized", subwords="none", subword_model=None)
