"""New lines to classify, for ``fairseq-interactive`` and the hub, read exactly as the lines of the folder were."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Callable

import numpy as np
from fairseq.data import Dictionary

from tree_fairseq.classification.dataset import document_lengths, refuse_long_text
from tree_fairseq.classification.examples import (
    binary_tree,
    joined_sentences,
    placed,
    put_symbols,
    read_class_tree,
    split_tree,
    word_options,
)
from tree_fairseq.classification.folder import ClassificationRecord
from tree_fairseq.errors import EmptyDocumentError, ParserError
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.parsing.pieces import load_subword_model
from tree_fairseq.tasks.pair_dataset import NewLines
from tree_fairseq.tasks.reduced_trees import as_stored
from tree_fairseq.trees.spans import TreeSpans, decode, encode
from tree_fairseq.trees.text import check_line

_PATH = "input"


class LineTrees:
    """Makes trees of new lines exactly as those of a folder were made.

    For a folder of texts, raw text is parsed as the folder's own lines were. For a folder of trees, a line that begins
    with ``(`` is a tree, whose labels are not read; it needs no parser, unless the symbols are labels of a parser.
    Other lines are raw text, whose parse is binarised if the trees of the folder were binary. ``options`` are those of
    the source side, and ``parser_dir`` is the folder of the parser's models, if it has moved.
    """

    def __init__(self, record: ClassificationRecord, options: ParserOptions, parser_dir: str | None = None):
        self._record = record
        self._is_text = record.input_format == "tsv"
        self._options = options if self._is_text else record.text_options
        self._parser_dir = parser_dir
        self._subwords = None if self._is_text else load_subword_model(options.subword_model)

    @property
    def wants_encoded_text(self) -> bool:
        """Whether lines should come tokenised and split into subwords."""
        return self._is_text and self.text_parser.wants_encoded_text

    def read(self, lines: Sequence[str], first_line: int = 1, path: str | os.PathLike | None = None) -> list[TreeSpans]:
        """Returns the trees of each line, given without line ends; ``first_line`` and ``path`` are for messages."""
        if self._is_text:
            return [encode(line.forest) for line in self.text_parser.parse_lines(lines, first_line, path)]
        given: dict[int, TreeSpans] = {}
        for index, line in enumerate(lines):
            if line.lstrip(" \t").startswith("("):
                check_line(line, path, first_line + index)
                given[index] = read_class_tree(line, path, first_line + index, needs_class=False).tree
        texts: dict[int, TreeSpans] = {}
        if len(given) < len(lines):
            # Blank lines take the places of trees, so that the numbers of lines in messages are right.
            parsed = self.text_parser.parse_lines(
                ["" if index in given else line for index, line in enumerate(lines)], first_line, path
            )
            texts = {index: encode(parse.forest) for index, parse in enumerate(parsed) if index not in given}
        parses = {}
        if self._record.node_symbols == "parser":
            words = [" ".join(given[index].leaves) if index in given else "" for index in range(len(lines))]
            parsed = self._word_parser.parse_lines(words, first_line, path) if given else []
            parses = {**dict(enumerate(encode(parse.forest) for parse in parsed)), **texts}
        trees = []
        for index in range(len(lines)):
            tree = given[index] if index in given else self._as_given(texts[index])
            trees.append(split_tree(put_symbols(tree, parses.get(index)), self._subwords))
        return trees

    def _as_given(self, parse: TreeSpans) -> TreeSpans:
        """Gives a parse the form of the folder's trees."""
        return encode(tuple(map(binary_tree, decode(parse)))) if self._record.binarize else parse

    @functools.cached_property
    def text_parser(self) -> LineParser:
        """The parser of raw text."""
        if self._options is None:
            raise ParserError(
                "the folder was preprocessed without a parser for raw text: give bracketed trees, or preprocess with "
                "--tree-parser, such as stanza"
            )
        moved = {} if self._parser_dir is None else {"parser_dir": self._parser_dir}
        return LineParser(self._options.replace(**moved))

    @functools.cached_property
    def _word_parser(self) -> LineParser:
        text = self.text_parser
        # The model in memory serves both purposes, unless it was loaded with a tokeniser for raw text.
        parser = text.parser if text.options.tokenize == "pretokenized" else None
        return LineParser(word_options(text.options), parser)


class DocumentReader:
    """Makes token tensors and trees of new lines; of more than ``limit`` leaves, those sentences that end within it."""

    def __init__(self, reader: LineTrees, dictionary: Dictionary, labels: Dictionary, limit: int):
        self.reader = reader
        self.dictionary = dictionary
        self.labels = labels
        self.limit = limit

    def trees(self, lines: Sequence[str], encode_fn: Callable[[str], str], first_line: int = 1) -> list[TreeSpans]:
        """Returns the trees of lines; ``encode_fn`` is applied if the parser needs encoded text."""
        if self.reader.wants_encoded_text:
            lines = [encode_fn(line) for line in lines]
        trees = self.reader.read(lines, first_line, _PATH)
        for number, tree in enumerate(trees, start=first_line):
            if not tree.labels:
                raise EmptyDocumentError("there is no text", _PATH, number, hint="Leave the line out.")
        return trees

    def __call__(self, lines: Sequence[str], encode_fn: Callable[[str], str], first_line: int = 1) -> NewLines:
        """Reads lines and encodes their leaves; errors count lines from ``first_line``."""
        spans = self.trees(lines, encode_fn, first_line)
        trees = [as_stored(forest, self.labels) for forest in spans]
        leaves = np.array([tree.num_leaves for tree in trees], np.int64)
        kept = document_lengths(trees, leaves, self.limit, lambda index: (_PATH, first_line + index), _PATH)
        texts = [" ".join(forest.leaves[:length]) for forest, length in zip(spans, kept.tolist())]
        tokens = [self.dictionary.encode_line(text, add_if_not_exist=False, append_eos=False) for text in texts]
        return NewLines([ids.long() for ids in tokens], trees, [text.split() for text in texts])


class SentenceReader:
    """Makes token tensors of new lines of a sentence, or of a pair with a tab between its sentences."""

    def __init__(self, is_pair: bool, dictionary: Dictionary, limit: int):
        self.is_pair = is_pair
        self.dictionary = dictionary
        self.limit = limit

    def __call__(self, lines: Sequence[str], encode_fn: Callable[[str], str], first_line: int = 1) -> NewLines:
        """Encodes lines of ``limit`` tokens at most; errors count them from ``first_line``."""
        read, words = [], []
        for number, line in enumerate(lines, start=first_line):
            sentences = [encode_fn(sentence) for sentence in line.split("\t")]
            with placed(_PATH, number):
                text = joined_sentences(sentences, self.is_pair)
            words.append(text.split())
            read.append(self.dictionary.encode_line(text, add_if_not_exist=False).long())
            if len(read[-1]) > self.limit:
                text = f"a text of {len(read[-1])} tokens, the ends of sentences among them"
                refuse_long_text(text, self.limit, _PATH, number)
        return NewLines(read, words=words)
