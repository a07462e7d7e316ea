"""Metrics of predicted classes and numbers, and the scores of runs that predict classes.

    tree-fairseq score classification --run runs/tree --references text --against runs/stock \\
        --result result.json

``--references`` is the folder with the corpus's own ``{subset}.tsv``, whose last column is the class, or
``{subset}.trees``; ``{subset}.groups`` may have the groups of each example. Metrics are in percent.
``fairseq-generate --scoring classification`` and ``--scoring regression`` compute the same metrics.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.scoring import BaseScorer, register_scorer
from sklearn.metrics import mean_squared_error, precision_recall_fscore_support

from tree_fairseq.classification.examples import read_class_tree
from tree_fairseq.classification.metrics import class_figures, confusion_counts, pearson, spearman
from tree_fairseq.classification.targets import class_order
from tree_fairseq.errors import LabelColumnError
from tree_fairseq.scoring.breakdowns import COUNT, by_bounds
from tree_fairseq.scoring.outputs import read_references
from tree_fairseq.scoring.runs import GroupScorer, bucket_lines, group_lines, hypotheses_of
from tree_fairseq.support.python_versions import zip_equal

_TITLES = {"accuracy": "accuracy", "macro_f1": "macro F1", "matthews": "Matthews", "f1": "F1"}


@dataclass(frozen=True)
class ClassJudgement:
    """The predicted classes of a test set and the right ones."""

    predicted: Sequence[str]
    references: Sequence[str]

    @cached_property
    def classes(self) -> list[str]:
        """All predicted or right classes; numbers are sorted as numbers."""
        return sorted({*self.predicted, *self.references}, key=class_order)

    @property
    def outcomes(self) -> dict[str, list[bool]]:
        """Whether each example is right, by metric."""
        return {"accuracy": [ours == theirs for ours, theirs in zip_equal(self.predicted, self.references)]}

    def counts(self, indices: Sequence[int] | None = None) -> np.ndarray:
        """Returns how often each class (column) was predicted for each right class (row), over all examples or some."""
        ids = {name: number for number, name in enumerate(self.classes)}
        indices = range(len(self.references)) if indices is None else indices
        sides = ([ids[side[index]] for index in indices] for side in (self.references, self.predicted))
        return confusion_counts(*map(torch.tensor, sides), len(ids)).numpy()

    def metrics(self, indices: Sequence[int] | None = None) -> dict[str, float]:
        """Returns metrics of all examples or some, in percent.

        They are accuracy, macro F1 (over the classes that occur among these examples, predicted or right), Matthews'
        correlation and, for two classes, F1 of the second.
        """
        return class_figures(self.counts(indices))

    def by_class(self) -> dict[str, dict]:
        """Returns precision, recall and F1 of each class, in percent, and its number of examples."""
        columns = precision_recall_fscore_support(self.references, self.predicted, labels=self.classes, zero_division=0)
        return {
            name: {COUNT: int(row[3]), **dict(zip(("precision", "recall", "f1"), (100 * float(x) for x in row[:3])))}
            for name, row in zip(self.classes, zip(*columns))
        }

    def confusion(self) -> dict:
        """Returns ``classes``, and ``counts`` with a row for each right class and a column for each predicted one."""
        return {"classes": self.classes, "counts": self.counts().tolist()}


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


class ClassificationRuns(GroupScorer):
    """Scores classes: accuracy, macro F1, confusion matrix, by group and by length."""

    name, primary = "classification", "accuracy"
    sections = (COUNT, "by_class", "confusion", "by_length", "groups")

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        GroupScorer.add_arguments(parser)
        parser.add_argument("--length-bounds", type=int, nargs="*", default=[10, 20, 30, 40, 50], help="in words")

    def score_set(self, scores: dict, subset: str, suffix: str) -> dict[str, list[bool]]:
        files = self.reference_files(f"{subset}.tsv", f"{subset}.trees")
        references, lengths = zip(*read_references(files, read_class))
        judgement = ClassJudgement(hypotheses_of(self.args.run, subset, len(references)), references)
        self.add_metrics(scores, subset, suffix, len(references), judgement.metrics, files[0].parent)
        scores["by_class"][subset] = judgement.by_class()
        scores["confusion"][subset] = judgement.confusion()
        scores["by_length"][subset] = by_bounds(lengths, self.args.length_bounds, judgement.metrics)
        return judgement.outcomes

    def report(self, scores: dict) -> list[str]:
        lines = super().report(scores)
        for subset, confusion in scores["confusion"].items():
            lines += [f"confusion of {subset}: rows are right, columns predicted", *table(confusion)]
        return [*lines, *group_lines(scores), *bucket_lines(scores["by_length"], "accuracy of {} by words")]


def table(confusion: dict) -> list[str]:
    """Formats a confusion matrix as aligned lines, with classes in the margins."""
    names = confusion["classes"]
    rows = [["", *names], *([name, *map(str, counts)] for name, counts in zip(names, confusion["counts"]))]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]


@register_scorer("classification", dataclass=FairseqDataclass)
class ClassificationScorer(BaseScorer):
    """``--scoring classification`` of ``fairseq-generate``."""

    def score(self) -> float:
        """Returns the accuracy in percent."""
        return ClassJudgement(self.pred, self.ref).metrics()["accuracy"]

    def result_string(self) -> str:
        """Returns all metrics and the confusion matrix."""
        if not self.ref:
            return "no examples"
        judgement = ClassJudgement(self.pred, self.ref)
        parts = [f"{_TITLES[name]} {value:.2f}" for name, value in judgement.metrics().items()]
        title = f"{', '.join(parts)}, {len(self.ref)} examples"
        return "\n".join((title, "confusion, rows are right, columns predicted", *table(judgement.confusion())))


def number_metrics(predicted: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Returns both correlations of written numbers in percent, and the mean squared error."""
    ours, theirs = list(map(float, predicted)), list(map(float, references))
    return {
        "pearson": pearson(ours, theirs),
        "spearman": spearman(ours, theirs),
        "mean_squared_error": float(mean_squared_error(theirs, ours)),
    }


@register_scorer("regression", dataclass=FairseqDataclass)
class RegressionScorer(BaseScorer):
    """``--scoring regression`` of ``fairseq-generate``."""

    def score(self) -> float:
        """Returns Pearson's correlation in percent."""
        return number_metrics(self.pred, self.ref)["pearson"]

    def result_string(self) -> str:
        """Returns all metrics on one line."""
        if not self.ref:
            return "no examples"
        figures = number_metrics(self.pred, self.ref)
        return (
            f"Pearson {figures['pearson']:.2f}, Spearman {figures['spearman']:.2f}, "
            f"mean squared error {figures['mean_squared_error']:.4f}, {len(self.ref)} examples"
        )
