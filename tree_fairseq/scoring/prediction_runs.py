"""Runs of models that predict classes or numbers.

    tree-fairseq score classification --run runs/tree --references text --against runs/stock --result result.json
    tree-fairseq score regression --run runs/tree --references text --against runs/stock

``--references`` is the folder with the corpus's own ``{subset}.tsv``, whose last column is the class or the number, or
with ``{subset}.trees``; ``{subset}.groups`` may have the groups of each example.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tree_fairseq.scoring.measures import Measure
from tree_fairseq.scoring.outputs import read_hypotheses, read_references
from tree_fairseq.scoring.predictions import ClassOutcomes, NumberMeasure, confusion_table, read_class, read_number
from tree_fairseq.scoring.runs import RunSet, add_corpus_arguments, generated


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
        add_corpus_arguments(parser)
        parser.add_argument("--length-bounds", type=int, nargs="*", default=[10, 20, 30, 40, 50], help="in words")

    def measures(self, system: Path) -> dict[str, Measure]:
        predicted = read_hypotheses(generated(system, self.subset), self.count)
        return {"classes": ClassOutcomes(self.references, predicted)}

    def parts(self) -> dict[str, tuple[Sequence[int], Sequence[int]]]:
        return {"by_length": (self.lengths, self.args.length_bounds)}

    def details(self, system: Mapping[str, Measure]) -> dict[str, Any]:
        outcomes = system["classes"]
        return {"by_class": outcomes.by_class(), "confusion": outcomes.confusion()}

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

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        parser.add_argument("--references", type=Path, required=True, help="folder of the corpus's own lines")

    def measures(self, system: Path) -> dict[str, Measure]:
        predicted = read_hypotheses(generated(system, self.subset), self.count)
        return {"numbers": NumberMeasure(self.references, predicted)}
