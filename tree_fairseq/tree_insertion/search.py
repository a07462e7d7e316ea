"""Insertion-based generation of trees (Lukovnikov & Fischer 2021), and files that show its steps.

Every tree starts as a root. In each step every slot of all unfinished trees gets the best prediction: a node, or
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tree_fairseq.drawing.insertion_steps import InsertionStep, trace_to_svg, trace_to_text
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary, label_of
from tree_fairseq.tree_insertion.parallel_search import InsertionLimits, ParallelSearch, PartialOutputs, SlotPredictions
from tree_fairseq.tree_insertion.target import KINDS
from tree_fairseq.tree_insertion.tree_shapes import TreeShapes, partial_tree_input


@dataclass(frozen=True)
class PartialTrees(PartialOutputs):
    """Partial trees with n nodes together.

    Attributes:
        shapes: the trees without their labels
        is_new: ``[n]`` bool, nodes that the last step inserted
    """

    kinds = KINDS
    shapes: TreeShapes
    is_new: np.ndarray

    @property
    def slots(self) -> np.ndarray:
        return self.shapes.slots

    def model_input(self, pad: int) -> dict[str, Tensor]:
        return partial_tree_input(self.shapes, self.labels, pad)

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
    - ``trace``, ``history``: each step, labelled with ids, and the trees after each step; only with ``keep_steps``

    Incomplete trees are counted by the limit that they reached, ``nodes`` or ``steps``, or as ``roots`` if the first
    root has no child or several.
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
        keep_steps: bool = False,
    ):
        super().__init__(models, dictionary, limits, limits.nodes + 1, normalize_scores)
        self.keep_steps = keep_steps
        self._traces: list[list[InsertionStep]] = []

    def start(self, count: int) -> PartialTrees:
        self._traces = [[] for _ in range(count)]
        shapes, labels = TreeShapes.of_roots(count), np.full(count, self.dictionary.root)
        return PartialTrees(labels, np.zeros(count), shapes.lengths, shapes, np.zeros(count, bool))

    def advance(self, partial: PartialTrees, chosen: SlotPredictions, sentences: np.ndarray) -> PartialTrees:
        grown = partial.inserted(chosen)
        if self.keep_steps:
            self._trace(grown, sentences)
        return grown

    def hypothesis(self, partial: PartialTrees, row: int, sentence: int) -> dict[str, Any]:
        nodes = slice(int(partial.lengths[:row].sum()), int(partial.lengths[: row + 1].sum()))
        labels, parents = partial.labels[nodes], np.maximum(partial.shapes.parents[nodes] - nodes.start, -1)
        tokens = self.dictionary.sequence(labels.tolist(), parents.tolist())
        is_label = tokens.numpy() < self.dictionary.open
        positional = np.zeros(len(tokens), np.float32)
        # The sequence may leave out the root that decoding began with, the first node.
        positional[is_label] = partial.scores[nodes][len(labels) - int(is_label.sum()) :]
        found = {"tokens": tokens, "positional_scores": torch.from_numpy(positional)}
        found |= {"labels": torch.from_numpy(labels), "parents": torch.from_numpy(parents)}
        if self.keep_steps:
            found["trace"] = self._traces[sentence]
            found["history"] = [
                {"tokens": self.dictionary.sequence(step.labels, step.parents)} for step in self._traces[sentence]
            ]
        return found

    def defect(self, hypothesis: dict[str, Any]) -> str | None:
        """Returns ``roots`` for an output that is not one tree under the first root."""
        return "roots" if int((hypothesis["parents"] == 0).sum()) != 1 else None

    def _trace(self, trees: PartialTrees, sentences: np.ndarray) -> None:
        shapes = trees.shapes
        parents = np.maximum(shapes.parents - shapes.starts, -1)
        parts = [part.tolist() for part in (trees.labels, parents, trees.is_new)]
        for sentence, end, size in zip(sentences.tolist(), trees.lengths.cumsum().tolist(), trees.lengths.tolist()):
            self._traces[sentence].append(InsertionStep(*(part[end - size : end] for part in parts)))


def write_trace(
    trace: Sequence[InsertionStep], source: str, dictionary: InsertionDictionary, folder: Path, number: int
) -> None:
    """Writes the steps of a sentence, with its source text, as ``<number>.txt`` and ``<number>.svg`` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [[label_of(dictionary[label]) for label in step.labels] for step in trace]
    steps = [replace(step, labels=labels) for step, labels in zip(trace, names)]
    text = f"{source}\n\n{trace_to_text(steps)}\n"
    for suffix, content in (("txt", text), ("svg", trace_to_svg(steps, title=source))):
        (folder / f"{number}.{suffix}").write_bytes(content.encode())
