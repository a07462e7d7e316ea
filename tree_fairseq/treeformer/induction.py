"""Trees that a Treeformer induces (Patel & Flanigan 2023, section 6.6).

An induced tree splits every phrase, from the sentence down, at the split point with the greatest pooling weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from fairseq import utils
from torch import Tensor

from tree_fairseq.errors import InputError
from tree_fairseq.parsing.pieces import SplitWords, words_by_marks
from tree_fairseq.support.progress import with_progress
from tree_fairseq.tasks.folder_text import folder_text
from tree_fairseq.treeformer.model import TreeformerEncoder, TreeformerModel
from tree_fairseq.trees.subwords import split_words
from tree_fairseq.trees.tree import Forest, Tree, binary_tree

_LABEL = "X"  # of every phrase of an induced tree, and of every word
_MAX_TOKENS = 1000  # A chart as high as its sentence takes N * N vectors.


@dataclass(frozen=True)
class SentenceSplits:
    """The pooling weights of all split points of a sentence."""

    levels: Sequence[np.ndarray]  # of lengths L = 2 and above, ``[N - L + 1, L - 1]``, by the first column
    first: int  # the column of its first token in the batch

    def weights(self, start: int, end: int) -> np.ndarray:
        """Returns the weights of the split points of the phrase ``[start, end)``, from left to right, ``[L - 1]``."""
        return self.levels[end - start - 2][self.first + start]

    def tree(self, pieces: Sequence[Sequence[str]], words: Sequence[str] | None = None) -> Tree:
        """Induces the tree of a sentence from the tokens of each word, without EOS.

        Its leaves are ``words``; if None, the pieces, and those of a split word are siblings.
        """
        bounds = [0, *accumulate(map(len, pieces))]

        def split(start: int, end: int) -> int:
            inner = np.array(bounds[start + 1 : end])
            weights = self.weights(bounds[start], bounds[end])
            return start + 1 + int(weights[inner - bounds[start] - 1].argmax())

        leaves = ["".join(word) for word in pieces] if words is None else words
        tree = binary_tree(leaves, split, _LABEL)
        return tree if words is not None else split_words((tree,), pieces)[0]


def sentence_splits(encoders: Sequence[TreeformerEncoder], src_tokens: Tensor, pad: int) -> list[SentenceSplits]:
    """Computes the pooling weights of each sentence of a batch ``[B, N]``, the mean over an ensemble's encoders."""
    levels = [
        (sum(weights) / len(encoders)).float().cpu().numpy()
        for weights in zip(*(encoder.split_weights(src_tokens) for encoder in encoders))
    ]
    first = src_tokens.ne(pad).int().argmax(1).tolist()
    return [SentenceSplits([level[:, row] for level in levels], column) for row, column in enumerate(first)]


class Inducer:
    """Induces trees with the models of fairseq's hub interface; raises InputError if one is not a Treeformer."""

    def __init__(self, interface: Any):
        self.interface, self.cfg, self.task = interface, interface.cfg, interface.task
        for model in interface.models:
            if not isinstance(model, TreeformerModel):
                message = f"the checkpoint holds a {type(model).__name__}, which cannot induce trees"
                raise InputError(message, hint="Give a checkpoint of --arch treeformer.")
        self.dictionary = self.task.source_dictionary
        self.tokens: list[list[str]] = []

    def read_subset(self, split: str) -> None:
        """Reads the sentences of a split."""
        self.task.load_dataset(split)
        self.dataset = self.task.dataset(split)
        sources = (self.dataset[number]["source"] for number in range(len(self.dataset)))
        self.tokens = [self.dictionary.string(source).split() for source in sources]

    def read_text(self, lines: list[str]) -> None:
        """Reads raw text as ``fairseq-interactive`` does."""
        self.tokens = [self.interface.segment(line).split() for line in lines]
        joined = [" ".join(tokens) for tokens in self.tokens]
        encoded, lengths = self.task.get_interactive_tokens_and_lengths(joined, lambda line: line)
        self.dataset = self.task.build_dataset_for_inference(encoded, lengths)

    def _batches(self) -> Iterator[dict]:
        sizes = self.cfg.dataset
        batches = self.task.get_batch_iterator(
            self.dataset,
            max_tokens=_MAX_TOKENS if sizes.max_tokens is None and sizes.batch_size is None else sizes.max_tokens,
            max_sentences=sizes.batch_size,
            max_positions=self.interface.max_positions,
            ignore_invalid_inputs=sizes.skip_invalid_size_inputs_valid_test,
        ).next_epoch_itr(shuffle=False)
        shown = with_progress(batches, "induce", len(batches), "batches")
        return (utils.apply_to_sample(lambda tensor: tensor.to(self.interface.device), batch) for batch in shown)

    def words(self, number: int) -> SplitWords:
        """Returns the words of a sentence and their pieces, which the marks of subwords identify."""
        return words_by_marks(self.tokens[number])

    def trees(self) -> list[Forest | None]:
        """Returns one forest per sentence: empty for an empty sentence, None for one that is too long."""
        found: list[Forest | None] = [None] * len(self.tokens)
        text = folder_text(self.task)
        has_subwords = text is not None and text.source.kind is not None
        whole_words = has_subwords or self.cfg.common_eval.post_process is not None
        encoders = [model.encoder for model in self.interface.models]
        for batch in self._batches():
            splits = sentence_splits(encoders, batch["net_input"]["src_tokens"], self.dictionary.pad())
            for number, sentence in zip(batch["id"].tolist(), splits):
                split = self.words(number)
                leaves = split.words if whole_words else None
                found[number] = (sentence.tree(split.pieces, leaves),) if split.words else ()
        return found
