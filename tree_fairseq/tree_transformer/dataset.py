"""Pairs of sentences with the trees of the source, as a fairseq dataset."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from fairseq.data import LanguagePairDataset
from torch import Tensor

from tree_fairseq.nn.pair_dataset import WrappedPairs
from tree_fairseq.nn.tree_batch import NodeArrays, collate_trees

_FIELDS = ("label", "start", "end", "depth")


class TreeLanguagePairDataset(WrappedPairs):
    """Adds ``net_input["source_spans"]`` to the batches of a :class:`LanguagePairDataset`.

    Args:
        dataset: pairs of sentences
        trees: a forest for each pair, reduced to what a model reads
        label_pad: label id of padding nodes
        node_counts: nodes of each pair where ``--max-tokens`` counts them, else None
        keep_remainder: as :class:`WrappedPairs` has it
    """

    def __init__(
        self,
        dataset: LanguagePairDataset,
        trees: Sequence[NodeArrays],
        label_pad: int,
        node_counts: np.ndarray | None = None,
        keep_remainder: bool = False,
    ):
        super().__init__(dataset, keep_remainder)
        self.trees = trees
        self.label_pad = label_pad
        self.node_counts = node_counts

    def __getitem__(self, index: int) -> dict:
        return {**self.dataset[index], "source_spans": self.trees[index]}

    def collater(self, samples: list[dict], pad_to_length: dict | None = None) -> dict:
        """Collates pairs as the wrapped dataset does, and their trees in the same order."""
        batch = self.dataset.collater(samples, pad_to_length=pad_to_length)
        if batch:
            trees = {sample["id"]: sample["source_spans"] for sample in samples}
            in_order = [trees[index] for index in batch["id"].tolist()]
            batch["net_input"]["source_spans"] = collate_trees(in_order, self.label_pad)
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
        """A batch with ``source_spans`` and its packed form."""
        batch = super().collater(samples, pad_to_length)
        if batch:
            batch["constraints"] = pack_trees(batch["net_input"]["source_spans"])
        return batch


def pack_trees(source_spans: dict[str, Tensor]) -> Tensor:
    """Collated trees as one tensor ``[B, 4, M]``; :func:`unpack_trees` is its inverse."""
    return torch.stack([source_spans[name] for name in _FIELDS], dim=1)


def unpack_trees(packed: Tensor) -> dict[str, Tensor]:
    """The dict of ``[B, M]`` tensors that :func:`pack_trees` was given."""
    return dict(zip(_FIELDS, packed.unbind(1)))
