"""Score classes: accuracy, macro F1, confusions, by group (such as the number of attractors) and by length.

    python -m tree_fairseq.scoring classification --run runs/tree --references text --against runs/stock --result result.json

``--run`` is a folder with ``generate-{subset}.txt``, the output of fairseq-generate. ``--references`` is the folder with the corpus's
own ``{subset}.tsv`` or ``{subset}.trees`` and, if examples belong to groups, ``{subset}.groups``. All metrics are in percent. The outcomes of
single examples go to ``outcomes.json`` beside ``score.json``; ``--against`` compares with those of runs that were scored before.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq.dataclass import FairseqDataclass
from fairseq.scoring import BaseScorer, register_scorer
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from tree_fairseq.classification.class_trees import read_class_tree
from tree_fairseq.classification.metrics import class_figures
from tree_fairseq.classification.targets import class_order
from tree_fairseq.errors import LabelColumnError, ScoringError
from tree_fairseq.scoring.breakdowns import COUNT, by_bounds, by_group, differences, group_metrics, read_groups
from tree_fairseq.scoring.outcomes import as_digits
from tree_fairseq.scoring.outputs import read_hypotheses
from tree_fairseq.scoring.runs import (
    add_run_arguments,
    bucket_lines,
    difference_lines,
    group_lines,
    reference_sets,
    score_and_publish,
)
from tree_fairseq.scoring.structural import read_outcomes
from tree_fairseq.trees.text import read_lines

# FROM scoring/class_metrics: How well classes are told: accuracy, F1, confusions.


@dataclass(frozen=True)
class ClassJudgement:
    """The predicted classes of a test set beside the right ones.

    Attributes:
        predicted: a class for each example
        references: the right ones
    """

    predicted: Sequence[str]
    references: Sequence[str]

    @property
    def classes(self) -> list[str]:
        """All that occur on either side, numbers as numbers."""
        return sorted({*self.predicted, *self.references}, key=class_order)

    @property
    def outcomes(self) -> dict[str, list[bool]]:
        """By metric, whether each example is right."""
        return {"accuracy": [ours == theirs for ours, theirs in zip(self.predicted, self.references, strict=True)]}

    def metrics(self, indices: Iterable[int] | None = None) -> dict[str, float]:
        """Accuracy, macro F1, Matthews' correlation and, of two classes, F1 of the second, of all examples or of some, in percent.

        ``macro_f1`` is the mean of F1 over the classes that occur among these examples, predicted or right.
        """
        indices = range(len(self.references)) if indices is None else list(indices)
        predicted = [self.predicted[index] for index in indices]
        references = [self.references[index] for index in indices]
        counts = confusion_matrix(references, predicted, labels=self.classes)
        return class_figures(counts)

    def by_class(self) -> dict[str, dict]:
        """Precision, recall and F1 of each class, in percent, and how many sentences (or documents) are of it."""
        rows = zip(
            *precision_recall_fscore_support(self.references, self.predicted, labels=self.classes, zero_division=0)
        )
        return {
            name: {
                COUNT: int(count),
                "precision": 100 * float(precision),
                "recall": 100 * float(recall),
                "f1": 100 * float(f1),
            }
            for name, (precision, recall, f1, count) in zip(self.classes, rows)
        }

    def confusion(self) -> dict:
        """``classes``, and ``counts``: a row for each right class, in it a count for each predicted one."""
        counts = confusion_matrix(self.references, self.predicted, labels=self.classes)
        return {"classes": self.classes, "counts": counts.tolist()}


# FROM scoring/classification_runs: A run's classes beside the corpus's own: metrics by class, group and length, differences from other runs.

SUFFIXES = ("tsv", "trees")


@dataclass(frozen=True)
class ClassificationOptions:
    """How a run is scored.

    Attributes:
        references: folder of the test sets, or the one file of the one test set.
        sets: subset of the data folder -> label in metric names ("" for none).
        group_metrics: groups whose metrics stand among those of the run.
        length_bounds: largest number of words of each bucket but the last.
    """

    references: Path
    sets: dict[str, str]
    group_metrics: tuple[str, ...] = ()
    length_bounds: tuple[int, ...] = (10, 20, 30, 40, 50)


@dataclass(frozen=True)
class References:
    """The right classes of a test set, and how many words its texts have."""

    names: list[str]
    lengths: list[int]


def read_references(options: ClassificationOptions, subset: str) -> References:
    """The right classes of a test set, from the lines that were preprocessed.

    Raises:
        ScoringError: there are none
        LabelColumnError: a line of ``*.tsv`` has no class
        TreeFormatError, ClassError: a line of ``*.trees`` is no tree with one
    """
    path = options.references
    if not path.is_file():
        found = [path / f"{subset}.{suffix}" for suffix in SUFFIXES if (path / f"{subset}.{suffix}").is_file()]
        if not found:
            raise ScoringError(
                f"{path / subset}.tsv (or .trees) is missing: --references takes the folder with the lines that were preprocessed"
            )
        path = found[0]
    read = _read_tree if path.suffix == ".trees" else _read_row
    rows = [read(line, path, number) for number, line in enumerate(read_lines(path), 1)]
    if not rows:
        raise ScoringError(f"{path} is empty")
    return References([name for name, _ in rows], [length for _, length in rows])


def score_set(run: Path, options: ClassificationOptions, subset: str) -> tuple[ClassJudgement, References]:
    """The classes that a run gave to a test set beside the right ones. Raises ScoringError where they do not fit each other."""
    path = run / f"generate-{subset}.txt"
    if not path.is_file():
        raise ScoringError(f"{path} is missing: generate with that run first")
    predicted, references = read_hypotheses(path), read_references(options, subset)
    if len(predicted) != len(references.names):
        raise ScoringError(f"{path} has {len(predicted)} predictions, the references are {len(references.names)}")
    return ClassJudgement(predicted, references.names), references


def score_run(run: Path, options: ClassificationOptions, against: Sequence[Path] = ()) -> tuple[dict, dict]:
    """Metrics of a run, by class, group and length too, and its difference from other runs; its outcomes by set and metric.

    Raises:
        ScoringError: files are missing or do not fit each other
    """
    scores: dict = {
        "metrics": {},
        "sentences": {},
        "by_class": {},
        "confusion": {},
        "by_length": {},
        "groups": {},
        "differences": [],
    }
    kept = {}
    folder = options.references.parent if options.references.is_file() else options.references
    others = {other.name: read_outcomes(other) for other in against}
    for subset, label in options.sets.items():
        suffix = f"_{label}" if label else ""
        judgement, references = score_set(run, options, subset)
        scores["metrics"] |= {name + suffix: value for name, value in judgement.metrics().items()}
        scores["sentences"][subset] = len(references.names)
        scores["by_class"][subset] = judgement.by_class()
        scores["confusion"][subset] = judgement.confusion()
        scores["by_length"][subset] = by_bounds(references.lengths, options.length_bounds, judgement.metrics)
        if groups := read_groups(folder, subset, len(references.names)):
            scores["groups"][subset] = by_group(groups, judgement.metrics)
            scores["metrics"] |= group_metrics(scores["groups"][subset], options.group_metrics, suffix)
        kept[subset] = as_digits(judgement.outcomes)
        for name, outcomes in others.items():
            scores["differences"] += differences(name, outcomes.get(subset, {}), judgement.outcomes, suffix)
    return scores, kept


def _read_row(line: str, path: Path, number: int) -> tuple[str, int]:
    text, tab, name = line.rpartition("\t")
    if not tab or len(name.split()) != 1:
        raise LabelColumnError("the line has no class", path, number, hint="A line is a text, a tab and a class.")
    return name.strip(), len(text.split())


def _read_tree(line: str, path: Path, number: int) -> tuple[str, int]:
    read = read_class_tree(line, path, number)
    return read.classes[0], len(read.tree.leaves)


def report(scores: dict) -> str:
    """The scores as lines of text."""
    lines = [f"{name} = {value:.2f}" for name, value in scores["metrics"].items()]
    lines += difference_lines(scores)
    for subset, confusion in scores["confusion"].items():
        lines += [f"confusion of {subset}: rows are right, columns predicted", *table(confusion)]
    return "\n".join([*lines, *group_lines(scores), *bucket_lines(scores, "by_length", "words")])


def table(confusion: dict) -> list[str]:
    """A confusion matrix as aligned lines of text, with its classes at the margins."""
    rows = [
        ["", *confusion["classes"]],
        *([name, *map(str, counts)] for name, counts in zip(confusion["classes"], confusion["counts"])),
    ]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]


def options_from_arguments(args: argparse.Namespace) -> ClassificationOptions:
    """The options that a command line asks for. Raises ScoringError where they do not go together."""
    return ClassificationOptions(
        args.references, reference_sets(args), tuple(args.group_metrics), tuple(args.length_bounds)
    )


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tree_fairseq.scoring classification", description=__doc__.splitlines()[0]
    )
    add_run_arguments(parser, primary="accuracy")
    parser.add_argument(
        "--references", type=Path, required=True, help="folder of the corpus's own lines, or the file of one set"
    )
    parser.add_argument(
        "--group-metrics", nargs="*", default=[], metavar="GROUP", help="groups whose metrics join those of the run"
    )
    parser.add_argument("--length-bounds", type=int, nargs="*", default=[10, 20, 30, 40, 50], help="in words")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    args = _arguments(arguments)
    return score_and_publish(args, lambda: score_run(args.run, options_from_arguments(args), args.against), report)


if __name__ == "__main__":
    sys.exit(main())


# FROM scoring/classification_scorer: ``--scoring classification`` of ``fairseq-generate``: accuracy, F1, Matthews' correlation and the matrix of confusions.

_TITLES = {"accuracy": "accuracy", "macro_f1": "macro F1", "matthews": "Matthews", "f1": "F1"}


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class ClassificationScorerConfig(FairseqDataclass):
    """The scorer has no options."""


@register_scorer("classification", dataclass=ClassificationScorerConfig)
class ClassificationScorer(BaseScorer):
    """Compares predicted classes with the right ones.

    Args:
        cfg (ClassificationScorerConfig): options
    """

    @property
    def judgement(self) -> ClassJudgement:
        """All that was added so far."""
        return ClassJudgement(self.pred, self.ref)

    def score(self) -> float:
        """Accuracy in percent."""
        return self.judgement.metrics()["accuracy"]

    def result_string(self) -> str:
        """All figures and, line by line, the matrix: a row for each right class, a column for each predicted one."""
        if not self.ref:
            return "no examples"
        figures = self.judgement.metrics()
        parts = [f"{_TITLES[name]} {value:.2f}" for name, value in figures.items()]
        title = f"{', '.join(parts)}, {len(self.ref)} examples"
        return "\n".join((title, "confusion, rows are right, columns predicted", *table(self.judgement.confusion())))
