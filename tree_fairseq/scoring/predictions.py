"""Predicted classes and numbers: measures, runs, and ``--scoring classification`` and ``regression`` of fairseq.

    tree-fairseq score classification --run runs/tree --references text --against runs/stock --result result.json
    tree-fairseq score regression --run runs/tree --references text --against runs/stock

``--references`` is the folder with the corpus's own ``{subset}.tsv``, whose last column is the class or the number, or
with ``{subset}.trees``; ``{subset}.groups`` may have the groups of each example. Metrics are in percent, but for the
mean squared error.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.scoring import BaseScorer, register_scorer
from scipy import stats

from tree_fairseq.classification.criterion import class_figures, moments, pearson
from tree_fairseq.classification.examples import read_class_tree
from tree_fairseq.classification.folder import class_order, is_number
from tree_fairseq.errors import LabelColumnError, ScoringError
from tree_fairseq.scoring.frame import aligned
from tree_fairseq.scoring.measures import Measure
from tree_fairseq.scoring.outputs import read_hypotheses, read_references
from tree_fairseq.scoring.runs import RunSet, add_references, generated
from tree_fairseq.scoring.significance import Resampling
from tree_fairseq.support.python_versions import zip_equal

_TITLES = {"accuracy": "accuracy", "macro_f1": "macro F1", "matthews": "Matthews", "f1": "F1"}


def read_class(line: str, path: Path, number: int) -> tuple[str, int]:
    """Returns the class of a line of ``*.tsv`` or ``*.trees``, and the number of words of its text.

    Raises LabelColumnError, TreeFormatError or ClassError if it has none.
    """
    if path.suffix == ".trees":
        read = read_class_tree(line, path, number)
        return read.classes[0], len(read.tree.leaves)
    text, tab, name = line.rpartition("\t")
    if not tab or len(name.split()) != 1:
        raise LabelColumnError("the line has no class", path, number, hint="A line is a text, a tab and a class.")
    return name.strip(), len(text.split())


def read_number(line: str, path: Path, number: int) -> str:
    """Returns the number in the last column of a line. Raises LabelColumnError if it is not one."""
    label = line.rpartition("\t")[2]
    if not is_number(label.strip()):
        raise LabelColumnError(
            "the last column is not a number", path, number, hint="A line is a text (or two), a tab and a number."
        )
    return label


class ClassMeasure(Measure):
    """Accuracy, macro F1, Matthews' correlation and, of two classes, F1 of the second.

    Macro F1 is the mean over the classes that occur, right or predicted. The prefix begins the names of the metrics.
    """

    def __init__(self, references: Sequence[str], hypotheses: Sequence[str], prefix: str = ""):
        self._pairs = list(zip_equal(references, [text.strip() for text in hypotheses]))
        self._prefix = prefix

    @property
    def outcomes(self) -> dict[str, list[bool]]:
        """Which examples are right."""
        return {"accuracy": [right == predicted for right, predicted in self._pairs]}

    @cached_property
    def classes(self) -> list[str]:
        """All predicted or right classes; numbers are sorted as numbers."""
        return sorted({name for pair in self._pairs for name in pair}, key=class_order)

    def _counts(self, classes: Sequence[str]) -> np.ndarray:
        """Returns the place of each example in the confusion matrix of some classes, ``[examples, C * C]``."""
        right, predicted = (np.array(side)[:, None] == np.array(classes) for side in zip(*self._pairs))
        return (right[:, :, None] & predicted[:, None, :]).astype(np.float64).reshape(len(right), -1)

    @cached_property
    def counts(self) -> np.ndarray:
        return self._counts(self.classes)

    @staticmethod
    def aligned_counts(measures: Sequence[ClassMeasure]) -> list[np.ndarray]:
        classes = sorted({name for measure in measures for name in measure.classes})
        return [measure._counts(classes) for measure in measures]

    def statistic(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        size = math.isqrt(sums.shape[-1])
        counts = sums.reshape(*sums.shape[:-1], size, size)  # [..., C * C] -> [..., C, C]
        return {f"{self._prefix}{name}": figure for name, figure in class_figures(counts).items()}

    def confusion(self) -> dict:
        """Returns ``classes``, and ``counts`` with a row for each right class and a column for each predicted one."""
        counts = self.counts.sum(axis=0).astype(int).reshape(len(self.classes), -1)
        return {"classes": self.classes, "counts": counts.tolist()}


class NumberMeasure(Measure):
    """Correlations of predicted numbers in percent, and the mean squared error.

    Pearson's correlation and the error are functions of sums over sentences, and have tests. Spearman's correlation is
    one of ranks, which change with every sample: its differences have no test. Raises ScoringError for a hypothesis
    that is not a number.
    """

    def __init__(self, references: Sequence[str], hypotheses: Sequence[str]):
        for number, text in enumerate(hypotheses, start=1):
            if not is_number(text.strip()):
                hint = "was it generated by a regression model?"
                raise ScoringError(f"hypothesis {number}: {text!r} is not a number; {hint}")
        self._references, self._hypotheses = references, hypotheses

    @cached_property
    def counts(self) -> np.ndarray:
        """The moments of each sentence, ``[sentences, 6]``.

        The mean of the references is subtracted from all numbers: correlation and error do not depend on it, and sums
        of squares of large numbers would lose digits.
        """
        sides = self._hypotheses, self._references
        ours, theirs = (torch.tensor(list(map(float, side)), dtype=torch.float64) for side in sides)
        return moments(ours - theirs.mean(), theirs - theirs.mean()).numpy()

    def statistic(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        size, _, _, ours_squared, theirs_squared, product = np.moveaxis(sums, -1, 0)
        error = (ours_squared - 2 * product + theirs_squared) / size
        return {"pearson": pearson(sums), "mean_squared_error": error}

    def metrics(self, indices: Sequence[int]) -> dict[str, float]:
        ours, theirs = ([float(side[index]) for index in indices] for side in (self._hypotheses, self._references))
        return {**super().metrics(indices), "spearman": spearman(ours, theirs)}

    def differences(self, baseline: NumberMeasure, test: Resampling) -> dict[str, dict]:
        tested = super().differences(baseline, test)
        ours, theirs = (each.metrics(range(len(each._references))) for each in (self, baseline))
        return {name: {"difference": ours[name] - theirs[name], **tested.get(name, {})} for name in ours}


def spearman(predicted: Sequence[float], right: Sequence[float]) -> float:
    """Computes Spearman's correlation, that of the ranks, in percent; 0 if a side has fewer than two numbers."""
    if min(len(set(predicted)), len(set(right))) < 2:
        return 0.0
    return 100 * float(stats.spearmanr(predicted, right).statistic)


