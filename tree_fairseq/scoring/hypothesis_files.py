"""Scores files of hypotheses, with any metrics, by length and depth, and against baselines.

    tree-fairseq score --hypotheses ours.txt --references test.de --baseline stock.txt --sources test.en
    tree-fairseq score --hypotheses generate-test.txt --references test.lf --metrics exact tree --notation prolog
    tree-fairseq score --hypotheses parses --references gold --metrics brackets --bracket-report evalb.txt

A file of hypotheses is text, one line for each line of the references, or the output of fairseq-generate.
"""

from __future__ import annotations

import logging
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Callable

from tree_fairseq.classification.targets import is_number
from tree_fairseq.errors import LabelColumnError, ScoringError, SymbolTreeError, TreeFairseqError, TreeFormatError
from tree_fairseq.scoring import evalb
from tree_fairseq.scoring.breakdowns import COUNT, by_bounds, depth_of
from tree_fairseq.scoring.measures import (
    TEXT_METRICS,
    BracketMeasure,
    ClassMeasure,
    Measure,
    NumberMeasure,
    TextMeasure,
    exact_match,
    rouge_scores,
    text_metric,
    tree_match,
)
from tree_fairseq.scoring.outputs import detokenize, read_output_texts, read_references
from tree_fairseq.scoring.predictions import read_class
from tree_fairseq.scoring.regression import last_column
from tree_fairseq.scoring.score_tables import tables
from tree_fairseq.scoring.significance import BOOTSTRAP, RANDOMIZATION, SAMPLES, Resampling
from tree_fairseq.support.error_reports import failed
from tree_fairseq.support.files import atomic_file, write_json
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.notations import NOTATIONS, notation_named
from tree_fairseq.trees.symbols import unordered_labels
from tree_fairseq.trees.tree import Forest, Tree, forest_leaves

logger = logging.getLogger(__name__)

METRICS = {
    "bleu": "BLEU (Papineni et al. 2002), by sacreBLEU",
    "chrf": "chrF2 (Popović 2015), by sacreBLEU",
    "ter": "translation edit rate (Snover et al. 2006), by sacreBLEU; smaller is better",
    "exact": "share of hypotheses with the tokens of the reference",
    "tree": "share of hypotheses that equal the reference as trees (--notation), also with --unordered children",
    "brackets": "F1, recall and precision of labelled brackets, by the rules of EVALB; lines are bracketed parses",
    "classes": "accuracy, macro F1 and Matthews' correlation of classes; references are lines, or *.tsv or *.trees of "
    "a corpus",
    "numbers": "Pearson's and Spearman's correlation of numbers, and the mean squared error",
    "rouge": "ROUGE-1, -2 and -L (Lin 2004) on the given tokens, by rouge-score",
}
DEFAULT_METRICS = ("bleu", "chrf", "ter")


def files_parser(epilog: str = "") -> ArgumentParser:
    """Returns the parser of the command's arguments."""
    parser = metrics_parser("tree-fairseq score", __doc__, epilog)
    add = parser.add_argument
    add("--hypotheses", type=Path, required=True, metavar="FILE", help="lines of text, or output of fairseq-generate")
    baselines = "hypotheses of other systems, to compare with by a paired test"
    add("--baseline", type=Path, nargs="+", default=[], metavar="FILE", help=baselines)
    add("--bracket-report", type=Path, metavar="FILE", help="write what EVALB would print there, sentence by sentence")
    group = parser.add_argument_group("parts of the test set")
    add = group.add_argument
    add("--sources", type=Path, metavar="FILE", help="sources, whose words are counted (default: those of references)")
    trees = "trees in brackets, whose depth is taken (default: references, if they are trees)"
    add("--trees", type=Path, metavar="FILE", help=trees)
    add("--length-bounds", type=int, nargs="*", default=[10, 20, 30, 40, 50], metavar="N", help="in words")
    depths = "in edges from the root to the deepest word"
    add("--depth-bounds", type=int, nargs="*", default=[2, 4, 6, 8, 10, 15], metavar="N", help=depths)
    return parser


