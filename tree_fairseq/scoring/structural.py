"""Scores generated trees: exact match, exact match with unordered children, validity, IFTTT's metrics.

    python -m tree_fairseq.scoring structural --run runs/tree --data data-bin --references words --against runs/stock \\
        --result result.json

``--references`` is the folder with the corpus's own ``{subset}.{language}`` and, if sentences belong to groups,
``{subset}.groups``. The reference is the line before preprocessing, so a symbol that the dictionary lacks is never
right. Accuracies and F1 are in percent. ``validity`` is a share from 0 to 1. ``steps`` is the mean number of decoding
steps, if the output has ``I-`` lines. ``partial`` counts outputs that reached a limit.
"""

from __future__ import annotations

import logging
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import MissingTreesError, ScoringError
from tree_fairseq.scoring.breakdowns import group_metrics, read_groups
from tree_fairseq.scoring.outcomes import SCHEMES, VALIDITY, Judgement, read_output, size
from tree_fairseq.scoring.outputs import LINES, Outputs, read_complete, reader_named
from tree_fairseq.scoring.runs import (
    RunScorer,
    add_reference_arguments,
    bucket_lines,
    generated,
    group_lines,
    require_one_reference,
)
from tree_fairseq.tree_insertion import INVALID, PARTIAL
from tree_fairseq.trees.notations import NOTATIONS
from tree_fairseq.trees.symbols import SymbolEncoding
from tree_fairseq.trees.text import read_lines
from tree_fairseq.trees.tree import Tree
from tree_fairseq.trees.unordered import unordered_labels

logger = logging.getLogger(__name__)


class Target(NamedTuple):
    """How references and outputs are written.

    Attributes:
        language: suffix of the reference files
        notation: of references, and of outputs unless they are symbols; ``lines`` for text that is not a tree
        encoding: turns outputs that are symbols into trees; None if outputs are text
        unordered: labels whose children have no order
    """

    language: str | None
    notation: str
    encoding: SymbolEncoding | None
    unordered: tuple[str, ...]


def target_of(args: Namespace) -> Target:
    """Returns the target that the options describe, completed from the manifest of the data folder.

    Raises:
        ScoringError: neither options nor a data folder give language and notation
        MissingTreesError: the data folder has no trees on the target side
    """
    language, notation, encoding = args.target_lang, args.notation, None
    if args.symbols or notation is None or language is None and args.references.is_dir():
        if args.data is None:
            raise ScoringError(
                "--data is missing: without it, give --notation and --target-lang, and leave out --symbols"
            )
        manifest = Manifest.load(args.data)
        language = language or manifest.target_lang
        symbols = manifest.symbols.get(language)
        record = symbols if args.symbols else manifest.languages.get(language)
        if not hasattr(record, "notation"):
            raise MissingTreesError(f"{args.data} holds no symbol trees of {language}: give --notation")
        notation = notation or record.notation
        encoding = symbols.encoding if args.symbols else None
    unordered = unordered_labels(notation) if args.unordered is None else tuple(args.unordered)
    return Target(language, notation, encoding, unordered)


def read_references(path: Path, notation: str) -> list[Tree]:
    """Reads the trees of a test set.

    Raises:
        ScoringError: the file is missing or empty
        SymbolTreeError: a line is not a tree
    """
    if not path.is_file():
        raise ScoringError(f"{path} is missing: --references takes the folder with the lines that were preprocessed")
    reader = reader_named(notation)
    trees = [reader.read(line, path=path, line_number=number) for number, line in enumerate(read_lines(path), 1)]
    if not trees:
        raise ScoringError(f"{path} is empty")
    return trees


def read_run(run: Path, subset: str, count: int) -> Outputs:
    """Reads the outputs for a test set of ``count`` sentences; warns of sentences without output.

    Raises:
        ScoringError: the file is missing, incomplete or about other sentences
    """
    path = generated(run, subset)
    outputs = read_complete(path, count)
    if missing := count - len(outputs.best):
        logger.warning("%s: %d of %d sentences have no output; they count as wrong and invalid", path, missing, count)
    return outputs


