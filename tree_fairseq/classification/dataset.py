"""Examples to classify, as fairseq's datasets: plain texts, and documents of one sentence or more with their trees."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Callable

import numpy as np
import torch
from fairseq.data import Dictionary, data_utils
from torch import Tensor

from tree_fairseq.classification.sentence_trees import (
    SentenceTreeReader,
    collate_sentences,
    collate_targets,
    cut_tree,
    kept_leaves,
    to_constraints,
)
from tree_fairseq.classification.targets import class_targets, example_class
from tree_fairseq.data_bin.tree_store import StoredTree
from tree_fairseq.errors import LongSentenceError
from tree_fairseq.nn.pair_dataset import KeepsRemainder

logger = logging.getLogger(__name__)


class TextDataset(KeepsRemainder):
    """Texts with targets: classes from 0, or numbers.

    Args:
        tokens: of each text
        lengths: how many of them are read, from the first, ``[texts]`` int64
        dictionary: of the tokens
        targets: line of target tokens of each text; None if they are not known
        read_target: returns the target for such a line and its index: an int for a class, a float for a number
        shuffle: whether texts of the same length come in random order
        first_line: of lines to classify, the number of the first, from 0. fairseq's interactive command rebuilds their
            batches from tokens, lengths and ``constraints``, so these carry the number of each line, and whatever else
            the task needs.
    """

    # A test set is classified to its last line. The task refuses texts that are too long for training.
    keep_remainder = True

    def __init__(
        self,
        tokens: Sequence[Tensor],
        lengths: np.ndarray,
        dictionary: Dictionary,
        targets: Sequence[Tensor] | None = None,
        read_target: Callable[[Tensor, int], int | float] | None = None,
        shuffle: bool = False,
        first_line: int | None = None,
    ):
        self.tokens = tokens
        self.sizes = lengths
        self.dictionary = dictionary
        self.targets = targets
        self.read_target = read_target
        self.shuffle = shuffle
        self.first_line = first_line

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> dict:
        """Returns ``id``, ``source`` ``[N]`` int64 and ``target``, which may be None."""
        return {
            "id": index,
            "source": self.tokens[index][: int(self.sizes[index])].long(),
            "target": None if self.targets is None else self.read_target(self.targets[index], index),
        }

    def collater(self, samples: list[dict], pad_to_length: dict | None = None) -> dict:
        """Stacks texts, the longest first, as recurrent encoders need them.

        Returns:
            ``id`` ``[B]``, ``nsentences``, ``ntokens``; ``net_input`` with ``src_tokens`` ``[B, N]``, padded on the
            right, and ``src_lengths`` ``[B]``; ``target`` ``[B]``, int64 classes from 0 or float32 numbers, or None; of
            lines to classify ``constraints``
        """
        if not samples:
            return {}
        samples = sorted(samples, key=lambda sample: -len(sample["source"]))
        batch = self._collate(samples)
        if self.first_line is not None:
            batch["constraints"] = self._constraints(batch, self.first_line + batch["id"])
        return batch

    def _collate(self, samples: list[dict]) -> dict:
        sources = [sample["source"] for sample in samples]
        lengths = torch.tensor([len(source) for source in sources])
        return {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()),
            "net_input": {
                "src_tokens": data_utils.collate_tokens(sources, self.dictionary.pad()),
                "src_lengths": lengths,
            },
            "target": None if samples[0]["target"] is None else torch.tensor([sample["target"] for sample in samples]),
        }

    def _constraints(self, batch: dict, numbers: Tensor) -> Tensor:
        return numbers.unsqueeze(1)

    def num_tokens(self, index: int) -> int:
        """Returns the number of tokens of a text."""
        return int(self.sizes[index])

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        """Returns the numbers of tokens of many texts."""
        return self.sizes[indices]

    size = num_tokens

    def ordered_indices(self) -> np.ndarray:
        """Returns the texts by length."""
        order = np.random.permutation(len(self)) if self.shuffle else np.arange(len(self))
        return order[np.argsort(self.sizes[order], kind="stable")]

    @property
    def supports_prefetch(self) -> bool:
        """Whether token files are read ahead, as those of ``--dataset-impl cached`` are."""
        return any(getattr(tokens, "supports_prefetch", False) for tokens in (self.tokens, self.targets))

    def prefetch(self, indices: Sequence[int]) -> None:
        """Reads token files ahead."""
        for tokens in (self.tokens, self.targets):
            if getattr(tokens, "supports_prefetch", False):
                tokens.prefetch(indices)


class DocumentDataset(TextDataset):
    """Documents with the trees of their sentences and, if known, their classes.

    Args:
        tokens: leaves of each document, with EOS or without
        lengths: leaves of each that a model reads, ``[documents]`` int64 (:func:`document_lengths`)
        dictionary: of the leaves
        trees: full trees of each document
        read_sentences: cuts the trees into sentences
        label_pad: label id of padding nodes
        targets: tokens of each document's classes, with EOS; None if they are not known
        class_dictionary: of these tokens
        shuffle, first_line: as for :class:`TextDataset`
    """

    def __init__(
        self,
        tokens: Sequence[Tensor],
        lengths: np.ndarray,
        dictionary: Dictionary,
        trees: Sequence[StoredTree],
        read_sentences: SentenceTreeReader,
        label_pad: int,
        targets: Sequence[Tensor] | None = None,
        class_dictionary: Dictionary | None = None,
        shuffle: bool = False,
        first_line: int | None = None,
    ):
        super().__init__(tokens, lengths, dictionary, targets, shuffle=shuffle, first_line=first_line)
        self.trees = trees
        self.read_sentences = read_sentences
        self.label_pad = label_pad
        self.class_dictionary = class_dictionary

    def __getitem__(self, index: int) -> dict:
        """Returns ``id``, ``source`` ``[N]`` int64, ``sentences`` and ``target``: the class from 0, or None."""
        length, tree = int(self.sizes[index]), self.trees[index]
        if length < tree.num_leaves:
            tree = cut_tree(tree, length)
        classes = None if self.targets is None else class_targets(self.targets[index], self.class_dictionary)
        target = None if classes is None else example_class(classes, index)
        return {
            "id": index,
            "source": self.tokens[index][:length].long(),
            "sentences": self.read_sentences(tree, classes),
            "target": target,
        }

    def _collate(self, samples: list[dict]) -> dict:
        """Adds ``sentence_trees`` and, if known, ``node_target`` ``[R, M]`` and ``leaf_target`` ``[R, N]``."""
        batch = super()._collate(samples)
        documents = [(sample["source"], sample["sentences"]) for sample in samples]
        batch["net_input"]["sentence_trees"] = collate_sentences(documents, self.dictionary.pad(), self.label_pad)
        sentences = [sentence for _, own in documents for sentence in own]
        return {**batch, **collate_targets(sentences)} if sentences[0].node_target is not None else batch

    def _constraints(self, batch: dict, numbers: Tensor) -> Tensor:
        return to_constraints(batch["net_input"]["sentence_trees"], numbers)


def document_lengths(
    trees: Sequence[StoredTree], leaves: np.ndarray, limit: int, place: Callable[[int], tuple[str, int]], name: str
) -> np.ndarray:
    """Returns how many leaves of each document a model reads; long documents are cut at a sentence, with a warning.

    Args:
        trees: full trees of each document
        leaves: of each document, ``[documents]``
        limit: the largest number of leaves
        place: returns the file of a document and its line in the file, from 1
        name: of the documents, for the warning

    Returns:
        ``[documents]`` int64

    Raises:
        LongSentenceError: the first sentence of a document is longer than the limit.
    """
    kept = np.array(leaves, np.int64)
    too_long, left_out = np.flatnonzero(kept > limit).tolist(), 0
    for index in too_long:
        kept[index], sentences = kept_leaves(trees[index], limit)
        left_out += sentences
        if not kept[index]:
            raise LongSentenceError(
                f"a sentence of {int(trees[index].end[0])} tokens, and --max-source-positions is {limit}",
                *place(index),
                hint="Give a greater --max-source-positions, or preprocess without the line.",
            )
    if too_long:
        logger.warning(
            "[%s] %d documents of more than %d tokens were cut at a sentence: %d sentences left out",
            name,
            len(too_long),
            limit,
            left_out,
        )
    return kept
