"""Metrics of aligned hypotheses and references, of parts of a test set, and compared with those of another system.

A :class:`Measure` computes a few metrics that belong together. All are in percent, and larger is better, but for
``ter``, ``mean_squared_error`` and ``average_crossing``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric
from scipy.sparse import csr_array

from tree_fairseq.classification.metrics import class_figures_of_counts
from tree_fairseq.scoring import evalb
from tree_fairseq.scoring.predictions import ClassJudgement, number_metrics
from tree_fairseq.scoring.rouge import rouge
from tree_fairseq.scoring.significance import Resampling, paired_test, paired_text_test
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.symbols import exact_matches
from tree_fairseq.trees.tree import Forest, Tree

_NO_VARIANCE = 1e-12
"""A variance that is less than this share of the squares is that of equal numbers, and comes from rounding."""


class Measure(ABC):
    """Metrics of one system on a test set."""

    signatures: Mapping[str, str] = {}
    """What makes the value of a metric comparable, by metric."""

    @abstractmethod
    def metrics(self, indices: Sequence[int]) -> dict[str, float]:
        """Computes the metrics of some sentences."""

    @abstractmethod
    def differences(self, baseline: Any, test: Resampling) -> dict[str, dict]:
        """Compares with the same measure of another system; returns ``difference``, ``p_value``, ``signature``."""


TEXT_METRICS: dict[str, Callable[..., Metric]] = {"bleu": partial(BLEU, force=True), "chrf": CHRF, "ter": TER}
"""sacreBLEU's metrics by name; ``force`` keeps it from warning of text that looks tokenised."""


def text_metric(name: str, lowercase: bool = False, tokenize: str | None = None) -> Metric:
    """Returns a metric of sacreBLEU; ``tokenize`` is that of BLEU. TER ignores case, as it does by default there."""
    settings: dict[str, Any] = {} if name == "ter" else {"lowercase": lowercase}
    if name == "bleu" and tokenize is not None:
        settings["tokenize"] = tokenize
    return TEXT_METRICS[name](**settings)


class AdditiveMeasure(Measure):
    """Metrics that are functions of sums over sentences."""

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
        return {name: float(value) for name, value in self.statistic(self.counts[list(indices)].sum(axis=0)).items()}

    def differences(self, baseline: Any, test: Resampling) -> dict[str, dict]:
        return paired_test(*self.aligned_counts([baseline, self]), self.statistic, test)


class TextMeasure(AdditiveMeasure):
    """A metric of sacreBLEU: ``bleu``, ``chrf`` or ``ter``; there may be several references of each sentence."""

    def __init__(self, name: str, metric: Metric, references: Sequence[Sequence[str]], hypotheses: Sequence[str]):
        self.name, self._metric, self._references, self._hypotheses = name, metric, references, hypotheses
        self.metrics(range(1))  # the signature has the number of references, which the metric counts
        self.signatures = {name: str(metric.get_signature())}

    # sacreBLEU's own tests use these two functions of its metrics, too.

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

    def differences(self, baseline: TextMeasure, test: Resampling) -> dict[str, dict]:
        return {
            self.name: paired_text_test(self._metric, self._references, baseline._hypotheses, self._hypotheses, test)
        }