class StructuralScorer(RunScorer):
    """Accuracy and validity of generated trees."""

    name, primary, compares_outcomes = "structural", "accuracy", True
    about = "Scores generated trees: exact match, exact match with unordered children, validity, IFTTT's metrics."
    sections = ("sentences", "by_size", "by_depth", "groups", "partial")

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        add_reference_arguments(parser)
        parser.add_argument("--data", type=Path, help="data folder of the run: gives language, notation and encoding")
        parser.add_argument("--target-lang", help="suffix of the reference files (default: that of the data folder)")
        parser.add_argument(
            "--notation",
            choices=[*sorted(NOTATIONS), LINES],
            help="how trees are written (default: as in the data folder); lines: text that is not a tree",
        )
        parser.add_argument(
            "--symbols", action="store_true", help="outputs are symbols with arities, as stock tasks print them"
        )
        parser.add_argument(
            "--unordered",
            nargs="*",
            metavar="LABEL",
            help="labels whose children have no order (default: and, or; in Prolog also , and ;)",
        )
        parser.add_argument(
            "--scheme", choices=SCHEMES, default="exact", help="ifttt: also channels, functions and productions"
        )
        parser.add_argument(
            "--size-bounds", type=int, nargs="*", default=[10, 20, 30, 40, 50], help="in nodes of the reference"
        )
        parser.add_argument(
            "--depth-bounds", type=int, nargs="*", default=[2, 4, 6, 8, 10], help="in edges from the root"
        )

    @cached_property
    def target(self) -> Target:
        """How references and outputs are written."""
        return target_of(self.args)

    def judge(self, outputs: Outputs, references: list[Tree]) -> Judgement:
        """Reads the outputs as trees. An output that generation marked as invalid is not a tree, however it reads."""
        notation = reader_named(self.target.notation)
        trees = []
        for index in range(len(references)):
            is_valid = INVALID not in outputs.unfinished.get(index, ())
            trees.append(read_output(outputs.best.get(index), notation, self.target.encoding) if is_valid else None)
        steps = [outputs.steps.get(index) for index in range(len(references))]
        steps = None if None in steps else steps
        return Judgement(trees, references, self.target.unordered, self.args.scheme, steps)

    def score_set(self, scores: dict, subset: str, suffix: str) -> dict[str, list[bool]]:
        """Scores the outputs for a test set."""
        args, folder = self.args, self.args.references
        require_one_reference(args)
        path = folder if folder.is_file() else folder / f"{subset}.{self.target.language}"
        references = read_references(path, self.target.notation)
        outputs = read_run(args.run, subset, len(references))
        judgement = self.judge(outputs, references)
        scores["metrics"] |= {name + suffix: value for name, value in judgement.metrics().items()}
        scores["sentences"][subset] = len(references)
        scores["partial"][subset] = sum(PARTIAL in marks for marks in outputs.unfinished.values())
        scores["by_size"][subset] = judgement.by(size, args.size_bounds)
        scores["by_depth"][subset] = judgement.by(Tree.height, args.depth_bounds)
        if groups := read_groups(folder, subset, len(references)):
            scores["groups"][subset] = judgement.by_group(groups)
            scores["metrics"] |= group_metrics(scores["groups"][subset], args.group_metrics, suffix)
        return judgement.outcomes

    def compared(self, outcomes: Mapping[str, Sequence[bool]]) -> dict[str, Sequence[bool]]:
        """Returns all outcomes but validity."""
        return {metric: values for metric, values in outcomes.items() if metric != VALIDITY}

    def score(self) -> tuple[dict, dict]:
        """Returns the content of ``score.json``, with validity over all test sets, and of ``outcomes.json``."""
        scores, outcomes = super().score()
        if self.target.notation == LINES:
            # A line of text is neither valid nor invalid.
            metrics = scores["metrics"].items()
            scores["metrics"] = {name: value for name, value in metrics if not name.startswith(VALIDITY)}
        elif VALIDITY not in scores["metrics"]:
            digits = "".join(of_set[VALIDITY] for of_set in outcomes.values())
            scores["metrics"][VALIDITY] = digits.count("1") / len(digits)
        return scores, outcomes

    def report(self, scores: dict) -> list[str]:
        """Returns the lines to print."""
        lines = super().report(scores)
        for index, (name, value) in enumerate(scores["metrics"].items()):
            if name.startswith(VALIDITY):
                lines[index] = f"{name} = {value:.4f}"
        lines += bucket_lines(scores, "by_size", "nodes") + bucket_lines(scores, "by_depth", "depth")
        lines += [
            f"{count} outputs of {subset} reached a limit and are partial"
            for subset, count in scores["partial"].items()
            if count
        ]
        return [*lines, *group_lines(scores)]


main = StructuralScorer.main

if __name__ == "__main__":
    sys.exit(main())
