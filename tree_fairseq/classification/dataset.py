"""Examples to be classified, as a fairseq dataset: documents of one sentence or many, with their trees and classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable

import numpy as np
import torch
from fairseq.data import Dictionary, data_utils
from torch import Tensor

from tree_fairseq.classification.rows import (
    RowReader,
    SentenceRow,
    class_targets,
    collate_rows,
    collate_targets,
    cut_tree,
    example_class,
    kept_leaves,
)
from tree_fairseq.data_bin.tree_store import StoredTree
from tree_fairseq.errors import LongSentenceError
from tree_fairseq.nn.pair_dataset import KeepsRemainder

# FROM data/labelled_texts: Texts and, if known, what is to be told of them, as a fairseq dataset.


class LabelledTexts(KeepsRemainder):
    """Texts with targets: classes from 0, or numbers.

    Args:
        tokens: of each text, as they are read
        lengths: how many of them are read, from the first, ``[texts]`` int64
        dictionary: of the tokens
        targets: lines of tokens that tell the target of each text; None where it is not known
        read_target: the target that such a line tells, and its number: an int for a class, a float for a number
        shuffle: whether texts of the same length come in random order
    """

    # A test set is classified to its last line; a text that is too long to be trained on is an error of the task's.
    keep_remainder = True

    def __init__(
        self,
        tokens: Sequence[Tensor],
        lengths: np.ndarray,
        dictionary: Dictionary,
        targets: Sequence[Tensor] | None = None,
        read_target: Callable[[Tensor, int], int | float] | None = None,
        shuffle: bool = False,
    ):
        self.tokens = tokens
        self.sizes = lengths
        self.dictionary = dictionary
        self.targets = targets
        self.read_target = read_target
        self.shuffle = shuffle

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> dict:
        """``id``, ``source`` ``[N]`` int64 and ``target``, or None."""
        return {
            "id": index,
            "source": self.tokens[index][: int(self.sizes[index])].long(),
            "target": None if self.targets is None else self.read_target(self.targets[index], index),
        }

    def collater(self, samples: list[dict], pad_to_length: dict | None = None) -> dict:
        """Stacks texts, the longest first, as recurrent encoders want them.

        Returns:
            ``id`` ``[B]``, ``nsentences``, ``ntokens``; ``net_input`` with ``src_tokens`` ``[B, N]``, padded on the right, and
            ``src_lengths`` ``[B]``; ``target`` ``[B]``, int64 classes from 0 or float32 numbers, or None
        """
        if not samples:
            return {}
        samples = sorted(samples, key=lambda sample: -len(sample["source"]))
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

    def num_tokens(self, index: int) -> int:
        """Tokens of a text."""
        return int(self.sizes[index])

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        """As :meth:`num_tokens`, for many texts."""
        return self.sizes[indices]

    def size(self, index: int) -> int:
        """Tokens of a text."""
        return int(self.sizes[index])

    def ordered_indices(self) -> np.ndarray:
        """The texts by length."""
        order = np.random.permutation(len(self)) if self.shuffle else np.arange(len(self))
        return order[np.argsort(self.sizes[order], kind="stable")]

    @property
    def supports_prefetch(self) -> bool:
        """Whether token files want to be read ahead, as those of ``--dataset-impl cached`` do."""
        return any(getattr(tokens, "supports_prefetch", False) for tokens in (self.tokens, self.targets))

    def prefetch(self, indices: Sequence[int]) -> None:
        """Reads token files ahead."""
        for tokens in (self.tokens, self.targets):
            if getattr(tokens, "supports_prefetch", False):
                tokens.prefetch(indices)


class DocumentLengths:
    """The leaves of documents, those beyond a limit cut to whole sentences.

    Args:
        trees: full trees of each document
        leaves: of each document, ``[documents]``
        limit: leaves that a model may read at most
        place: tells the file of a document and its line in it, from 1

    Attributes:
        kept: leaves of each document after the cut, ``[documents]`` int64
        cut: how many documents were cut
        left_out: how many sentences that cost

    Raises:
        LongSentenceError: the first sentence of a document is longer than the limit.
    """

    def __init__(
        self, trees: Sequence[StoredTree], leaves: np.ndarray, limit: int, place: Callable[[int], tuple[str, int]]
    ):
        self.kept = np.asarray(leaves, np.int64).copy()
        self.cut = self.left_out = 0
        for index in np.flatnonzero(self.kept > limit).tolist():
            length, left_out = kept_leaves(trees[index], limit)
            if not length:
                path, line = place(index)
                raise LongSentenceError(
                    f"a sentence of {int(trees[index].end[0])} tokens, and --max-source-positions is {limit}",
                    path,
                    line,
                    hint="Give a greater --max-source-positions, or preprocess without the line.",
                )
            self.kept[index] = length
            self.cut += 1
            self.left_out += left_out

    def message(self, limit: int) -> str:
        """What was cut, in words."""
        return f"{self.cut} documents of more than {limit} tokens were cut at a sentence: {self.left_out} sentences left out"


class ClassificationDataset(LabelledTexts):
    """Documents with the trees of their sentences and, if known, their classes.

    Args:
        tokens: leaves of each document, with EOS or without
        trees: full trees of each document
        lengths: leaves of each that a model reads, ``[documents]`` int64: all, or those of its first sentences
        read_rows: makes rows of the trees
        dictionary: of the leaves
        label_pad: label id of padding nodes
        classes: tokens of each document's classes, with EOS; None where they are not known
        class_dictionary: of these tokens
        shuffle: whether documents of the same length come in random order
    """

    def __init__(
        self,
        tokens: Sequence[Tensor],
        trees: Sequence[StoredTree],
        lengths: np.ndarray,
        read_rows: RowReader,
        dictionary: Dictionary,
        label_pad: int,
        classes: Sequence[Tensor] | None = None,
        class_dictionary: Dictionary | None = None,
        shuffle: bool = False,
    ):
        super().__init__(tokens, lengths, dictionary, classes, shuffle=shuffle)
        self.trees = trees
        self.read_rows = read_rows
        self.label_pad = label_pad
        self.class_dictionary = class_dictionary

    def __getitem__(self, index: int) -> dict:
        """``id``, ``source`` ``[N]`` int64, ``rows``, and ``target``: the class from 0, or None."""
        length = int(self.sizes[index])
        tree = self.trees[index]
        if length < tree.num_leaves:
            tree = cut_tree(tree, length)
        classes = None if self.targets is None else class_targets(self.targets[index], self.class_dictionary)
        target = None if classes is None else example_class(classes, index)
        return {
            "id": index,
            "source": self.tokens[index][:length].long(),
            "rows": self.read_rows(tree, classes),
            "target": target,
        }

    def collater(self, samples: list[dict], pad_to_length: dict | None = None) -> dict:
        """Stacks documents, the longest first, as recurrent encoders want them.

        Returns:
            what :meth:`LabelledTexts.collater` does, the sources without EOS; in ``net_input`` also ``sentence_trees``
            (:func:`tree_fairseq.classification.rows.collate_rows`); and where nodes have classes ``node_target`` ``[R, M]``
            and ``leaf_target`` ``[R, N]``
        """
        if not samples:
            return {}
        batch = super().collater(samples, pad_to_length)
        samples = sorted(samples, key=lambda sample: -len(sample["source"]))
        rows: list[SentenceRow] = [row for sample in samples for row in sample["rows"]]
        batch["net_input"]["sentence_trees"] = collate_rows(
            [(sample["source"], sample["rows"]) for sample in samples], self.dictionary.pad(), self.label_pad
        )
        return {**batch, **collate_targets(rows)} if rows[0].node_target is not None else batch
