"""Parallel insertion decoding: each step fills all slots of all partial outputs of a batch at once.

In each step the models predict a label, or nothing, for every slot. An output is finished when a step changes nothing
in it, or when it reaches a limit; its row then leaves the batch. The outputs are NumPy arrays on the CPU: models get
them, and their predictions come back, once a step. n is the number of all nodes or tokens of the R rows.
"""

from __future__ import annotations

import functools
import logging
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from fairseq import utils

from tree_fairseq.nn.modalities import SOURCE_INPUTS
from tree_fairseq.nn.tensors import mean_log_probs
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary

logger = logging.getLogger(__name__)

_FLOOR = -1e4  # the smallest log-probability of inserting nothing, which keeps scores finite


@dataclass(frozen=True)
class PartialOutputs:
    """Outputs of R rows, one after the other."""

    kinds: ClassVar[int]  # of slots at each node or token
    labels: np.ndarray  # ``[n]`` int64
    # ``[n]`` float64, log-probabilities with which the labels were inserted, 0 for labels from the start
    scores: np.ndarray
    lengths: np.ndarray  # ``[R]`` int64, numbers of nodes or tokens

    @functools.cached_property
    def rows(self) -> np.ndarray:
        """``[n]`` int64, the row of each node or token."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def slots(self) -> np.ndarray:
        """``[Z]`` int64, the numbers of all slots of these outputs, ascending."""
        raise NotImplementedError

    def model_input(self, pad: int) -> Any:
        """Returns the outputs as models read them."""
        raise NotImplementedError

    def select(self, rows: np.ndarray) -> PartialOutputs:
        """Keeps some rows, ``[R']`` int64, ascending."""
        raise NotImplementedError


@dataclass(frozen=True)
class SlotPredictions:
    """The prediction for each slot of R partial outputs, ``[Z]`` each."""

    slots: np.ndarray
    labels: np.ndarray  # the dictionary's ``keep`` where nothing is inserted
    log_probs: np.ndarray


@dataclass(frozen=True)
class InsertionLimits:
    """Where decoding stops: at steps, including the last one, and at nodes, without those of the first root."""

    steps: int = 50
    nodes: int = 250


class ParallelSearch:
    """Generates one hypothesis for each sentence of a batch, with the best prediction in every slot.

    The probabilities of one or more models are averaged. Labels that cannot occur in a tree, such as the root's and
    ``<unk>``, are never predicted; the probabilities of the others are not renormalised. Nothing is inserted where all
    of these are zero or not numbers. Partial outputs have at most ``max_length`` nodes or tokens. ``normalize_scores``
    divides scores by the number of predictions.

    Models have an ``encode``, which returns a memory of R rows, and a ``decode``, which reads it with R partial outputs
    and returns ``slot`` ``[Z]`` and ``logits`` ``[Z, V]``.

    Attributes:
        eos: id that fairseq's commands do not print
        counts: numbers of sentences, under :attr:`outputs`, and of incomplete ones, by their :attr:`reasons`
        observer: keeps the steps, such as :class:`tree_fairseq.tree_insertion.views.InsertionViews`
    """

    outputs: str  # ``trees`` or ``sequences``
    size_unit: str  # ``nodes`` or ``tokens``; also the reason why outputs are incomplete that would be too large
    reasons: dict[str, str]  # messages about incomplete outputs, by reason; ``count`` and ``limits`` are filled in

    def __init__(
        self,
        models: Sequence,
        dictionary: InsertionDictionary,
        limits: InsertionLimits,
        max_length: int,
        normalize_scores: bool,
    ):
        self.models = models
        for model in models:
            model.eval()
        self.dictionary = dictionary
        self.eos = dictionary.eos()
        self.limits = limits
        self.max_length = max_length
        self.normalize_scores = normalize_scores
        self.counts: Counter[str] = Counter()
        self.observer: Any = None
        self._has_warned = False
        self._is_excluded = torch.ones(len(dictionary), dtype=torch.bool)
        self._is_excluded[[*dictionary.label_ids, dictionary.keep]] = False

    def start(self, count: int) -> PartialOutputs:
        """Returns the outputs that decoding begins with, one for each of ``count`` sentences."""
        raise NotImplementedError

    def advance(self, partial: Any, chosen: SlotPredictions, sentences: np.ndarray) -> PartialOutputs:
        """Does one step: fills the chosen slots; ``sentences`` ``[R]`` are places in the batch."""
        return partial.inserted(chosen)

    def hypothesis(self, partial: Any, row: int, sentence: int) -> dict[str, Any]:
        """Returns the entries of a hypothesis that describe its output, a row of finished outputs."""
        raise NotImplementedError

    def defect(self, hypothesis: dict[str, Any]) -> str | None:
        """Returns the reason why an output within all limits is incomplete; None if it is complete."""
        return None

    @torch.no_grad()
    def generate(self, models, sample: dict, **unused) -> list[list[dict]]:
        """Generates hypotheses for each sentence of a batch. ``models`` are not read; the search has its own.

        The hypotheses have the entries of :meth:`hypothesis`; ``score``, the mean, or sum, of the log-probabilities of
        all predictions in all steps; ``steps``, their number, including the last one; ``is_complete``, false for a
        partial output; ``reason``, why it is partial, or None; ``alignment`` and ``attention``, None.
        """
        found = self._search(sample["net_input"])
        for hypothesis in found:
            self.counts.update([self.outputs] if hypothesis["is_complete"] else [self.outputs, hypothesis["reason"]])
        if not all(hypothesis["is_complete"] for hypothesis in found):
            parts = [text.format(count=self.counts[name], limits=self.limits) for name, text in self.reasons.items()]
            count = self.counts[self.outputs]
            logger.warning("[insertion] of %d %s so far, %s", count, self.outputs, ", ".join(parts))
        return [[hypothesis] for hypothesis in found]

    def _search(self, net_input: dict[str, Any]) -> list[dict]:
        count, device = len(net_input["src_tokens"]), net_input["src_tokens"].device
        hypotheses: list[dict] = [{} for _ in range(count)]
        sentences = np.arange(count)
        memories, partial = self._encode(net_input), self.start(count)
        totals, numbers = np.zeros(count), np.zeros(count)  # log-probabilities and numbers of predictions
        step = 0
        while len(sentences):
            step += 1
            predictions = self._predict(memories, partial, device)
            rows, size = partial.rows[predictions.slots // partial.kinds], len(sentences)
            totals += np.bincount(rows, predictions.log_probs, minlength=size)
            numbers += np.bincount(rows, minlength=size)
            is_inserted = predictions.labels != self.dictionary.keep
            # Outputs that would become too large are not changed any more.
            is_too_large = partial.lengths + np.bincount(rows[is_inserted], minlength=size) > self.max_length
            inserted = np.flatnonzero(is_inserted & ~is_too_large[rows])
            is_unchanged = np.ones(size, bool)
            is_unchanged[rows[inserted]] = False
            chosen = (part[inserted] for part in (predictions.slots, predictions.labels, predictions.log_probs))
            partial = self.advance(partial, SlotPredictions(*chosen), sentences)
            is_finished = is_unchanged | (step >= self.limits.steps)
            if not is_finished.any():
                continue
            finished = np.flatnonzero(is_finished)
            state = (part[finished].tolist() for part in (sentences, is_too_large, is_unchanged, totals, numbers))
            done = partial.select(finished)
            for row, (sentence, too_large, unchanged, total, number) in enumerate(zip(*state)):
                reason = self.size_unit if too_large else None if unchanged else "steps"
                hypothesis = self.hypothesis(done, row, sentence)
                reason = reason or self.defect(hypothesis)
                hypotheses[sentence] = hypothesis | {
                    "score": total / number if self.normalize_scores else total,
                    "steps": step,
                    "is_complete": reason is None,
                    "reason": reason,
                    "alignment": None,
                    "attention": None,
                }
            unfinished = np.flatnonzero(~is_finished)
            sentences, totals, numbers = sentences[unfinished], totals[unfinished], numbers[unfinished]
            if len(unfinished):
                partial, stay = partial.select(unfinished), torch.from_numpy(unfinished).to(device)
                memories = [memory.select(stay) for memory in memories]
        return hypotheses

    def _encode(self, net_input: dict[str, Any]) -> list:
        names = ("src_tokens", "src_lengths", *SOURCE_INPUTS)
        inputs = {name: net_input[name] for name in names if name in net_input}
        return [model.encode(**inputs) for model in self.models]

    def _predict(self, memories: list, partial: Any, device: torch.device) -> SlotPredictions:
        """Finds a prediction for each slot, given memories of all models and the outputs so far."""
        inputs = utils.apply_to_sample(lambda values: values.to(device), partial.model_input(self.dictionary.pad()))
        outputs = [model.decode(memory, inputs) for model, memory in zip(self.models, memories)]
        scores = mean_log_probs([output["logits"] for output in outputs])
        self._is_excluded = self._is_excluded.to(scores.device)
        scores.masked_fill_(self._is_excluded, -math.inf)
        scores[:, self.dictionary.keep].clamp_(min=_FLOOR)
        log_probs, labels = scores.max(dim=1)  # NaN if any of them is
        if bool(log_probs.isnan().any()):
            self._warn_of_faults()
            scores.masked_fill_(scores.isnan(), -math.inf)
            scores[:, self.dictionary.keep].clamp_(min=_FLOOR)
            log_probs, labels = scores.max(dim=1)
        if self.observer is not None:
            self.observer.keep(partial, scores)
        return SlotPredictions(partial.slots, labels.cpu().numpy(), log_probs.double().cpu().numpy())

    def _warn_of_faults(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "[insertion] a model gives probabilities that are not numbers; nothing is inserted there. Its "
                "checkpoint may be damaged, or --fp16 may be too narrow for it"
            )
