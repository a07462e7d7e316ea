"""New lines to classify: the one road of text to a model, for ``fairseq-interactive`` and the hub."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Callable

import numpy as np
from fairseq.data import Dictionary
from torch import Tensor

from tree_fairseq.classification.class_trees import LineReader
from tree_fairseq.classification.dataset import ClassificationDataset, DocumentLengths
from tree_fairseq.classification.rows import pack_rows
from tree_fairseq.data_bin.tree_store import StoredTree
from tree_fairseq.errors import EmptyDocumentError
from tree_fairseq.parsing.line_parser import ParsedLine
from tree_fairseq.trees.spans import SpanForest, encode

logger = logging.getLogger(__name__)

_PATH = "input"


class ParsedDocuments(list):
    """Token tensors of lines that were parsed together, and their trees.

    fairseq's interactive command hands the list of token tensors from one method of the task to
    another and looks at nothing but its items, so the trees travel with the list.

    Args:
        tokens: ``[N]`` int64 each, without EOS, no more than a model may read
        trees: the full trees of each
        first: number of the first line, from 0
    """

    def __init__(self, tokens: Sequence[Tensor], trees: Sequence[StoredTree], first: int = 0):
        super().__init__(tokens)
        self.trees = trees
        self.first = first


class NewDocuments(ClassificationDataset):
    """Lines to classify. Its batches carry the trees a second time, packed, as ``constraints``.

    The interactive command rebuilds each batch from tokens, lengths and constraints; the latter is
    the only road on which a tree, or the number of a line, reaches the model.

    Args:
        documents: the lines
        **options: of :class:`ClassificationDataset`
    """

    def __init__(self, documents: ParsedDocuments, **options):
        lengths = np.array([len(tokens) for tokens in documents], np.int64)
        super().__init__(documents, documents.trees, lengths, **options)
        self.first = documents.first

    def collater(self, samples: list[dict], pad_to_length: dict | None = None) -> dict:
        """A batch with the packed form of its trees."""
        batch = super().collater(samples, pad_to_length)
        if batch:
            batch["constraints"] = pack_rows(batch["net_input"]["sentence_trees"], self.first + batch["id"])
        return batch


class DocumentReader:
    """Makes documents of lines just as those of a folder were made.

    Args:
        read_lines: makes their trees
        dictionary: of the leaves
        labels: of the nodes
        limit: leaves that a model may read at most; of a longer document, the sentences are read that end within them
    """

    def __init__(self, read_lines: LineReader, dictionary: Dictionary, labels: Dictionary, limit: int):
        self.read_lines = read_lines
        self.dictionary = dictionary
        self.labels = labels
        self.limit = limit

    def parse(self, lines: Sequence[str], encode_fn: Callable[[str], str], first_line: int = 1) -> list[ParsedLine]:
        """The trees of lines; ``encode_fn`` is applied where the parser wants encoded text.

        Raises:
            EmptyDocumentError: there is nothing in a line.
        """
        if self.read_lines.wants_encoded_text:
            lines = [encode_fn(line) for line in lines]
        parsed = self.read_lines.parse_lines(lines, first_line, _PATH)
        for number, line in enumerate(parsed, start=first_line):
            if not line.forest:
                raise EmptyDocumentError("there is no text", _PATH, number, hint="Leave the line out.")
        return parsed

    def __call__(self, lines: Sequence[str], encode_fn: Callable[[str], str], first_line: int = 1) -> ParsedDocuments:
        """Parses lines and encodes their leaves.

        Args:
            lines: an example each; in a folder of trees raw text or bracketed trees, whose labels are not looked at
            encode_fn: tokeniser and subword segmentation
            first_line: number of the first one, from 1

        Raises:
            EmptyDocumentError: there is nothing in a line.
            LongSentenceError: the first sentence of a line is longer than the limit.
        """
        spans = [encode(line.forest) for line in self.parse(lines, encode_fn, first_line)]
        trees = [self._as_stored(forest) for forest in spans]
        leaves = np.array([tree.num_leaves for tree in trees], np.int64)
        lengths = DocumentLengths(trees, leaves, self.limit, lambda index: (_PATH, first_line + index))
        if lengths.cut:
            logger.warning("[%s] %s", _PATH, lengths.message(self.limit))
        tokens = [self._ids(forest.leaves[:kept]) for forest, kept in zip(spans, lengths.kept.tolist())]
        return ParsedDocuments(tokens, trees, first_line - 1)

    def _ids(self, words: Sequence[str]) -> Tensor:
        return self.dictionary.encode_line(" ".join(words), add_if_not_exist=False, append_eos=False).long()

    def _as_stored(self, forest: SpanForest) -> StoredTree:
        labels = np.array([self.labels.index(label) for label in forest.labels], np.int32)
        return StoredTree(len(forest.leaves), labels, *forest.spans.T)
