"""Insertion-based decoding: trees grow from their roots, all slots of a batch at once, until every slot is to be left as it is."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tree_fairseq.drawing.insertion_steps import InsertionStep, trace_to_svg, trace_to_text
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary
from tree_fairseq.tree_insertion.parallel_search import (
    GrowingSearch,
    InsertionEnsemble,
    InsertionLimits,
    InsertionModel,
    SlotAnswers,
)
from tree_fairseq.tree_insertion.partial_trees import PartialTrees
from tree_fairseq.tree_insertion.slots import SlotNumbers

logger = logging.getLogger(__name__)


class TracedStep(NamedTuple):
    """A tree in the middle of a step: after the insertions, before the deletions.

    Attributes:
        labels: ``[n]`` dictionary ids in preorder
        parents: ``[n]`` places of the parents, -1 for the root
        is_new: ``[n]`` bool, nodes that this step inserted
        is_deleted: ``[n]`` bool, nodes that this step deletes
    """

    labels: list[int]
    parents: list[int]
    is_new: list[bool]
    is_deleted: list[bool]


@dataclass
class _Sentence:
    """What is collected of one sentence."""

    hypothesis: dict[str, Any] = field(default_factory=dict)
    trace: list[TracedStep] = field(default_factory=list)


class InsertionGenerator(GrowingSearch):
    """Generates trees for a batch, the best answer in every slot; one hypothesis a sentence.

    In each step the models read the partial trees of all sentences that are not finished, and every slot gets what they think best:
    a node, or nothing. Nodes that they think wrong are deleted right after, if they were trained to. A sentence is finished when
    nothing changes; that step counts. Whatever they say, what is returned is a tree: where a limit is reached, the partial one.

    Args:
        models: of insertions
        dictionary: of labels
        limits: of steps and nodes
        normalize_scores: whether scores are means
        keep_steps: whether hypotheses tell how they came about

    Attributes:
        counts: how many trees were generated (``trees``), how many of these are incomplete, and why: ``nodes`` or ``steps`` for the
            limits, ``roots`` for those that grew from their root in several places or in none
    """

    grown = "trees"

    def __init__(
        self,
        models: Sequence[InsertionModel],
        dictionary: InsertionDictionary,
        limits: InsertionLimits = InsertionLimits(),
        normalize_scores: bool = True,
        keep_steps: bool = False,
    ):
        super().__init__(InsertionEnsemble(models, dictionary), dictionary.eos(), limits, normalize_scores)
        self.dictionary = dictionary
        self.keep_steps = keep_steps

    def grow(self, net_input: dict[str, Any]) -> list[dict]:
        """Grows a tree for each sentence of a batch.

        Args:
            net_input: of fairseq's batch

        Returns:
            for each sentence

            - ``tokens`` ``[L]`` int64: the tree as a sequence, see :meth:`InsertionDictionary.sequence`
            - ``labels``, ``parents`` ``[N]`` int64: its nodes in preorder, the root that decoding began with among them
            - ``positional_scores`` ``[L]``: log-probabilities with which the labels of ``tokens`` were inserted, 0 for brackets
            - what :meth:`ended` tells; ``is_complete`` wants one tree under that root
            - ``trace``, ``history``: a :class:`TracedStep` for each step, and the trees after each; where steps are kept
        """
        count, device = len(net_input["src_tokens"]), net_input["src_tokens"].device
        sentences = [_Sentence() for _ in range(count)]
        rows = torch.arange(count, device=device)
        memories = self.ensemble.read(net_input)
        trees = PartialTrees.roots(count, self.dictionary.root, self.dictionary.pad(), device)
        sums = torch.zeros(count, 2, device=device)  # of log-probabilities, and of answers
        step = 0
        while len(rows):
            step += 1
            answers = self.ensemble.answer(memories, trees.partial_tree)
            row = SlotNumbers(trees.labels.size(1)).row(answers.slots)
            sums.index_add_(0, row, torch.stack([answers.scores.to(sums), torch.ones_like(sums[row, 0])], dim=1))
            answers, is_too_large = self._within_limit(answers, row, trees)
            trees, is_unchanged = self._step(trees, answers, row, rows, sentences)
            is_finished = is_unchanged if step < self.limits.steps else torch.ones_like(is_unchanged)
            if not is_finished.any():
                continue
            ends = torch.where(is_too_large, _NODES, torch.where(is_unchanged, _AGREED, _STEPS))
            finished, going = is_finished.nonzero().squeeze(1), (~is_finished).nonzero().squeeze(1)
            self._finish(sentences, rows, trees, sums, ends, step, finished)
            rows, sums = rows[going], sums[going]
            if len(going):
                trees, memories = trees.select(going), [memory.select(going) for memory in memories]
        return [sentence.hypothesis for sentence in sentences]

    def _within_limit(self, answers: SlotAnswers, row: Tensor, trees: PartialTrees) -> tuple[SlotAnswers, Tensor]:
        """Nothing changes any more in trees that would become too large; and which they are, ``[B]`` bool."""
        is_inserted = answers.labels != self.dictionary.keep
        counts = trees.counts.index_add(0, row, is_inserted.long())
        is_too_large = counts > self.limits.nodes + 1
        labels = answers.labels.masked_fill(is_too_large[row], self.dictionary.keep)
        is_wrong = None if answers.is_wrong is None else answers.is_wrong & ~is_too_large.unsqueeze(1)
        return replace(answers, labels=labels, is_wrong=is_wrong), is_too_large

    def _step(
        self, trees: PartialTrees, answers: SlotAnswers, row: Tensor, rows: Tensor, sentences: list[_Sentence]
    ) -> tuple[PartialTrees, Tensor]:
        """Inserts and deletes; the new trees, and which are as before, ``[B]`` bool."""
        inserted = (answers.labels != self.dictionary.keep).nonzero().squeeze(1)
        is_unchanged = torch.ones_like(rows, dtype=torch.bool).index_fill_(0, row[inserted], False)
        wrong = None
        if answers.is_wrong is not None:
            wrong = answers.is_wrong & (trees.parents >= 0)
            is_unchanged &= ~wrong.any(dim=1)
        grown, moved = trees.inserted(answers.slots[inserted], answers.labels[inserted], answers.scores[inserted])
        is_deleted = None
        if wrong is not None:
            is_deleted = wrong.gather(1, moved.clamp(min=0)) & (moved >= 0)
        if self.keep_steps:
            _trace(sentences, rows, grown, is_deleted)
        return grown if is_deleted is None else grown.deleted(is_deleted), is_unchanged

    def _finish(
        self,
        sentences: list[_Sentence],
        rows: Tensor,
        trees: PartialTrees,
        sums: Tensor,
        ends: Tensor,
        step: int,
        finished: Tensor,
    ) -> None:
        """Makes hypotheses of the rows that are finished."""
        counts, all_rows, all_ends, all_sums = trees.counts.tolist(), rows.tolist(), ends.tolist(), sums.tolist()
        all_labels, all_parents, all_scores = trees.labels.cpu(), trees.parents.cpu(), trees.scores.cpu()
        for place in finished.tolist():
            size = counts[place]
            labels, parents, scores = (part[place, :size] for part in (all_labels, all_parents, all_scores))
            reason = _REASONS[all_ends[place]]
            if reason is None and int((parents == 0).sum()) != 1:
                reason = "roots"
            sentence = sentences[all_rows[place]]
            sentence.hypothesis = self._hypothesis(labels, parents, scores) | self.ended(*all_sums[place], step, reason)
            if self.keep_steps:
                sentence.hypothesis["trace"] = sentence.trace
                sentence.hypothesis["history"] = [{"tokens": self._tokens_after(step)} for step in sentence.trace]

    def _hypothesis(self, labels: Tensor, parents: Tensor, scores: Tensor) -> dict[str, Tensor]:
        tokens = self.dictionary.sequence(labels.tolist(), parents.tolist())
        is_label = tokens < self.dictionary.open
        # The sequence begins with the root that decoding began with, or with its only child.
        said = scores[len(labels) - int(is_label.sum()) :]
        positional = torch.zeros(len(tokens)).masked_scatter_(is_label, said.float())
        return {"tokens": tokens, "labels": labels, "parents": parents, "positional_scores": positional}

    def _tokens_after(self, step: TracedStep) -> Tensor:
        """The tree after a step as a sequence."""
        # Children of deleted nodes come to their nearest ancestors that stay.
        places, labels, parents = {}, [], []
        for node, (label, parent, is_deleted) in enumerate(
            zip(step.labels, step.parents, step.is_deleted, strict=True)
        ):
            above = places.get(parent, -1)
            if is_deleted:
                places[node] = above
            else:
                places[node] = len(labels)
                labels.append(label)
                parents.append(above)
        return self.dictionary.sequence(labels, parents)

    def tell(self) -> None:
        """Says how many trees are incomplete so far, and why."""
        why = [text.format(self.counts[name], self.limits) for name, text in _SAYS.items() if self.counts[name]]
        logger.warning("[insertion] of %d trees so far, %s", self.counts[self.grown], ", ".join(why))


_AGREED, _NODES, _STEPS = range(3)
_REASONS = (None, "nodes", "steps")
_SAYS = {
    "nodes": "{0} would have had more than --max-nodes {1.nodes} and are partial",
    "steps": "{0} were not finished after --max-insertion-steps {1.steps}",
    "roots": "{0} are not one tree under their root",
}


def _trace(sentences: list[_Sentence], rows: Tensor, trees: PartialTrees, is_deleted: Tensor | None) -> None:
    if is_deleted is None:
        is_deleted = torch.zeros_like(trees.is_new)
    parts = [part.tolist() for part in (trees.labels, trees.parents, trees.is_new, is_deleted)]
    for row, count, *values in zip(rows.tolist(), trees.counts.tolist(), *parts, strict=True):
        sentences[row].trace.append(TracedStep(*(value[:count] for value in values)))


# FROM generators/trace_files: Files that show how trees grew: the steps of each sentence as text and as SVG.


class TraceFiles:
    """Writes ``<number>.txt`` and ``<number>.svg`` into a folder, which is made if need be.

    Args:
        folder: for the files
        dictionary: of labels
    """

    def __init__(self, folder: str | Path, dictionary: InsertionDictionary):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.dictionary = dictionary
        self._written = 0

    def write(self, trace: Sequence[TracedStep], source: str, number: int | None = None) -> None:
        """Writes the steps of one sentence.

        Args:
            trace: its steps
            source: what it is of
            number: of the sentence; where batches have no numbers, the sentences are counted
        """
        number = self._written if number is None else number
        self._written += 1
        steps = [self._step(step) for step in trace]
        text = f"{source}\n\n{trace_to_text(steps)}\n"
        for suffix, content in (("txt", text), ("svg", trace_to_svg(steps, title=source))):
            (self.folder / f"{number}.{suffix}").write_text(content, encoding="utf-8", newline="\n")

    def _step(self, step: TracedStep) -> InsertionStep:
        labels = [self.dictionary.words.label(self.dictionary[label]) for label in step.labels]
        return InsertionStep(labels, step.parents, step.is_new, step.is_deleted)
