"""Stored constituency trees, reduced to the nodes that a model reads, and batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary

from tree_fairseq.data_bin.tree_store import ChainLabels, StoredTree
from tree_fairseq.nn.tree_batch import Branches
from tree_fairseq.trees.spans import TreeSpans, reduce_spans, reduced_depth, unary_chains


@dataclass(frozen=True)
class NodeArrays:
    """The nodes of one forest, reduced to those that a model reads: arrays ``[M]`` int32, as of :class:`TreeBatch`."""

    label: np.ndarray
    start: np.ndarray
    end: np.ndarray
    depth: np.ndarray

    def __len__(self) -> int:
        return len(self.label)


def collate_trees(trees: Sequence[NodeArrays], pad: int) -> dict[str, Any]:
    """Stacks B forests, padded on the right with nodes of empty span and label ``pad``.

    Returns:
        ``label``, ``start``, ``end`` and ``depth``, each ``[B, M]`` int64, and ``branches``, the lists of
        :class:`Branches` by name; spans are relative to the sentence, so the side on which the leaves are padded does
        not matter here.
    """
    shape = (len(trees), max((len(tree) for tree in trees), default=0))
    batch = {name: np.zeros(shape, np.int64) for name in ("label", "start", "end", "depth")}
    batch["label"].fill(pad)
    for row, tree in enumerate(trees):
        for name, array in batch.items():
            array[row, : len(tree)] = getattr(tree, name)
    branches = Branches.list(batch["start"], batch["end"], batch["depth"]).as_dict()
    return {**{name: torch.from_numpy(array) for name, array in batch.items()}, "branches": branches}


def as_stored(forest: TreeSpans, labels: Dictionary) -> StoredTree:
    """A forest as it would be stored."""
    label = np.array([labels.index(label) for label in forest.labels], np.int32)
    return StoredTree(len(forest.leaves), label, *forest.spans.T)


class TreeReader:
    """Drops preterminals and collapses unary chains when an item is loaded.

    A node of the result covers at least two leaves, so it has fewer nodes than leaves. A chain of constituents over the
    same leaves becomes one node, whose label is that of the ``lowest``, or the chain's labels ``join``ed.
    """

    def __init__(self, labels: Dictionary, unary_chains: str = "lowest"):
        self.labels = labels
        self.chains = ChainLabels(labels) if unary_chains == "join" else None

    def __call__(self, tree: StoredTree) -> NodeArrays:
        """Reduces one forest; nodes stay in preorder."""
        spans = np.stack([tree.start, tree.end], axis=1)
        if self.chains is None:
            kept = reduce_spans(spans)
            label = tree.label[kept]
        else:
            kept, chain_start = unary_chains(spans)
            label = self.chains.lookup(tree.label, chain_start, kept)
        start, end = spans[kept].T
        return NodeArrays(label, start, end, reduced_depth(start, end))

    def from_spans(self, forest: TreeSpans) -> NodeArrays:
        """Reduces a forest that is not stored, such as that of a line to translate."""
        return self(as_stored(forest, self.labels))


class ReducedTrees(Sequence):
    """The stored trees of a split as a model reads them, reduced one by one on demand."""

    def __init__(self, stored: Sequence[StoredTree], reader: TreeReader):
        self.stored, self.reader = stored, reader

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, index: int) -> NodeArrays:
        return self.reader(self.stored[index])
