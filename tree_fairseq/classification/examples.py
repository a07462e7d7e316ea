"""Examples with their classes, and new lines that are read in the same way.

An example is a line of columns, or a bracketed tree whose labels are the classes of nodes. A model predicts classes, so
they are never an input. In the tree that it reads, all nodes have the same symbol.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Callable, NamedTuple

from tree_fairseq import errors
from tree_fairseq.classification.folder import SEPARATOR, UNLABELLED, ClassificationRecord, check_class, is_number
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.trees.bracket import ROOT, write_forest
from tree_fairseq.trees.spans import TreeSpans, decode, encode, reduce_spans
from tree_fairseq.trees.text import FaultyLines, check_line, read_lines, tokens
from tree_fairseq.trees.tree import Tree, binarize, collapse_unary
from tree_fairseq.trees.treebanks import read_sentences

_COLUMNS = "A line is a text, a tab and a class."
_PAIR = "A line is a text, a tab, a text, a tab and a class."
_NOTHING_TO_CLASSIFY = "Leave the line out: it has nothing to classify."

NODE_SYMBOL = "X"  # the symbol of a node for which no parser gives a label


class ClassTree(NamedTuple):
    """A tree whose nodes are all labelled `NODE_SYMBOL`, and the class of each node in preorder, or `UNLABELLED`."""

    tree: TreeSpans
    classes: list[str]


def read_class_tree(
    line: str, path: str | os.PathLike | None = None, number: int | None = None, needs_class: bool = True
) -> ClassTree:
    """Reads one bracketed tree such as ``(3 (2 It) (4 works))``; ``path`` and ``number`` are for messages.

    Raises TreeFormatError if the line is not one tree, EmptyDocumentError if it is blank, and UnlabelledExampleError if
    the root has no class but needs one.
    """
    forest = read_sentences(line, path, number)
    # Outer brackets without a label are no node.
    is_wrapped = len(forest) == 1 and forest[0].label == ROOT and len(forest[0].children) == 1
    read = encode(forest[0].children if is_wrapped and not forest[0].is_preterminal else forest)
    if not read.labels:
        raise errors.EmptyDocumentError("a blank line where a tree is expected", path, number, hint="Leave it out.")
    if (roots := int((read.spans[:, 2] == 0).sum())) > 1:
        hint = "Put each tree on its own line."
        raise errors.OutsideTreeError(f"{roots} trees where one is expected", path, number, hint=hint)
    if needs_class and read.labels[0] == UNLABELLED:
        problem = f"the root is labelled {UNLABELLED}, so the example has no class"
        raise errors.UnlabelledExampleError(problem, path, number, hint="Label it, or leave the line out.")
    return ClassTree(put_symbols(read), read.labels)


def put_symbols(tree: TreeSpans) -> TreeSpans:
    """Replaces all labels of a tree by `NODE_SYMBOL`."""
    return TreeSpans(tree.leaves, [NODE_SYMBOL] * len(tree.labels), tree.spans)


def binary_tree(tree: Tree) -> Tree:
    """Gives a parse the form of binary class trees: without unary chains, and binarized to the right."""
    return binarize(collapse_unary(tree))


class Example(NamedTuple):
    """A line of a file."""

    classes: list[str]  # the class, the classes of all nodes of a tree in preorder, or the characters of a number
    text: str  # what a model reads: words, or a bracketed tree without classes
    is_binary: bool = True  # whether no node of the tree has more than two children


class Examples(NamedTuple):
    """The examples of a file, as :class:`Example` has them; ``is_binary`` is true if all trees are."""

    classes: list[list[str]]
    texts: list[str]
    is_binary: bool

    def counts(self) -> Counter[str]:
        """Counts how often each class occurs at any node, and `UNLABELLED`."""
        return Counter(itertools.chain.from_iterable(self.classes))

    def counts_of_examples(self) -> Counter[str]:
        """Counts how often each class is that of an example."""
        return Counter(own[0] for own in self.classes)


def read_examples(path: Path, input_format: str, known: Collection[str] | None, is_number: bool = False) -> Examples:
    """Reads the examples of a file in the format ``tsv``, ``trees``, ``sentence`` or ``pair``.

    Other classes than the ``known`` ones raise ClassError; None stands for any. A line may have a number instead.
    LabelColumnError, EmptyDocumentError and TreeFormatError are other faults of lines.
    """
    read = functools.partial(_read_columns, is_pair=input_format == "pair", is_rated=is_number)
    read = _read_tree if input_format == "trees" else read
    found, checked, is_binary, faults = Examples([], [], True), set[str](), True, FaultyLines()
    for number, line in enumerate(read_lines(path), start=1):
        with faults, placed(path, number):
            example = read(line)
            for name in () if is_number else example.classes:
                if name not in checked:
                    check_class(name, known)
                    checked.add(name)
            found.classes.append(example.classes)
            found.texts.append(example.text)
            is_binary &= example.is_binary
    faults.raise_all()
    return found._replace(is_binary=is_binary)


@contextlib.contextmanager
def placed(path: str | Path, number: int) -> Iterator[None]:
    """Adds the place to errors about a line."""
    try:
        yield
    except errors.InputError as error:
        raise error.at(path, number) from None


def _read_tree(line: str) -> Example:
    read = read_class_tree(line)
    is_binary = len(reduce_spans(read.tree.spans)) == len(read.tree.leaves) - 1
    return Example(read.classes, write_forest(decode(read.tree)), is_binary)


def _one_class(label: str, column: int) -> str:
    names = label.split()
    if len(names) != 1:
        problem = f"the class {label!r} is not one word" if names else "there is no class after the tab"
        more = " Join the words of a class by _. If the class comes first, swap the columns: "
        more += r"awk -F'\t' '{print $2 FS $1}' FILE."
        raise errors.LabelColumnError(problem, column=column, hint=_COLUMNS + (more if names else ""))
    if names == [UNLABELLED]:
        raise errors.UnlabelledExampleError(
            f"the class is {UNLABELLED}, which marks an example without a class",
            hint="Give the class, or leave the line out.",
        )
    return names[0]


def _read_columns(line: str, is_pair: bool, is_rated: bool) -> Example:
    if not line.strip():
        raise errors.EmptyDocumentError("there is no text", hint=_NOTHING_TO_CLASSIFY)
    wanted = 1 + is_pair
    columns = line.split("\t")
    if len(columns) != wanted + 1:
        problem = f"{len(columns) - 1} tabs in a line where {wanted} are expected"
        column, hint = None, _PAIR if is_pair else _COLUMNS
        if len(columns) > wanted + 1:
            column, hint = len("\t".join(columns[: wanted + 1])) + 1, f"{hint} Replace other tabs by blanks."
        raise errors.LabelColumnError(problem, column=column, hint=hint)
    text = joined_sentences(columns[:wanted], is_pair)
    name = _one_class(columns[-1], len(line) - len(columns[-1]) + 1)
    if is_rated and not is_number(name):
        hint = "With --regression, a line has a decimal number instead of the class."
        raise errors.ClassError(f"{name!r} is not a number", hint=hint)
    return Example(list(name) if is_rated else [name], text)


def joined_sentences(sentences: Sequence[str], is_pair: bool) -> str:
    """Joins the sentences of an example, one or a pair, to one line with `SEPARATOR` between them."""
    if len(sentences) != 1 + is_pair:
        hint = "Leave out its class (cut -f1) and other tabs."
        hint = "A pair is a text, a tab and a text, without a class." if is_pair else hint
        raise errors.LabelColumnError(
            f"{len(sentences) - 1} tabs in a line where {int(is_pair)} are expected", hint=hint
        )
    for number, sentence in enumerate(sentences, start=1):
        words = tokens(sentence)
        if not words:
            problem = f"sentence {number} of the pair has no text" if is_pair else "there is no text"
            raise errors.EmptyDocumentError(problem, hint=_NOTHING_TO_CLASSIFY)
        if SEPARATOR in words:
            problem = f"a text has the word {SEPARATOR}, which ends sentences"
            raise errors.LabelColumnError(problem, hint="Write it in another way.")
    return f" {SEPARATOR} ".join(sentences)


class LineTrees:
    """Makes trees of new lines exactly as those of a folder were made.

    For a folder of texts, raw text is parsed as the folder's own lines were. For a folder of trees, a line that begins
    with ``(`` is a tree, whose labels are not read; it needs no parser. Other lines are raw text, whose parse is
    binarised if the trees of the folder were binary. ``options`` are those of the source side, and ``trusted`` returns
    a folder's options as the user allows them.
    """

    def __init__(
        self,
        record: ClassificationRecord,
        options: ParserOptions,
        trusted: Callable[[ParserOptions], ParserOptions] = lambda options: options,
    ):
        self._record = record
        self._is_text = record.input_format == "tsv"
        self._options = options if self._is_text else record.text_options
        self._trusted = trusted

    def read(
        self,
        lines: Sequence[str],
        encode_fn: Callable[[str], str] = str,
        first_line: int = 1,
        path: str | os.PathLike | None = None,
    ) -> list[TreeSpans]:
        """Returns the trees of each line, given without line ends; ``first_line`` and ``path`` are for messages.

        A parser that needs tokenised text, or text in subwords, reads what ``encode_fn`` makes of it. Raises
        EmptyDocumentError for a line without words, and LabelColumnError for a text with tabs.
        """
        if self._is_text:
            for number, line in enumerate(lines, start=first_line):
                with placed(path, number):
                    joined_sentences(line.strip().split("\t"), is_pair=False)
            if self.text_parser.wants_encoded_text:
                lines = [encode_fn(line) for line in lines]
            forests = [encode(line.forest) for line in self.text_parser.parse_lines(lines, first_line, path)]
        else:
            forests = self._read_trees(lines, first_line, path)
        for number, forest in enumerate(forests, start=first_line):
            if not forest.labels:
                raise errors.EmptyDocumentError("there is no text", path, number, hint="Leave the line out.")
        return forests

    def _read_trees(self, lines: Sequence[str], first_line: int, path: str | os.PathLike | None) -> list[TreeSpans]:
        trees: dict[int, TreeSpans] = {}
        for index, line in enumerate(lines):
            if line.lstrip(" \t").startswith("("):
                check_line(line, path, first_line + index)
                trees[index] = read_class_tree(line, path, first_line + index, needs_class=False).tree
        if len(trees) < len(lines):
            # Blank lines take the places of trees, so that the numbers of lines in messages are right.
            texts = ["" if index in trees else line for index, line in enumerate(lines)]
            for index, parse in enumerate(self.text_parser.parse_lines(texts, first_line, path)):
                if index not in trees:
                    forest = parse.forest
                    trees[index] = put_symbols(
                        encode(tuple(map(binary_tree, forest)) if self._record.binarize else forest)
                    )
        return [trees[index] for index in range(len(lines))]

    @functools.cached_property
    def text_parser(self) -> LineParser:
        """The parser of raw text."""
        if self._options is None:
            raise errors.ParserError(
                "the folder was preprocessed without a parser for raw text: give bracketed trees, or preprocess with "
                "--tree-parser, such as stanza"
            )
        return LineParser(self._trusted(self._options))