def metrics_parser(prog: str, description: str | None, epilog: str = "") -> ArgumentParser:
    """Returns a parser of references, metrics, tests, and how text and trees are read."""
    parser = ArgumentParser(
        prog=prog, description=description, epilog=epilog, formatter_class=RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    references = "line n is the right answer for line n of the hypotheses; several files for several references"
    add("--references", type=Path, nargs="+", required=True, metavar="FILE", help=references)
    listed = "; ".join(f"{name}: {about}" for name, about in METRICS.items())
    add(
        "--metrics",
        nargs="+",
        choices=METRICS,
        default=list(DEFAULT_METRICS),
        help=f"{listed} (default: bleu chrf ter)",
    )
    add("--json", type=Path, metavar="FILE", help="also write all figures there")
    group = parser.add_argument_group("paired tests")
    add = group.add_argument
    kinds = f"{BOOTSTRAP}: Koehn (2004); {RANDOMIZATION}: approximate randomization (default: %(default)s)"
    add("--test", choices=(BOOTSTRAP, RANDOMIZATION), default=BOOTSTRAP, help=kinds)
    add(
        "--samples",
        type=int,
        metavar="N",
        help=f"default: {SAMPLES[BOOTSTRAP]}, or {SAMPLES[RANDOMIZATION]} of the latter",
    )
    add("--seed", type=int, default=12345, help="default: %(default)s; for bleu, chrf and ter see SACREBLEU_SEED")
    group = parser.add_argument_group("text")
    add = group.add_argument
    add("--lowercase", action="store_true", help="compare without case (bleu, chrf; ter always does)")
    tokenizers = "sacreBLEU's tokeniser for bleu: 13a, none, char, zh, ... (default: 13a)"
    add("--tokenize", metavar="NAME", help=tokenizers)
    detokenized = "turn Moses tokens of this language into text first, in hypotheses and references (bleu, chrf, ter)"
    add("--detokenize", metavar="LANG", help=detokenized)
    group = parser.add_argument_group("trees")
    add = group.add_argument
    notation = "how trees are written, for the metric tree (default: %(default)s)"
    add("--notation", choices=sorted(NOTATIONS), default="bracket", help=notation)
    unordered = "labels whose children have no order (default: and, or; in Prolog also , and ;)"
    add("--unordered", nargs="*", metavar="LABEL", help=unordered)
    parameters = "EVALB's parameter file, for the metric brackets (default: the rules of COLLINS.prm)"
    add("--evalb-parameters", type=Path, metavar="FILE", help=parameters)
    add("--punctuation", action="store_true", help="count punctuation as words, which COLLINS.prm leaves out")
    return parser


class FileScorer:
    """Scores the files that the arguments name."""

    def __init__(self, args: Namespace):
        self.args = args
        if len(args.references) > 1 and (
            others := [name for name in args.metrics if name not in (*TEXT_METRICS, "exact")]
        ):
            raise ScoringError(f"several --references are for bleu, chrf, ter and exact, not for {', '.join(others)}")
        for flag, wanted in (("bracket_report", "brackets"), ("evalb_parameters", "brackets")):
            if getattr(args, flag, None) is not None and wanted not in args.metrics:
                raise ScoringError(f"--{flag.replace('_', '-')} is for --metrics {wanted}")
        first, *others = [self._read(path) for path in args.references]
        for path, lines in zip(args.references[1:], others):
            if len(lines) != len(first):
                raise ScoringError(f"{path} has {len(lines)} lines, {args.references[0]} has {len(first)}")
        self.references: list[list[str]] = [first, *others]
        self.count = len(first)

    @staticmethod
    def _read(path: Path) -> list[str]:
        if not path.is_file():
            raise ScoringError(f"{path} is missing: --references takes files with one line for each hypothesis")
        return read_references([path], lambda line, *place: line)

    # References as the metrics read them

    @cached_property
    def texts(self) -> list[list[str]]:
        """References for BLEU, chrF and TER."""
        return [self._plain(lines) for lines in self.references]

    @cached_property
    def trees(self) -> list[Tree]:
        """References as trees in ``--notation``."""
        return read_references(self.args.references, notation_named(self.args.notation).read)

    @cached_property
    def forests(self) -> list[Forest]:
        """References as bracketed parses."""
        return self._forests(self.args.references[0])

    @staticmethod
    def _forests(path: Path) -> list[Forest]:
        return read_references([path], lambda line, path, number: read_forest(line, path=path, line_number=number))

    @cached_property
    def rules(self) -> evalb.Parameters:
        """How brackets are compared."""
        path = self.args.evalb_parameters
        rules = evalb.Parameters() if path is None else evalb.read_parameters(path)
        return rules.with_punctuation() if self.args.punctuation else rules

    @cached_property
    def classes(self) -> list[str]:
        """References as classes."""

        def read(line: str, path: Path, number: int) -> str:
            if path.suffix in (".tsv", ".trees"):
                return read_class(line, path, number)[0]
            if len(line.split()) != 1:
                raise LabelColumnError("the line is not a class", path, number, hint="A line is one class.")
            return line.strip()

        return read_references(self.args.references, read)

    @cached_property
    def numbers(self) -> list[str]:
        """References as numbers."""

        def read(line: str, path: Path, number: int) -> str:
            return last_column(line if path.suffix == ".tsv" else f"\t{line}", path, number)

        return read_references(self.args.references, read)

    def _plain(self, lines: list[str]) -> list[str]:
        return lines if self.args.detokenize is None else detokenize(lines, self.args.detokenize)

    # Measures

    def measures(self, path: Path) -> dict[str, Measure]:
        """Reads the hypotheses of a system and returns its measures, by name of ``--metrics``."""
        if not path.is_file():
            raise ScoringError(
                f"{path} is missing: give a file with one hypothesis a line, or fairseq-generate's output"
            )
        lines, invalid = read_output_texts(path, self.count)
        trees = ["" if number in invalid else line for number, line in enumerate(lines)]  # as the tree metrics read it
        return {
            name: self.measure(name, trees if name in ("tree", "brackets") else lines, path)
            for name in self.args.metrics
        }

    def measure(self, name: str, lines: list[str], path: Path) -> Measure:
        """Returns a measure of hypotheses, which come from a file."""
        args = self.args
        if name in TEXT_METRICS:
            metric = text_metric(name, args.lowercase, args.tokenize)
            return TextMeasure(name, metric, self.texts, self._plain(lines))
        if name == "exact":
            return exact_match(self.references, lines)
        if name == "tree":
            unordered = unordered_labels(args.notation) if args.unordered is None else args.unordered
            return tree_match(self.trees, [_tree(line, args.notation) for line in lines], unordered)
        if name == "brackets":
            return BracketMeasure(self.forests, [_forest(line) for line in lines], self.rules)
        if name == "classes":
            return ClassMeasure(self.classes, lines)
        if name == "rouge":
            return rouge_scores(self.references[0], lines)
        if wrong := [line for line in lines if not is_number(line.strip())]:
            raise ScoringError(f"{path}: {wrong[0]!r} is not a number")
        return NumberMeasure(self.numbers, lines)

    # The result

    def lengths(self) -> list[int]:
        """Returns words of the sources, or of the references."""
        if self.args.sources is not None:
            return [len(line.split()) for line in self._aligned(self.args.sources)]
        if "brackets" in self.args.metrics:
            return [len(forest_leaves(forest)) for forest in self.forests]
        return [len(line.split()) for line in self.references[0]]

    def depths(self) -> list[int] | None:
        """Returns the depth of the given trees, or of references that are trees; None without trees."""
        if self.args.trees is not None:
            self._aligned(self.args.trees)
            return list(map(depth_of, self._forests(self.args.trees)))
        if "brackets" in self.args.metrics:
            return list(map(depth_of, self.forests))
        return [tree.height() for tree in self.trees] if "tree" in self.args.metrics else None

    def _aligned(self, path: Path) -> list[str]:
        lines = self._read(path)
        if len(lines) != self.count:
            raise ScoringError(f"{path} has {len(lines)} lines, the references are {self.count}")
        return lines

    def score(self) -> dict:
        """Returns all figures, as ``--json`` writes them; writes EVALB's report if that is wanted."""
        args = self.args
        system = self.measures(args.hypotheses)
        result: dict[str, Any] = {
            "hypotheses": str(args.hypotheses),
            "references": [str(path) for path in args.references],
            COUNT: self.count,
            "metrics": _metrics(system.values(), range(self.count)),
            "signatures": {name: text for measure in system.values() for name, text in measure.signatures.items()},
            "baselines": {},
            "differences": [],
        }
        if (brackets := system.get("brackets")) is not None:
            self._report_brackets(brackets, result)
        test = Resampling(args.test, args.samples or SAMPLES[args.test], args.seed)
        for path in args.baseline:
            baseline = self.measures(path)
            result["baselines"][str(path)] = _metrics(baseline.values(), range(self.count))
            for name, measure in system.items():
                logger.info("comparing %s with %s", name, path)
                rows = measure.differences(baseline[name], test)
                result["differences"] += [
                    {"metric": metric, "baseline": str(path), **row} for metric, row in rows.items()
                ]

        def of_part(indices: Sequence[int]) -> dict[str, float]:
            return _metrics(system.values(), indices)

        result["by_length"] = by_bounds(self.lengths(), args.length_bounds, of_part)
        depths = self.depths()
        if depths is not None:
            result["by_depth"] = by_bounds(depths, args.depth_bounds, of_part)
        return result

    def _report_brackets(self, measure: Any, result: dict) -> None:
        errors, skipped = measure.left_out
        result["bracket_sentences"] = {"error": errors, "skipped": skipped, "valid": self.count - errors - skipped}
        if errors or skipped:
            message = "%d of %d hypotheses are not trees of the reference's words, %d are empty; EVALB leaves them out"
            logger.warning(message, errors, self.count, skipped)
        if self.args.bracket_report is not None:
            with atomic_file(self.args.bracket_report) as file:
                file.write(evalb.report(measure.scores, self.rules.cutoff))


def _tree(line: str, notation: str) -> Tree | None:
    try:
        return notation_named(notation).read(line)
    except SymbolTreeError:
        return None


def _forest(line: str) -> Forest | None:
    try:
        return read_forest(line)
    except TreeFormatError:
        return None


def _metrics(measures: Iterable[Measure], indices: Sequence[int]) -> dict[str, float]:
    return {name: value for measure in measures for name, value in measure.metrics(indices).items()}


def main(arguments: Sequence[str] | None = None, epilog: str = "") -> int:
    """Runs the command; returns its exit status."""
    args = files_parser(epilog).parse_args(arguments)
    return print_scores(lambda: FileScorer(args).score(), tables, args.json)


def print_scores(score: Callable[[], dict[str, Any]], text: Callable[[dict[str, Any]], str], file: Path | None) -> int:
    """Scores, prints the result as text, and writes it to ``file`` as JSON if one is given; returns the exit status."""
    try:
        result = score()
        sys.stdout.write(text(result))
        if file is not None:
            write_json(file, result)
    except (TreeFairseqError, OSError) as error:
        return failed(error, logger)
    return 0
