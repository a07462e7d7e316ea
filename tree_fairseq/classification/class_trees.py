"""Trees whose node labels are classes: the classes taken off, other symbols put in their place, and new text made alike.

A class is what the model has to tell, so it never becomes an input. The tree that a model reads has the same symbol at
every node, or the labels that a parser gives to constituents of the same words.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from fairseq.data import Dictionary

from tree_fairseq.classification.folder import NODE_SYMBOL, UNLABELLED, ClassificationRecord
from tree_fairseq.data_bin.tree_store import StoredTree
from tree_fairseq.errors import (
    CorruptFileError,
    EmptyDocumentError,
    OutsideTreeError,
    ParserError,
    UnlabelledExampleError,
)
from tree_fairseq.parsing.line_parser import LineParser, ParsedLine
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.trees.bracket import read_spans, write_forest
from tree_fairseq.trees.spans import SpanForest, decode, encode
from tree_fairseq.trees.subwords import SUBWORD_SUFFIX
from tree_fairseq.trees.transforms import binarize, collapse_unary
from tree_fairseq.trees.tree import Forest, Tree


@dataclass(frozen=True)
class ClassTree:
    """A tree without its classes.

    Attributes:
        tree: its words and spans; every node is labelled `NODE_SYMBOL`
        classes: the class of each node in preorder, preterminals included; `UNLABELLED` for a node without one
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
    """Takes a bracketed line apart: ``(3 (2 It) (4 works))``.

    Args:
        line: one tree
        path: the file, for messages
        number: of the line in it, from 1, for messages
        needs_class: whether the root has to be labelled; not so for a tree that is to be classified

    Raises:
        TreeFormatError: the line is no tree, or several.
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
    """The same tree with labels that may be read.

    Args:
        tree: any forest
        parse: a forest over the same words: a node gets the label of the constituent with its span, the lowest one of a unary
            chain, and `NODE_SYMBOL` where there is none. Without it every node gets `NODE_SYMBOL`.

    Raises:
        ValueError: the words differ.
    """
    if parse is None:
        return SpanForest(tree.leaves, [NODE_SYMBOL] * len(tree.labels), tree.spans)
    if parse.leaves != tree.leaves:
        raise ValueError(f"a parse of {parse.leaves} for {tree.leaves}")
    # In preorder the lower nodes of a chain come later, so that the lowest one stays.
    lowest = dict(zip(map(tuple, parse.spans[:, :2].tolist()), parse.labels))
    symbols = [lowest.get(tuple(span), NODE_SYMBOL) for span in tree.spans[:, :2].tolist()]
    return SpanForest(tree.leaves, symbols, tree.spans)


def binary_tree(tree: Tree) -> Tree:
    """A parse in the form of trees with classes: without unary chains, and right-branching where a node has more than two children."""
    return binarize(collapse_unary(tree, "lowest", include_tags=True), "right")


def word_options(options: ParserOptions) -> ParserOptions:
    """Options for parsing the words of a given tree as they are."""
    return options.replace(tokenize="pretokenized", subwords="none", subword_model=None)


class ClassNodes:
    """Tells which nodes of a stored full tree have a class token of their own.

    All have but the pieces of split words: ``(2 (2_sub un@@) (2_sub true))`` has one token, the word's.

    Args:
        labels: of the stored ids
    """

    def __init__(self, labels: Dictionary):
        self._is_piece = np.array([symbol.endswith(SUBWORD_SUFFIX) for symbol in labels.symbols])

    def __call__(self, tree: StoredTree) -> np.ndarray:
        """int64 ``[classes]``: the nodes in the order of the line's class tokens, which is preorder."""
        return np.flatnonzero(~self._is_piece[tree.label])

    def places(self, tree: StoredTree, classes: np.ndarray, fill: int) -> np.ndarray:
        """The class of every node.

        Args:
            tree: full tree of M nodes
            classes: int ``[classes]``: a line of class tokens, without EOS
            fill: stands at the nodes that have none

        Returns:
            int64 ``[M]``

        Raises:
            CorruptFileError: tree and classes do not belong together.
        """
        nodes = self(tree)
        if len(nodes) != len(classes):
            raise CorruptFileError(
                f"{len(classes)} classes for a tree of {len(nodes)} nodes with a class. Preprocess again"
            )
        placed = np.full(len(tree.label), fill, np.int64)
        placed[nodes] = classes
        return placed


