"""Insertion-based generation of trees (Lukovnikov & Fischer 2021).

Every tree starts as a root. In each step every slot of all unfinished trees gets the best prediction: a node, or
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tree_fairseq.tree_insertion.dictionary import InsertionDictionary
from tree_fairseq.tree_insertion.parallel_search import InsertionLimits, ParallelSearch, PartialOutputs, SlotPredictions
from tree_fairseq.tree_insertion.target import KINDS
from tree_fairseq.tree_insertion.tree_shapes import TreeShapes, partial_tree_input


@dataclass(frozen=True)
class PartialTrees(PartialOutputs):
    """Partial trees with n nodes together."""

    kinds = KINDS
    shapes: TreeShapes  # the trees without their labels
    is_new: np.ndarray  # ``[n]`` bool, nodes that the last step inserted

    @property
    def slots(self) -> np.ndarray:
        return self.shapes.slots

    def model_input(self, pad: int) -> dict[str, Tensor]:
        return partial_tree_input(self.shapes, self.labels, pad)

    def nodes(self, row: int) -> slice:
        """Returns where the nodes of a tree are."""
        return slice(int(self.lengths[:row].sum()), int(self.lengths[: row + 1].sum()))

    def tree(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the labels and parents of a tree, each ``[M]`` int64."""
        nodes = self.nodes(row)
        return self.labels[nodes], np.maximum(self.shapes.parents[nodes] - nodes.start, -1)

    def select(self, rows: np.ndarray) -> PartialTrees:
        shapes, nodes = self.shapes.select(rows)
        return PartialTrees(self.labels[nodes], self.scores[nodes], shapes.lengths, shapes, self.is_new[nodes])

    def inserted(self, chosen: SlotPredictions) -> PartialTrees:
        """Inserts nodes in different slots."""
        shapes, sources = self.shapes.inserted(chosen.slots)
        labels = np.concatenate([self.labels, chosen.labels])[sources]
        scores = np.concatenate([self.scores, chosen.log_probs])[sources]
        return PartialTrees(labels, scores, shapes.lengths, shapes, sources >= len(self.labels))


class InsertionGenerator(ParallelSearch):
    """Generates one tree for each sentence of a batch; a hypothesis is a tree, which may be partial.

    The hypotheses have, in addition to the entries of :meth:`ParallelSearch.generate`,

    - ``tokens`` ``[T]`` int64: the tree as a sequence, see :meth:`InsertionDictionary.sequence`
    - ``labels``, ``parents`` ``[M]`` int64: its nodes in preorder, with the root that decoding begins with
    - ``positional_scores`` ``[T]``: log-probabilities with which the labels of ``tokens`` were inserted, 0 for brackets
    - ``is_new`` ``[M]`` bool: its nodes that the last step inserted
    - ``history``: the ``tokens`` after each step; only with ``keep_history``
    """

    outputs, size_unit = "trees", "nodes"
    reasons = {
        "nodes": "{count} would have had more than {limits.nodes} nodes and are partial",
        "steps": "{count} were not finished after {limits.steps} steps",
        "roots": "{count} are not one tree under their root",
    }

    def __init__(
        self,
        models: Sequence,
        dictionary: InsertionDictionary,
        limits: InsertionLimits = InsertionLimits(),
        normalize_scores: bool = True,
        keep_history: bool = False,
    ):
        super().__init__(models, dictionary, limits, limits.nodes + 1, normalize_scores)
        self.keep_history = keep_history
        self._histories: list[list[dict[str, Tensor]]] = []

    def start(self, count: int) -> PartialTrees:
        self._histories = [[] for _ in range(count)]
        shapes, labels = TreeShapes.of_parents([np.array([-1])] * count), np.full(count, self.dictionary.root)
        return PartialTrees(labels, np.zeros(count), shapes.lengths, shapes, np.zeros(count, bool))

    def advance(self, partial: PartialTrees, chosen: SlotPredictions, sentences: np.ndarray) -> PartialTrees:
        grown = partial.inserted(chosen)
        if self.keep_history:
            for row, sentence in enumerate(sentences.tolist()):
                labels, parents = grown.tree(row)
                self._histories[sentence].append({"tokens": self.dictionary.sequence(labels, parents)})
        return grown

    def hypothesis(self, partial: PartialTrees, row: int, sentence: int) -> dict[str, Any]:
        nodes, (labels, parents) = partial.nodes(row), partial.tree(row)
        tokens = self.dictionary.sequence(labels.tolist(), parents.tolist())
        is_label = tokens.numpy() < self.dictionary.open
        positional = np.zeros(len(tokens), np.float32)
        # The sequence may leave out the root that decoding began with, the first node.
        positional[is_label] = partial.scores[nodes][len(labels) - int(is_label.sum()) :]
        found: dict[str, Any] = {
            "tokens": tokens,
            "labels": torch.from_numpy(labels),
            "parents": torch.from_numpy(parents),
            "positional_scores": torch.from_numpy(positional),
            "is_new": torch.from_numpy(partial.is_new[nodes]),
        }
        if self.keep_history:
            found["history"] = self._histories[sentence]
        return found

    def defect(self, hypothesis: dict[str, Any]) -> str | None:
        """Returns ``roots`` for an output that is not one tree under the first root."""
        return "roots" if int((hypothesis["parents"] == 0).sum()) != 1 else None
