"""Insertion-based generation of trees (Lukovnikov & Fischer 2021), and files that show its steps.

Every tree starts as a root. In each step every slot of all unfinished trees gets the best prediction: a node, or
nothing. Nodes that the models consider wrong are deleted right after, if the models were trained to delete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tree_fairseq.drawing.insertion_steps import InsertionStep, trace_to_svg, trace_to_text
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary
from tree_fairseq.tree_insertion.parallel_search import InsertionLimits, ParallelSearch, PartialOutputs, SlotPredictions
from tree_fairseq.tree_insertion.slots import SlotNumbers, delete_nodes, insert_nodes, with_slots


@dataclass(frozen=True)
class PartialTrees(PartialOutputs):
    """Partial trees of up to M nodes in preorder.

    Attributes:
        parents: ``[R, M]`` int64 places of the parents in the row; -1 for roots and padding
        is_new: ``[R, M]`` bool, nodes that the last step inserted
    """

    parents: Tensor
    is_new: Tensor

    slot_kinds = SlotNumbers.kinds

    @property
    def model_input(self) -> dict[str, Tensor]:
        return with_slots({"labels": self.labels, "parents": self.parents}, self.pad)

    def inserted(self, slots: Tensor, labels: Tensor, scores: Tensor) -> tuple[PartialTrees, Tensor]:
        """Inserts nodes in different slots, all ``[Z]``; returns the new trees and sources (:class:`ChangedTrees`)."""
        sources, parents = insert_nodes(self.parents, self.labels != self.pad, slots)
        return self._moved(sources, parents, labels, scores, sources >= self.labels.numel()), sources

    def deleted(self, is_deleted: Tensor) -> PartialTrees:
        """Deletes nodes other than roots, ``[R, M]`` bool; their children take their places."""
        sources, parents = delete_nodes(self.parents, self.labels != self.pad, is_deleted)
        return self._moved(sources, parents, None, None, moved(self.is_new, sources))

    def _moved(self, sources, parents, labels: Tensor | None, scores: Tensor | None, is_new: Tensor) -> PartialTrees:
        labels = moved(self.labels, sources, labels, self.pad)
        return PartialTrees(self.pad, labels, moved(self.scores, sources, scores), parents, is_new)


def moved(values: Tensor, sources: Tensor, new: Tensor | None = None, fill: int = 0) -> Tensor:
    """Moves values ``[R, M]`` of old nodes, and those of ``new`` nodes, to where the nodes are; pads with ``fill``."""
    parts = [values.flatten(), values.new_full((1,), fill)]  # -1 points to the last one
    if new is not None:
        parts.insert(1, new.to(values))
    return torch.cat(parts)[sources]


class InsertionGenerator(ParallelSearch):
    """Generates one tree for each sentence of a batch; a hypothesis is always a tree, if only a partial one.

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
        "nodes": "{count} would have had more than --max-nodes {limits.nodes} and are partial",
        "steps": "{count} were not finished after --max-insertion-steps {limits.steps}",
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

    def start(self, count: int, device: torch.device) -> PartialTrees:
        self._traces = [[] for _ in range(count)]
        labels = torch.full((count, 1), self.dictionary.root, device=device)
        parents, is_new = torch.full_like(labels, -1), torch.zeros_like(labels, dtype=torch.bool)
        return PartialTrees(self.dictionary.pad(), labels, torch.zeros(count, 1, device=device), parents, is_new)

    def advance(self, partial: PartialTrees, chosen: SlotPredictions, sentences: Tensor) -> PartialTrees:
        """Inserts nodes, then deletes nodes that were there before."""
        grown, sources = partial.inserted(chosen.slots, chosen.labels, chosen.log_probs)
        is_deleted = torch.zeros_like(grown.is_new)
        if chosen.is_wrong is not None:
            is_deleted = moved(chosen.is_wrong, sources, torch.zeros_like(chosen.slots))
        if self.keep_steps:
            self._trace(grown, is_deleted, sentences)
        return grown if chosen.is_wrong is None else grown.deleted(is_deleted)

    def hypothesis(self, partial: PartialTrees, row: int, sentence: int) -> dict[str, Any]:
        size = int(partial.lengths[row])
        labels, parents, scores = (part[row, :size] for part in (partial.labels, partial.parents, partial.scores))
        tokens = self.dictionary.sequence(labels.tolist(), parents.tolist())
        is_label = tokens < self.dictionary.open
        # The sequence may leave out the root that decoding began with, the first node.
        own = scores[size - int(is_label.sum()) :].float()
        positional = torch.zeros(len(tokens)).masked_scatter_(is_label, own)
        found = {"tokens": tokens, "labels": labels, "parents": parents, "positional_scores": positional}
        if self.keep_steps:
            found["trace"] = self._traces[sentence]
            found["history"] = [{"tokens": self._tokens_after(step)} for step in self._traces[sentence]]
        return found

    def defect(self, hypothesis: dict[str, Any]) -> str | None:
        """Returns ``roots`` for an output that is not one tree under the first root."""
        return "roots" if int((hypothesis["parents"] == 0).sum()) != 1 else None

    def _trace(self, trees: PartialTrees, is_deleted: Tensor, sentences: Tensor) -> None:
        parts = [part.tolist() for part in (trees.labels, trees.parents, trees.is_new, is_deleted)]
        for sentence, size, *values in zip(sentences.tolist(), trees.lengths.tolist(), *parts):
            self._traces[sentence].append(InsertionStep(*(value[:size] for value in values)))

    def _tokens_after(self, step: InsertionStep) -> Tensor:
        """Returns the tree after a step as a sequence; deleted nodes hand their children upwards."""
        places, labels, parents = {}, [], []
        for node, (label, parent, is_deleted) in enumerate(zip(step.labels, step.parents, step.is_deleted)):
            above = places.get(parent, -1)
            places[node] = above if is_deleted else len(labels)
            if not is_deleted:
                labels.append(label)
                parents.append(above)
        return self.dictionary.sequence(labels, parents)


def write_trace(
    trace: Sequence[InsertionStep], source: str, dictionary: InsertionDictionary, folder: Path, number: int
) -> None:
    """Writes the steps of a sentence, with its source text, as ``<number>.txt`` and ``<number>.svg`` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [[dictionary.words.label(dictionary[label]) for label in step.labels] for step in trace]
    steps = [replace(step, labels=labels) for step, labels in zip(trace, names)]
    text = f"{source}\n\n{trace_to_text(steps)}\n"
    for suffix, content in (("txt", text), ("svg", trace_to_svg(steps, title=source))):
        (folder / f"{number}.{suffix}").write_bytes(content.encode())