class LineReader(Protocol):
    """Makes forests of new lines; `LineParser` is one."""

    @property
    def wants_encoded_text(self) -> bool:
        """Whether lines should come tokenised and split into subwords."""

    def parse_lines(
        self, lines: Sequence[str], first_line: int = 1, path: str | os.PathLike | None = None
    ) -> list[ParsedLine]:
        """The forest of each line."""


def line_reader(record: ClassificationRecord, options: ParserOptions, parser_dir: str | None = None) -> LineReader:
    """What makes forests of new lines just as those of the folder were made.

    Args:
        record: the folder's
        options: those of the folder's source side
        parser_dir: where the parser's models are, if not where they were
    """
    if record.input_format == "tsv":
        return LineParser(options if parser_dir is None else options.replace(parser_dir=parser_dir))
    return TreeLines(record, options, parser_dir)


class TreeLines:
    """New lines for a folder of trees: a line that begins with ``(`` is a tree, whatever its labels; any other is raw text.

    A tree needs no parser, unless symbols are the labels of one. Raw text is parsed, and the parse is binarised if the trees
    of the folder were binary.

    Args:
        record: the folder's
        options: those of its source side, whose subword model splits the words in the end
        parser_dir: where the parser's models are, if not where they were
    """

    wants_encoded_text = False

    def __init__(self, record: ClassificationRecord, options: ParserOptions, parser_dir: str | None = None):
        self._record = record
        self._finish = LineParser(options)
        self._parser_dir = parser_dir

    def parse_lines(
        self, lines: Sequence[str], first_line: int = 1, path: str | os.PathLike | None = None
    ) -> list[ParsedLine]:
        """The forest of each line.

        Args:
            lines: without line ends
            first_line: number of the first one, for messages
            path: their file, for messages

        Raises:
            TreeFormatError: a line begins as a tree and is none.
            ParserError: there is raw text and no parser.
        """
        is_tree = [line.lstrip(" \t").startswith("(") for line in lines]
        given: list[SpanForest] = []
        failed = [False] * len(lines)
        for number, (line, bracketed) in enumerate(zip(lines, is_tree, strict=True), first_line):
            given.append(read_class_tree(line, path, number, needs_class=False).tree if bracketed else _NOTHING)
        parses = self._parses(lines, is_tree, given, first_line, path)
        written = []
        for index, (tree, parse) in enumerate(zip(given, parses, strict=True)):
            if parse is not None:
                failed[index] = parse.failed
                if not is_tree[index]:
                    tree = encode(tuple(map(binary_tree, parse.forest)) if self._record.binarize else parse.forest)
            labels = encode(parse.forest) if parse is not None and self._record.node_symbols == "parser" else None
            written.append(write_forest(decode(put_symbols(tree, labels))))
        finished = self._finish.parse_lines(written, first_line, path)
        return [ParsedLine(line.forest, flat) for line, flat in zip(finished, failed, strict=True)]

    def _parses(
        self,
        lines: Sequence[str],
        is_tree: Sequence[bool],
        given: Sequence[SpanForest],
        first_line: int,
        path: str | os.PathLike | None,
    ) -> list[ParsedLine | None]:
        """The parse of each line that needs one."""
        parses: list[ParsedLine | None] = [None] * len(lines)
        # A blank line costs nothing and keeps the numbers of the others.
        if not all(is_tree):
            texts = ["" if bracketed else line for line, bracketed in zip(lines, is_tree, strict=True)]
            for index, parse in enumerate(self._text_parser.parse_lines(texts, first_line, path)):
                if not is_tree[index]:
                    parses[index] = parse
        if any(is_tree) and self._record.node_symbols == "parser":
            for index, parse in enumerate(
                self._word_parser.parse_lines([" ".join(tree.leaves) for tree in given], first_line, path)
            ):
                if is_tree[index]:
                    parses[index] = parse
        return parses

    @functools.cached_property
    def _text_parser(self) -> LineParser:
        options = self._record.text_options
        if options is None:
            raise ParserError(
                "the folder was preprocessed without a parser for raw text: give bracketed trees, or preprocess with --tree-parser, such as stanza"
            )
        return LineParser(options if self._parser_dir is None else options.replace(parser_dir=self._parser_dir))

    @functools.cached_property
    def _word_parser(self) -> LineParser:
        text = self._text_parser
        options = word_options(text.options)
        # One model in memory does for both, but for raw text it was loaded with a tokeniser.
        return LineParser(options, parser=text.parser if text.options.tokenize == "pretokenized" else None)


_NOTHING = SpanForest([], [], np.empty((0, 3), np.int32))