def confusion_table(confusion: dict) -> list[str]:
    """Formats a confusion matrix as aligned lines, with classes in the margins."""
    names = confusion["classes"]
    rows = [["", *names], *([name, *map(str, counts)] for name, counts in zip(names, confusion["counts"]))]
    return ["confusion, rows are right, columns predicted", *aligned(rows)]


class ClassSet(RunSet):
    """Scores classes: accuracy, macro F1, confusion matrix, by group and by length."""

    name, primary, outcomes = "classification", "accuracy", "classes"

    def __init__(self, args: Namespace, subset: str):
        super().__init__(args, subset)
        files = self.reference_files(f"{subset}.tsv", f"{subset}.trees")
        self.references, self.lengths = zip(*read_references(files, read_class))
        self.count = len(self.references)

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        add_references(parser)
        parser.add_argument("--length-bounds", type=int, nargs="*", default=[10, 20, 30, 40, 50], help="in words")

    def measures(self, system: Path) -> dict[str, Measure]:
        predicted = read_hypotheses(generated(system, self.subset), self.count)
        return {"classes": ClassMeasure(self.references, predicted)}

    def parts(self) -> dict[str, tuple[Sequence[int], Sequence[int]]]:
        return {"by_length": (self.lengths, self.args.length_bounds)}

    def details(self, system: Mapping[str, Measure]) -> dict[str, Any]:
        return {"confusion": system["classes"].confusion()}

    def notes(self, result: Mapping[str, Any]) -> list[str]:
        return confusion_table(result["confusion"])


class NumberSet(RunSet):
    """Scores predicted numbers: Pearson's and Spearman's correlation in percent, and the mean squared error.

    Runs are compared by a paired bootstrap; Spearman's correlation has no test.
    """

    name, primary = "regression", "pearson"

    def __init__(self, args: Namespace, subset: str):
        super().__init__(args, subset)
        self.references = read_references(self.reference_files(f"{subset}.tsv"), read_number)
        self.count = len(self.references)

    add_arguments = staticmethod(add_references)

    def measures(self, system: Path) -> dict[str, Measure]:
        predicted = read_hypotheses(generated(system, self.subset), self.count)
        return {"numbers": NumberMeasure(self.references, predicted)}


@register_scorer("classification", dataclass=FairseqDataclass)
class ClassificationScorer(BaseScorer):
    """``--scoring classification`` of ``fairseq-generate``."""

    def score(self) -> float:
        """Returns the accuracy in percent."""
        return ClassMeasure(self.ref, self.pred).metrics(range(len(self.ref)))["accuracy"]

    def result_string(self) -> str:
        """Returns all metrics and the confusion matrix."""
        if not self.ref:
            return "no examples"
        outcomes = ClassMeasure(self.ref, self.pred)
        parts = [f"{_TITLES[name]} {value:.2f}" for name, value in outcomes.metrics(range(len(self.ref))).items()]
        return "\n".join((f"{', '.join(parts)}, {len(self.ref)} examples", *confusion_table(outcomes.confusion())))


@register_scorer("regression", dataclass=FairseqDataclass)
class RegressionScorer(BaseScorer):
    """``--scoring regression`` of ``fairseq-generate``."""

    def score(self) -> float:
        """Returns Pearson's correlation in percent."""
        return NumberMeasure(self.ref, self.pred).metrics(range(len(self.ref)))["pearson"]

    def result_string(self) -> str:
        """Returns all metrics on one line."""
        if not self.ref:
            return "no examples"
        figures = NumberMeasure(self.ref, self.pred).metrics(range(len(self.ref)))
        return (
            f"Pearson {figures['pearson']:.2f}, Spearman {figures['spearman']:.2f}, "
            f"mean squared error {figures['mean_squared_error']:.4f}, {len(self.ref)} examples"
        )
