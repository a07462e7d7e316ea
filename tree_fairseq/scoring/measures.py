"""Measures compare hypotheses with references line by line, and two systems with each other.

A :class:`Measure` computes a few metrics that belong together, of all sentences or of some. All are in percent, and
larger is better, except for ``ter``, ``mean_squared_error`` and ``average_crossing``.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.significance import Resampling, paired_test
from tree_fairseq.support.python_versions import import_library, zip_equal


class Measure(ABC):
    """Metrics of one system on a test set, which are functions of sums over sentences."""

    signatures: Mapping[str, str] = {}
    """The settings that two values of a metric must share to be comparable, by metric."""

    @staticmethod
    def aligned_counts(measures: Sequence[Any]) -> list[Any]:
        """Returns the counts of several systems, whose columns mean the same, ``[sentences, F]`` each."""
        return [measure.counts for measure in measures]

    @property
    @abstractmethod
    def counts(self) -> Any:
        """The counts of each sentence, ``[sentences, F]``."""

    @abstractmethod
    def statistic(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        """Computes metrics ``[...]`` from sums of counts, ``[..., F]``."""

    def metrics(self, indices: Sequence[int]) -> dict[str, float]:
        """Computes the metrics of some sentences."""
        return {name: float(value) for name, value in self.statistic(self.counts[list(indices)].sum(axis=0)).items()}

    def differences(self, baseline: Any, test: Resampling) -> dict[str, dict]:
        """Compares with the same measure of another system; returns ``difference``, ``p_value``, ``signature``."""
        return paired_test(*self.aligned_counts([baseline, self]), self.statistic, test)


TEXT_METRICS: dict[str, Callable[..., Metric]] = {"bleu": partial(BLEU, force=True), "chrf": CHRF, "ter": TER}
"""sacreBLEU's metrics by name; ``force`` keeps it from warning of text that looks tokenised."""


def text_metric(name: str, lowercase: bool = False, tokenize: str | None = None) -> Metric:
    """Returns a metric of sacreBLEU; ``tokenize`` is that of BLEU. TER ignores case, as it does by default there."""
    settings: dict[str, Any] = {} if name == "ter" else {"lowercase": lowercase}
    if name == "bleu" and tokenize is not None:
        settings["tokenize"] = tokenize
    try:
        return TEXT_METRICS[name](**settings)
    except KeyError:  # the library's own, without a sentence
        raise ScoringError(
            f"--tokenize {tokenize} is not a tokeniser of sacreBLEU's, such as 13a, none or zh"
        ) from None


class TextMeasure(Measure):
    """A metric of sacreBLEU: ``bleu``, ``chrf`` or ``ter``; there may be several references of each sentence."""

    def __init__(self, name: str, metric: Metric, references: Sequence[Sequence[str]], hypotheses: Sequence[str]):
        self.name, self._metric, self._references, self._hypotheses = name, metric, references, hypotheses
        self.metrics(range(1))  # the signature has the number of references, which the metric counts
        self.signatures = {name: str(metric.get_signature())}

    # sacreBLEU's own paired tests use the same two private functions.

    @cached_property
    def counts(self) -> np.ndarray:
        return np.array(self._metric._extract_corpus_statistics(self._hypotheses, self._references), np.float64)

    def statistic(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        def score(row: np.ndarray) -> float:
            return self._metric._aggregate_and_compute([row.tolist()]).score

        return {self.name: np.apply_along_axis(score, -1, sums)}

    def metrics(self, indices: Sequence[int]) -> dict[str, float]:
        hypotheses = [self._hypotheses[index] for index in indices]
        references = [[lines[index] for index in indices] for lines in self._references]
        return {self.name: self._metric.corpus_score(hypotheses, references).score}


class MeanMeasure(Measure):
    """Means over sentences, in percent, of values from 0 to 1 by metric: of outcomes, shares that are right."""

    def __init__(self, values: Mapping[str, Sequence[float]]):
        self.values = dict(values)

    @property
    def outcomes(self) -> dict[str, Sequence[bool]]:
        """The values that say which sentences are right."""
        return {name: values for name, values in self.values.items() if isinstance(values[0], bool)}

    @cached_property
    def counts(self) -> np.ndarray:
        columns = [np.asarray(column, np.float64) for column in self.values.values()]
        return np.stack([*columns, np.ones_like(columns[0])], axis=1)

    def statistic(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        return {name: 100 * sums[..., number] / sums[..., -1] for number, name in enumerate(self.values)}


class JoinedMeasure(Measure):
    """Several measures as one."""

    def __init__(self, measures: Sequence[Measure]):
        self._measures = measures
        self.signatures = {name: text for measure in measures for name, text in measure.signatures.items()}

    @cached_property
    def counts(self) -> np.ndarray:
        return np.hstack([measure.counts for measure in self._measures])

    def statistic(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        found, first = {}, 0
        for measure in self._measures:
            last = first + measure.counts.shape[1]
            found |= measure.statistic(sums[..., first:last])
            first = last
        return found


def exact_match(references: Sequence[Sequence[str]], hypotheses: Sequence[str]) -> MeanMeasure:
    """``exact_match``: the hypothesis has the tokens of one of the references of its sentence."""
    rows = zip_equal(hypotheses, *references)
    return MeanMeasure({"exact_match": [any(text.split() == ours.split() for text in texts) for ours, *texts in rows]})


ROUGE = ("rouge1", "rouge2", "rougeL")


def rouge(references: Sequence[str], hypotheses: Sequence[str]) -> MeanMeasure:
    """ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004): F1 of each text, by the library rouge-score.

    Tokens are those of the data: without stemming, and signs such as ``#`` count. Raises MissingLibraryError without
    rouge-score.
    """
    library = import_library("rouge_score.rouge_scorer", "scores", "ROUGE")
    logging.getLogger("absl").setLevel(logging.WARNING)
    at_blanks = SimpleNamespace(tokenize=str.split)  # rouge-score's own tokeniser keeps only letters and digits
    scorer = library.RougeScorer(list(ROUGE), use_stemmer=False, tokenizer=at_blanks)
    rows = [scorer.score(reference, hypothesis) for reference, hypothesis in zip_equal(references, hypotheses)]
    return MeanMeasure({name: [row[name].fmeasure for row in rows] for name in ROUGE})


def pltrdy_rouge(references: Sequence[str], hypotheses: Sequence[str]) -> MeanMeasure:
    """ROUGE by the library rouge of pltrdy, with which the paper of Treeformer computes it (Patel & Flanigan 2023).

    ``pltrdy_rouge1`` counts an n-gram once however often it occurs, and full stops end sentences, so the figures differ
    from those of :func:`rouge`. A text without words has 0. Raises MissingLibraryError without rouge.
    """
    scorer = import_library("rouge", "pltrdy", "--metrics pltrdy").Rouge()
    parts = {"pltrdy_rouge1": "rouge-1", "pltrdy_rouge2": "rouge-2", "pltrdy_rougeL": "rouge-l"}
    nothing = {part: {"f": 0.0} for part in parts.values()}
    rows = []
    for texts in zip_equal(hypotheses, references):
        has_words = all(text.strip(". ") for text in texts)  # the library refuses other texts
        rows.append(scorer.get_scores(*texts)[0] if has_words else nothing)
    return MeanMeasure({name: [row[part]["f"] for row in rows] for name, part in parts.items()})


ROUGES = {"rouge": rouge, "pltrdy": pltrdy_rouge}  # the two readings of ROUGE, by their names for ``--metrics``
