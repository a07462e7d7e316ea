"""Scores generated trees, such as programs and logical forms.

    tree-fairseq score structural --run runs/tree --data data-bin --references words --against runs/stock \\
        --result result.json

``--references`` is the folder with the corpus's own ``{subset}.{language}`` and, if sentences belong to groups,
``{subset}.groups``. The reference is the line before preprocessing, so a symbol that the dictionary lacks is never
right. Accuracies and F1 are in percent. ``validity`` is a share from 0 to 1. ``steps`` is the mean number of decoding
steps, if the output has ``I-`` lines. ``partial`` counts outputs that reached a limit.
"""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import MissingTreesError, ScoringError, SymbolTreeError
from tree_fairseq.scoring.breakdowns import COUNT, by_bounds
from tree_fairseq.scoring.outcomes import SCHEMES, VALIDITY, Judgement
from tree_fairseq.scoring.outputs import Outputs, read_complete, read_references
from tree_fairseq.scoring.runs import GroupScorer, bucket_lines, generated, group_lines
from tree_fairseq.tree_insertion import INVALID, PARTIAL
from tree_fairseq.tree_insertion import folder as _insertion_folder  # noqa: F401  (registers its section of tree.json)
from tree_fairseq.trees.notations import NOTATIONS, notation_named
from tree_fairseq.trees.notations.notation import Notation, Piece
from tree_fairseq.trees.symbols import SymbolEncoding, unordered_labels
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)

LINES = "lines"  # the notation that compares whole lines


class Lines(Notation):
    """Reads a line of text as a tree: its tokens below an unnamed root. For programs without a notation of trees."""

    def _read(self, line: str) -> Tree:
        return Tree("", map(Tree, line.split()))

    def _pieces(self, node: Tree, place: None) -> list[Piece]:
        return [" ".join(token.label for token in node.children)]


class Target(NamedTuple):
    """How references and outputs are written."""

    language: str | None  # suffix of the reference files
    notation: str  # of references, and of outputs that are text
    encoding: SymbolEncoding | None  # of outputs that are symbols; None if they are text
    unordered: tuple[str, ...]  # labels whose children have no order

    @property
    def reader(self) -> Notation:
        """Reads references, and outputs that are text."""
        return Lines() if self.notation == LINES else notation_named(self.notation)

    def tree(self, output: str) -> Tree | None:
        """Reads an output; returns None if it is not one complete tree."""
        try:
            return self.reader.read(output) if self.encoding is None else self.encoding.decode(output.split())
        except SymbolTreeError:
            return None


def target_of(args: Namespace) -> Target:
    """Returns the target that the options describe, completed from the manifest of the data folder.

    Raises ScoringError without a data folder that is needed, and MissingTreesError if it has no target trees.
    """
    language, notation, encoding = args.target_lang, args.notation, None
    if args.symbols or notation is None or language is None and args.references.is_dir():
        if args.data is None:
            message = "--data is missing: without it, give --notation and --target-lang, and leave out --symbols"
            raise ScoringError(message)
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


class StructuralScorer(GroupScorer):
    """Scores generated trees: exact match, exact match with unordered children, validity, IFTTT's metrics."""

    name, primary, not_compared = "structural", "accuracy", VALIDITY
    sections = (COUNT, "by_size", "by_depth", "groups", "partial")

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        GroupScorer.add_arguments(parser)
        add = parser.add_argument
        add("--data", type=Path, help="data folder of the run: gives language, notation and encoding")
        add("--target-lang", help="suffix of the reference files (default: that of the data folder)")
        notations = "how trees are written (default: as in the data folder); lines: text that is not a tree"
        add("--notation", choices=[*sorted(NOTATIONS), LINES], help=notations)
        add("--symbols", action="store_true", help="outputs are symbols with arities, as stock tasks print them")
        unordered = "labels whose children have no order (default: and, or; in Prolog also , and ;)"
        add("--unordered", nargs="*", metavar="LABEL", help=unordered)
        add("--scheme", choices=SCHEMES, default="exact", help="ifttt: also channels, functions and productions")
        add("--size-bounds", type=int, nargs="*", default=[10, 20, 30, 40, 50], help="in nodes of the reference")
        add("--depth-bounds", type=int, nargs="*", default=[2, 4, 6, 8, 10], help="in edges from the root")

    @cached_property
    def target(self) -> Target:
        """How references and outputs are written."""
        return target_of(self.args)

    def judge(self, outputs: Outputs, references: Sequence[Tree]) -> Judgement:
        """Reads the outputs as trees. An output that generation marked as invalid does not count as a tree."""
        target, indices = self.target, range(len(references))
        invalid = {index for index, marks in outputs.unfinished.items() if INVALID in marks}
        texts = [None if index in invalid else outputs.best.get(index) for index in indices]
        trees = [None if text is None else target.tree(text) for text in texts]
        steps = [outputs.steps[index] for index in indices if index in outputs.steps]
        all_steps = steps if len(steps) == len(trees) else None
        return Judgement(trees, references, target.unordered, self.args.scheme, all_steps)

    def score_set(self, scores: dict, subset: str, suffix: str) -> dict[str, list[bool]]:
        """Scores the outputs for a test set; warns of sentences without output."""
        args, reader = self.args, self.target.reader
        references = read_references(self.reference_files(f"{subset}.{self.target.language}"), reader.read)
        path, count = generated(args.run, subset), len(references)
        outputs = read_complete(path, count)
        if lacking := count - len(outputs.best):
            message = "%s: %d of %d sentences have no output; they count as wrong and invalid"
            logger.warning(message, path, lacking, count)
        judgement = self.judge(outputs, references)
        self.add_metrics(scores, subset, suffix, count, judgement.metrics, args.references)
        sizes = [sum(1 for _ in tree.preorder()) for tree in references]
        scores["partial"][subset] = sum(PARTIAL in marks for marks in outputs.unfinished.values())
        scores["by_size"][subset] = by_bounds(sizes, args.size_bounds, judgement.metrics)
        scores["by_depth"][subset] = by_bounds(list(map(Tree.height, references)), args.depth_bounds, judgement.metrics)
        return judgement.outcomes

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

    def metric_line(self, scores: dict, name: str) -> str:
        """Returns the printed line of a metric, that of validity with four digits."""
        return f"{name} = {scores['metrics'][name]:.{4 if name.startswith(VALIDITY) else 2}f}"

    def report(self, scores: dict) -> list[str]:
        return [
            *super().report(scores),
            *bucket_lines(scores["by_size"], "accuracy of {} by nodes"),
            *bucket_lines(scores["by_depth"], "accuracy of {} by depth"),
            *(
                f"{n} outputs of {subset} reached a limit and are partial"
                for subset, n in scores["partial"].items()
                if n
            ),
            *group_lines(scores),
        ]