class MeanMeasure(AdditiveMeasure):
    """Means over sentences, in percent, of values from 0 to 1, ``[sentences]`` by metric."""

    def __init__(self, values: Mapping[str, Sequence[float]]):
        self._names = list(values)
        columns = [np.asarray(column, np.float64) for column in values.values()]
        self._counts = np.stack([*columns, np.ones_like(columns[0])], axis=1)

    @property
    def counts(self) -> np.ndarray:
        return self._counts

    def statistic(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        return {name: 100 * sums[..., number] / sums[..., -1] for number, name in enumerate(self._names)}


def exact_match(references: Sequence[Sequence[str]], hypotheses: Sequence[str]) -> MeanMeasure:
    """``exact_match``: the hypothesis has the tokens of one of the references of its sentence."""
    rows = zip_equal(hypotheses, *references)
    return MeanMeasure({"exact_match": [any(text.split() == ours.split() for text in texts) for ours, *texts in rows]})


def tree_match(references: Sequence[Tree], hypotheses: Sequence[Tree | None], unordered: Sequence[str]) -> MeanMeasure:
    """``tree_match``; ``tree_match_unordered``, with the children of some labels in any order; ``valid_trees``."""
    return MeanMeasure({
        "tree_match": exact_matches(hypotheses, references),
        "tree_match_unordered": exact_matches(hypotheses, references, unordered),
        "valid_trees": [tree is not None for tree in hypotheses],
    })  # fmt: skip


def rouge_scores(references: Sequence[str], hypotheses: Sequence[str]) -> MeanMeasure:
    """``rouge1``, ``rouge2``, ``rougeL``: F1 of each text (:func:`tree_fairseq.scoring.rouge.rouge`)."""
    return MeanMeasure(rouge(references, hypotheses))


class BracketMeasure(AdditiveMeasure):
    """EVALB's figures (:mod:`tree_fairseq.scoring.evalb`), and F1 without labels."""

    def __init__(self, references: Sequence[Forest], hypotheses: Sequence[Forest | None], rules: evalb.Parameters):
        rows = list(zip_equal(references, hypotheses))
        self.scores = [evalb.compare(gold, found, rules) for gold, found in rows]
        """EVALB's counts of each sentence."""
        unlabelled = [evalb.compare(gold, found, replace(rules, labelled=False)) for gold, found in rows]
        self._counts = np.concatenate([evalb.counts(self.scores), evalb.counts(unlabelled)], axis=1)
        deleted = " ".join(sorted(rules.deleted)) or "none"
        self.signatures = {"bracket_f1": f"EVALB's rules|deleted:{deleted}|labelled:{str(rules.labelled).lower()}"}

    @property
    def counts(self) -> np.ndarray:
        return self._counts

    @property
    def left_out(self) -> tuple[int, int]:
        """The numbers of sentences that do not count: errors, and sentences without words."""
        status = [score.status for score in self.scores]
        return status.count(evalb.ERROR), status.count(evalb.SKIPPED)

    def statistic(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        size = len(evalb.COLUMNS)
        labelled, unlabelled = evalb.figures(sums[..., :size]), evalb.figures(sums[..., size:])
        prefixed = {f"bracket_{name}": labelled.pop(name) for name in ("f1", "recall", "precision")}
        return {**prefixed, "unlabelled_bracket_f1": unlabelled["f1"], **labelled}


class ClassMeasure(AdditiveMeasure):
    """``class_accuracy``, ``class_matthews``, ``class_macro_f1`` over the classes that occur, right or predicted."""

    def __init__(self, references: Sequence[str], hypotheses: Sequence[str]):
        self.judgement = ClassJudgement([text.strip() for text in hypotheses], references)

    @cached_property
    def counts(self) -> csr_array:
        return self._counts(self.judgement.classes)

    def _counts(self, classes: Sequence[str]) -> csr_array:
        """For each class whether it is right and predicted, is right, is predicted: ``[sentences, 3 C]``."""
        ids = {name: number for number, name in enumerate(classes)}
        rows, columns = [], []
        for row, pair in enumerate(zip_equal(self.judgement.references, self.judgement.predicted)):
            right, predicted = (ids[name] for name in pair)
            found = [len(ids) + right, 2 * len(ids) + predicted] + [right] * (right == predicted)
            rows += [row] * len(found)
            columns += found
        shape = len(self.judgement.references), 3 * len(ids)
        return csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)

    @staticmethod
    def aligned_counts(measures: Sequence[ClassMeasure]) -> list[csr_array]:
        classes = sorted({name for measure in measures for name in measure.judgement.classes})
        return [measure._counts(classes) for measure in measures]

    def statistic(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        figures = class_figures_of_counts(sums.reshape(*sums.shape[:-1], 3, -1))
        return {f"class_{name}": figure for name, figure in figures.items()}


class NumberMeasure(AdditiveMeasure):
    """Correlations of predicted numbers in percent, and the mean squared error.

    Pearson's correlation and the error are functions of sums over sentences, and have tests. Spearman's correlation
    is one of ranks, which change with every sample: its differences have none.
    """

    def __init__(self, references: Sequence[str], hypotheses: Sequence[str]):
        self._references, self._hypotheses = references, hypotheses

    @cached_property
    def counts(self) -> np.ndarray:
        """One, both numbers, their squares and their product, of each sentence: ``[sentences, 6]``.

        The numbers are less the mean of the references, which correlation and error do not depend on: sums of squares
        of large numbers would lose digits.
        """
        theirs = np.array(self._references, np.float64)
        ours = np.array(self._hypotheses, np.float64) - theirs.mean()
        theirs = theirs - theirs.mean()
        return np.stack([np.ones_like(ours), ours, theirs, ours**2, theirs**2, ours * theirs], axis=1)

    def statistic(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        size, ours, theirs, ours_squared, theirs_squared, product = np.moveaxis(sums, -1, 0)
        variances = ours_squared - ours**2 / size, theirs_squared - theirs**2 / size
        varies = (variances[0] > _NO_VARIANCE * ours_squared) & (variances[1] > _NO_VARIANCE * theirs_squared)
        deviations = np.sqrt(np.where(varies, variances[0] * variances[1], np.inf))
        error = (ours_squared - 2 * product + theirs_squared) / size
        return {"pearson": 100 * (product - ours * theirs / size) / deviations, "mean_squared_error": error}

    def metrics(self, indices: Sequence[int]) -> dict[str, float]:
        return number_metrics(*([side[index] for index in indices] for side in (self._hypotheses, self._references)))

    def differences(self, baseline: NumberMeasure, test: Resampling) -> dict[str, dict]:
        tested = super().differences(baseline, test)
        ours, theirs = (each.metrics(range(len(each._references))) for each in (self, baseline))
        return {name: {"difference": ours[name] - theirs[name], **tested.get(name, {})} for name in ours}
