"""Pairs of sentences with the trees of the source, as a fairseq dataset."""

from __future__ import annotations

from typing import Sequence

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, FairseqDataset, LanguagePairDataset
from torch import Tensor

from tree_fairseq.data.batch import NodeArrays, collate_trees

_FIELDS = ("label", "start", "end", "depth")


class TreeLanguagePairDataset(BaseWrapperDataset):
    """Adds ``net_input["source_tree"]`` to the batches of a :class:`LanguagePairDataset`.

    Args:
        dataset: pairs of sentences
        trees: a forest for each pair, reduced to what a model reads
        label_pad: label id of padding nodes
        node_counts: nodes of each pair where ``--max-tokens`` counts them, else None
        keep_remainder: keep the pairs that are left over when all batches but the last have a size
            that divides as asked for; fairseq drops them, of sorted sentences the longest
    """

    def __init__(
        self,
        dataset: LanguagePairDataset,
        trees: Sequence[NodeArrays],
        label_pad: int,
        node_counts: np.ndarray | None = None,
        keep_remainder: bool = False,
    ):
        super().__init__(dataset)
        self.keep_remainder = keep_remainder
        self.trees = trees
        self.label_pad = label_pad
        self.node_counts = node_counts

    @property
    def src(self):
        """Token data set of the sources; fairseq-generate asks it for the original text."""
        return self.dataset.src

    @property
    def tgt(self):
        """Token data set of the targets, or None."""
        return self.dataset.tgt

    def __getitem__(self, index: int) -> dict:
        return {**self.dataset[index], "source_tree": self.trees[index]}

    def collater(self, samples: list[dict], pad_to_length: dict | None = None) -> dict:
        """Collates pairs as the wrapped dataset does, and their trees in the same order."""
        batch = self.dataset.collater(samples, pad_to_length=pad_to_length)
        if batch:
            trees = {sample["id"]: sample["source_tree"] for sample in samples}
            in_order = [trees[index] for index in batch["id"].tolist()]
            batch["net_input"]["source_tree"] = collate_trees(in_order, self.label_pad)
        return batch

    def num_tokens(self, index: int) -> int:
        """Tokens of the longer side, the nodes counted with the source where asked for."""
        return int(self.num_tokens_vec(np.array([index]))[0])

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        """As :meth:`num_tokens`, for many pairs."""
        tokens = self.dataset.num_tokens_vec(indices)
        if self.node_counts is None:
            return tokens
        return np.maximum(tokens, self.dataset.src_sizes[indices] + self.node_counts[indices])

    def batch_by_size(
        self,
        indices: np.ndarray,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        required_batch_size_multiple: int = 1,
    ) -> list[np.ndarray]:
        """Cuts sorted pairs into batches, by their tokens as counted here."""
        if not len(indices):
            return []
        # Not the wrapped data set's: it would count by itself.
        batches = FairseqDataset.batch_by_size(
            self, indices, max_tokens, max_sentences, required_batch_size_multiple
        )
        rest = indices[sum(map(len, batches)) :]
        return [*batches, rest] if self.keep_remainder and len(rest) else batches

    def filter_indices_by_size(self, indices: np.ndarray, max_sizes):
        """By the lengths of the wrapped dataset: limits on positions concern leaves and targets."""
        return self.dataset.filter_indices_by_size(indices, max_sizes)


class ParsedLines(list):
    """Token tensors of lines that were parsed together, and their trees.

    fairseq's interactive command hands the list of token tensors from one method of the task to
    another and looks at nothing but its items, so the trees travel with the list.

    Args:
        tokens: ``[N]`` int64 each
        trees: a forest each
    """

    def __init__(self, tokens: Sequence[Tensor], trees: Sequence[NodeArrays]):
        super().__init__(tokens)
        self.trees = trees


class InferenceDataset(TreeLanguagePairDataset):
    """Lines to translate. Its batches carry the trees a second time, packed, as ``constraints``.

    The interactive command rebuilds each batch from tokens, lengths and constraints; the latter is
    the only road on which a tree reaches the model.
    """

    def collater(self, samples: list[dict], pad_to_length: dict | None = None) -> dict:
        """A batch with ``source_tree`` and its packed form."""
        batch = super().collater(samples, pad_to_length)
        if batch:
            batch["constraints"] = pack_trees(batch["net_input"]["source_tree"])
        return batch


def pack_trees(source_tree: dict[str, Tensor]) -> Tensor:
    """Collated trees as one tensor ``[B, 4, M]``; :func:`unpack_trees` is its inverse."""
    return torch.stack([source_tree[name] for name in _FIELDS], dim=1)


def unpack_trees(packed: Tensor) -> dict[str, Tensor]:
    """The dict of ``[B, M]`` tensors that :func:`pack_trees` was given."""
    return dict(zip(_FIELDS, packed.unbind(1)))
