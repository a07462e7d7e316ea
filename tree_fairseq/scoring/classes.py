"""Scores classes: accuracy, macro F1, confusion matrix, by group (such as the number of attractors) and by length.

    python -m tree_fairseq.scoring classification --run runs/tree --references text --against runs/stock --result
    result.json

``--references`` is the folder with the corpus's own ``{subset}.tsv`` or ``{subset}.trees`` and, if examples belong to
groups, ``{subset}.groups``. All metrics are in percent. ``fairseq-generate --scoring classification`` computes the same
metrics.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Optional

from fairseq.dataclass import FairseqDataclass
from fairseq.scoring import BaseScorer, register_scorer
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from tree_fairseq.classification.class_trees import read_class_tree
from tree_fairseq.classification.metrics import class_figures
from tree_fairseq.classification.targets import class_order
from tree_fairseq.errors import LabelColumnError, ScoringError
from tree_fairseq.scoring.breakdowns import COUNT, by_bounds, by_group, group_metrics, read_groups
from tree_fairseq.scoring.outputs import read_hypotheses
from tree_fairseq.scoring.runs import (
    RunScorer,
    add_reference_arguments,
    bucket_lines,
    generated,
    group_lines,
    require_one_reference,
)
from tree_fairseq.trees.text import read_lines

SUFFIXES = ("tsv", "trees")
_TITLES = {"accuracy": "accuracy", "macro_f1": "macro F1", "matthews": "Matthews", "f1": "F1"}


@dataclass(frozen=True)
class ClassJudgement:
    """The predicted classes of a test set and the right ones.

    Attributes:
        predicted: a class for each example
        references: the right classes
    """

    predicted: Sequence[str]
    references: Sequence[str]

    @property
    def classes(self) -> list[str]:
        """All predicted or right classes; numbers are sorted as numbers."""
        return sorted({*self.predicted, *self.references}, key=class_order)

    @property
    def outcomes(self) -> dict[str, list[bool]]:
        """Whether each example is right, by metric."""
        return {"accuracy": [ours == theirs for ours, theirs in zip(self.predicted, self.references, strict=True)]}

    def metrics(self, indices: Optional[Iterable[int]] = None) -> dict[str, float]:
        """Returns metrics of all examples or some, in percent.

        They are accuracy, macro F1 (over the classes that occur among these examples, predicted or right), Matthews'
        correlation and, for two classes, F1 of the second.
        """
        indices = range(len(self.references)) if indices is None else list(indices)
        predicted = [self.predicted[index] for index in indices]
        references = [self.references[index] for index in indices]
        return class_figures(confusion_matrix(references, predicted, labels=self.classes))

    def by_class(self) -> dict[str, dict]:
        """Returns precision, recall and F1 of each class, in percent, and its number of examples."""
        columns = precision_recall_fscore_support(self.references, self.predicted, labels=self.classes, zero_division=0)
        return {
            name: {COUNT: int(row[3]), **dict(zip(("precision", "recall", "f1"), (100 * float(x) for x in row[:3])))}
            for name, row in zip(self.classes, zip(*columns))
        }

    def confusion(self) -> dict:
        """Returns ``classes`` and ``counts``, with a row for each right class and a column for each predicted one."""
        counts = confusion_matrix(self.references, self.predicted, labels=self.classes)
        return {"classes": self.classes, "counts": counts.tolist()}


class References(NamedTuple):
    """The right classes of a test set, and the numbers of words of its texts."""

    names: list[str]
    lengths: list[int]


def read_references(references: Path, subset: str) -> References:
    """Reads the right classes of a test set from the lines that were preprocessed.

    Args:
        references: a folder, or the file of one test set

    Raises:
        ScoringError: the file is missing or empty
        LabelColumnError: a line of ``*.tsv`` has no class
        TreeFormatError, ClassError: a line of ``*.trees`` is not a tree with a class
    """
    files = [references] if references.is_file() else [references / f"{subset}.{suffix}" for suffix in SUFFIXES]
    path = next((path for path in files if path.is_file()), None)
    if path is None:
        raise ScoringError(
            f"{references / subset}.tsv (or .trees) is missing: --references takes the folder with the lines that were "
            "preprocessed"
        )
    read = _read_tree if path.suffix == ".trees" else _read_row
    rows = [read(line, path, number) for number, line in enumerate(read_lines(path), 1)]
    if not rows:
        raise ScoringError(f"{path} is empty")
    return References(*map(list, zip(*rows)))


def _read_row(line: str, path: Path, number: int) -> tuple[str, int]:
    text, tab, name = line.rpartition("\t")
    if not tab or len(name.split()) != 1:
        raise LabelColumnError("the line has no class", path, number, hint="A line is a text, a tab and a class.")
    return name.strip(), len(text.split())


def _read_tree(line: str, path: Path, number: int) -> tuple[str, int]:
    read = read_class_tree(line, path, number)
    return read.classes[0], len(read.tree.leaves)


class ClassificationRuns(RunScorer):
    """Accuracy, F1 and confusion matrix of predicted classes."""

    name, primary, compares_outcomes = "classification", "accuracy", True
    about = "Scores classes: accuracy, macro F1, confusion matrix, by group and by length."
    sections = ("sentences", "by_class", "confusion", "by_length", "groups")

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        add_reference_arguments(parser)
        parser.add_argument("--length-bounds", type=int, nargs="*", default=[10, 20, 30, 40, 50], help="in words")

    def score_set(self, scores: dict, subset: str, suffix: str) -> dict[str, list[bool]]:
        """Scores the predictions for a test set."""
        args = self.args
        require_one_reference(args)
        path = generated(args.run, subset)
        predicted, references = read_hypotheses(path), read_references(args.references, subset)
        count = len(references.names)
        if len(predicted) != count:
            raise ScoringError(f"{path} has {len(predicted)} predictions, the references are {count}")
        judgement = ClassJudgement(predicted, references.names)
        scores["metrics"] |= {name + suffix: value for name, value in judgement.metrics().items()}
        scores["sentences"][subset] = count
        scores["by_class"][subset] = judgement.by_class()
        scores["confusion"][subset] = judgement.confusion()
        scores["by_length"][subset] = by_bounds(references.lengths, args.length_bounds, judgement.metrics)
        folder = args.references.parent if args.references.is_file() else args.references
        if groups := read_groups(folder, subset, count):
            scores["groups"][subset] = by_group(groups, judgement.metrics)
            scores["metrics"] |= group_metrics(scores["groups"][subset], args.group_metrics, suffix)
        return judgement.outcomes

    def report(self, scores: dict) -> list[str]:
        """Returns the lines to print."""
        lines = super().report(scores)
        for subset, confusion in scores["confusion"].items():
            lines += [f"confusion of {subset}: rows are right, columns predicted", *table(confusion)]
        return [*lines, *group_lines(scores), *bucket_lines(scores, "by_length", "words")]


def table(confusion: dict) -> list[str]:
    """Formats a confusion matrix as aligned lines, with classes in the margins."""
    names = confusion["classes"]
    rows = [["", *names], *([name, *map(str, counts)] for name, counts in zip(names, confusion["counts"]))]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class ClassificationScorerConfig(FairseqDataclass):
    """The scorer has no options."""


@register_scorer("classification", dataclass=ClassificationScorerConfig)
class ClassificationScorer(BaseScorer):
    """``--scoring classification`` of ``fairseq-generate``."""

    @property
    def judgement(self) -> ClassJudgement:
        """All predictions so far."""
        return ClassJudgement(self.pred, self.ref)

    def score(self) -> float:
        """Returns the accuracy in percent."""
        return self.judgement.metrics()["accuracy"]

    def result_string(self) -> str:
        """Returns all metrics and the confusion matrix."""
        if not self.ref:
            return "no examples"
        parts = [f"{_TITLES[name]} {value:.2f}" for name, value in self.judgement.metrics().items()]
        title = f"{', '.join(parts)}, {len(self.ref)} examples"
        return "\n".join((title, "confusion, rows are right, columns predicted", *table(self.judgement.confusion())))


main = ClassificationRuns.main

if __name__ == "__main__":
    sys.exit(main())
