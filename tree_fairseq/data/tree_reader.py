"""Full trees, as stored, reduced to the nodes that a model reads."""

from __future__ import annotations

from typing import Sequence

import numpy as np
from fairseq.data import Dictionary

from tree_fairseq.data.batch import NodeArrays
from tree_fairseq.data.label_dictionary import ChainLabels
from tree_fairseq.data.tree_store import StoredTree, TreeStore
from tree_fairseq.trees.spans import SpanForest, reduce_spans, reduced_depth, unary_chains

_LINES_AT_A_TIME = 100_000


class TreeReader:
    """Drops preterminals and collapses unary chains when an item is loaded.

    A node of the result covers at least two leaves, so it has fewer nodes than leaves. A chain of
    constituents over the same leaves becomes one node, whose label is that of the lowest or the
    whole chain's joined label.

    Args:
        labels: of the stored ids
        unary_chains: ``lowest`` or ``join``
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

    def from_spans(self, forest: SpanForest) -> NodeArrays:
        """Reduces a forest that is not stored yet, such as that of a line to translate."""
        label = np.array([self.labels.index(label) for label in forest.labels], np.int32)
        return self(StoredTree(len(forest.leaves), label, *forest.spans.T))


def kept_counts(store: TreeStore) -> np.ndarray:
    """``[lines]`` int64: how many nodes of each line a model reads."""
    counts = []
    for first in range(0, len(store), _LINES_AT_A_TIME):
        block = store.block(first, first + _LINES_AT_A_TIME)
        # The last node of a line is a preterminal, so that the first of the next never looks like its child.
        kept = reduce_spans(block.rows[:, 1:3])
        last = block.node_counts.astype(np.int64).cumsum()
        counts.append(np.diff(np.searchsorted(kept, last), prepend=0))
    return np.concatenate([np.zeros(0, np.int64), *counts])


class ReducedTrees(Sequence):
    """The trees of a split as a model reads them, reduced one by one on demand.

    Args:
        stored: full trees
        reader: the reduction
    """

    def __init__(self, stored: Sequence[StoredTree], reader: TreeReader):
        self.stored = stored
        self.reader = reader

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, index: int) -> NodeArrays:
        return self.reader(self.stored[index])
