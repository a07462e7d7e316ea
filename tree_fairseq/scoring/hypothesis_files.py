"""Scores files of hypotheses, with any metrics, by length and depth, and against baselines.

    tree-fairseq score ours.txt --references test.de --baseline stock.txt --sources test.en
    tree-fairseq score generate-test.txt --references test.lf --metrics exact tree --notation prolog
    tree-fairseq score parses --references gold --metrics brackets

A file of hypotheses is text, one line for each line of the references, or the output of fairseq-generate.
"""

from __future__ import annotations

import logging
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tree_fairseq.errors import LabelColumnError, ScoringError, SymbolTreeError, TreeFormatError
from tree_fairseq.scoring import evalb, measures
from tree_fairseq.scoring.execution import Execution
from tree_fairseq.scoring.frame import TestSet, depth_of, score, tables
from tree_fairseq.scoring.outputs import detokenize, read_output_texts, read_reference_lines, read_references, read_text
from tree_fairseq.scoring.predictions import ClassMeasure, NumberMeasure, read_class, read_number
from tree_fairseq.scoring.program_measures import Programs
from tree_fairseq.scoring.significance import BOOTSTRAP, RANDOMIZATION, SAMPLES, Resampling
from tree_fairseq.source_code.language import Language
from tree_fairseq.support.files import require_folders, write_json
from tree_fairseq.support.options import given_arguments, refuse_unread
from tree_fairseq.trees.notations import notation_named, notation_names
from tree_fairseq.trees.symbols import exact_matches, unordered_labels
from tree_fairseq.trees.tree import Forest, Tree, forest_leaves
from tree_fairseq.trees.treebanks import read_sentences

logger = logging.getLogger(__name__)

METRICS = {
    "bleu": "by sacreBLEU, as chrf and ter",
    "chrf": "chrF2",
    "ter": "translation edit rate; smaller is better",
    "exact": "share of hypotheses with the tokens of the reference",
    "tree": "share of hypotheses that equal the reference as trees, also with --unordered children",
    "brackets": "F1, recall and precision of labelled brackets, by the rules of EVALB",
    "classes": "accuracy, macro F1 and Matthews' correlation; references are lines, or *.tsv or *.trees of a corpus",
    "numbers": "Pearson's and Spearman's correlation of numbers, and the mean squared error",
    "code": "programs in the --notation: exact match as trees, share that parses, BLEU, CodeBLEU, F1 of trees",
    "execution": "share of SQL that returns from --database what the reference returns, and share that runs",
    "rouge": "ROUGE-1, -2 and -L on the given tokens, by rouge-score",
    "pltrdy": "the same by pltrdy's rouge, as the paper of Treeformer has it",
}


def files_parser(epilog: str = "") -> ArgumentParser:
    """Returns the parser of the command's arguments."""
    parser = metrics_parser("tree-fairseq score", __doc__, epilog)
    add = parser.add_argument
    add("hypotheses", type=Path, metavar="HYPOTHESES", help="lines of text, or output of fairseq-generate")
    add("--baseline", type=Path, nargs="+", default=[], metavar="FILE", help="other systems, for a paired test")
    add = parser.add_argument_group("parts of the test set").add_argument
    add("--sources", type=Path, metavar="FILE", help="whose words are counted (default: those of references)")
    add("--trees", type=Path, metavar="FILE", help="whose depth is taken (default: references, if they are trees)")
    add("--length-bounds", type=int, nargs="*", default=[10, 20, 30, 40, 50], metavar="N", help="in words")
    depths = "in edges from the root to the deepest word"
    add("--depth-bounds", type=int, nargs="*", default=[2, 4, 6, 8, 10, 15], metavar="N", help=depths)
    return parser


def metrics_parser(prog: str, description: str | None, epilog: str = "") -> ArgumentParser:
    """Returns a parser of references, metrics, tests, and how text and trees are read."""
    form = {"description": description, "epilog": epilog, "formatter_class": RawDescriptionHelpFormatter}
    parser = ArgumentParser(prog=prog, usage=f"{prog} HYPOTHESES --references FILE [options]", **form)
    add = parser.add_argument
    references = "line n is the right answer for line n of the hypotheses; several files for several references"
    add("--references", type=Path, nargs="+", required=True, metavar="FILE", help=references)
    listed = "; ".join(f"{name}: {about}" for name, about in METRICS.items())
    metrics = {"choices": METRICS, "default": ["bleu", "chrf", "ter"], "help": f"{listed} (default: bleu chrf ter)"}
    add("--metrics", nargs="+", **metrics)
    add("--output", type=Path, metavar="FILE", help="also write all figures there, as JSON")
    add = parser.add_argument_group("paired tests").add_argument
    add(
        "--test",
        choices=(BOOTSTRAP, RANDOMIZATION),
        default=BOOTSTRAP,
        help="Koehn (2004); or approximate randomization",
    )
    add(
        "--samples",
        type=int,
        metavar="N",
        help=f"default: {SAMPLES[BOOTSTRAP]}, or {SAMPLES[RANDOMIZATION]} of the latter",
    )
    add = parser.add_argument_group("text").add_argument
    add("--lowercase", action="store_true", help="compare without case (bleu, chrf; ter always does)")
    add("--tokenize", metavar="NAME", help="sacreBLEU's tokeniser for bleu: 13a, none, char, zh, ... (default: 13a)")
    add("--detokenize", metavar="LANG", help="turn Moses tokens of this language into text first (bleu, chrf, ter)")
    add = parser.add_argument_group("trees").add_argument
    notation = f"how trees are written, for tree and code (default: %(default)s): {', '.join(notation_names())}"
    add("--notation", metavar="NAME", default="bracket", help=notation)
    unordered = "labels whose children have no order (default: and, or; in Prolog also , and ;)"
    add("--unordered", nargs="*", metavar="LABEL", help=unordered)
    add("--database", type=Path, metavar="FILE", help="SQLite file on which queries run, for execution")
    return parser


# The metrics that read an argument.
_READ_BY = {
    "lowercase": {"bleu", "chrf"}, "tokenize": {"bleu"}, "detokenize": {"bleu", "chrf", "ter"},
    "notation": {"tree", "code"}, "unordered": {"tree"}, "database": {"execution"},
    "depth_bounds": {"tree", "brackets", "--trees"},
}  # fmt: skip


def read_arguments(parser: ArgumentParser, arguments: Sequence[str] | None) -> Namespace:
    """Reads a command line; raises InputError for an argument that none of the metrics reads."""
    args, given = parser.parse_args(arguments), given_arguments(parser, arguments)
    metrics = {*args.metrics, *(["--trees"] if "trees" in given else [])}
    unread = {} if args.baseline else dict.fromkeys(("test", "samples"), "it goes with --baseline")
    for name, readers in _READ_BY.items():
        unread |= {} if readers & metrics else {name: f"it goes with --metrics {', '.join(sorted(readers))}"}
    refuse_unread(given, unread)
    return args


class FileSet(TestSet):
    """The references in files, and the metrics that the arguments name."""

    def __init__(self, args: Namespace):
        self.args = args
        others = [name for name in args.metrics if name not in (*measures.TEXT_METRICS, "exact")]
        if len(args.references) > 1 and others:
            raise ScoringError(f"several --references are for bleu, chrf, ter and exact, not for {', '.join(others)}")
        self.references = [read_reference_lines(path) for path in args.references]
        self.count = len(self.references[0])
        for path, lines in zip(args.references, self.references):
            if len(lines) != self.count:
                raise ScoringError(f"{path} has {len(lines)} lines, {args.references[0]} has {self.count}")

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
        return _read_forests(self.args.references[0])

    @cached_property
    def programs(self) -> Programs:
        """References as programs in ``--notation``."""
        return Programs(self.references[0], notation_named(self.args.notation))

    @cached_property
    def execution(self) -> Execution:
        """References as queries on ``--database``."""
        if self.args.database is None:
            raise ScoringError("--database is missing: the metric execution runs queries on a SQLite file")
        notation = notation_named(self.args.notation)
        return Execution(self.args.database, self.references[0], self.args.references[0], notation)

    def _plain(self, lines: list[str]) -> list[str]:
        return lines if self.args.detokenize is None else detokenize(lines, self.args.detokenize)

    def measures(self, system: Path) -> dict[str, measures.Measure]:
        # Programs are written anew by their library, so the references that fairseq-generate writes have other blanks.
        is_program = isinstance(notation_named(self.args.notation), Language)
        lines, invalid = read_output_texts(system, self.count, None if is_program else self.references)
        trees = ["" if number in invalid else line for number, line in enumerate(lines)]
        names = self.args.metrics
        return {name: self._measure(name, trees if name in ("tree", "brackets", "code") else lines) for name in names}

    def _measure(self, name: str, lines: list[str]) -> measures.Measure:
        args = self.args
        if name in measures.TEXT_METRICS:
            metric = measures.text_metric(name, args.lowercase, args.tokenize)
            return measures.TextMeasure(name, metric, self.texts, self._plain(lines))
        if name == "exact":
            return measures.exact_match(self.references, lines)
        if name == "tree":
            unordered = unordered_labels(args.notation) if args.unordered is None else args.unordered
            return tree_match(
                self.trees, [_read_or_none(notation_named(args.notation).read, line) for line in lines], unordered
            )
        if name == "brackets":
            return evalb.BracketMeasure(self.forests, [_read_or_none(read_sentences, line) for line in lines])
        if name == "classes":
            return ClassMeasure(read_references(args.references, _read_class), lines, prefix="class_")
        if name == "code":
            trees = [self.programs.parse(line) for line in lines]
            outcomes = measures.MeanMeasure(self.programs.outcomes(lines, trees))
            return measures.JoinedMeasure([outcomes, *self.programs.measures(lines, trees).values()])
        if name == "execution":
            return measures.MeanMeasure(self.execution.outcomes(lines))
        if name in measures.ROUGES:
            return measures.ROUGES[name](self.references[0], lines)
        return NumberMeasure(read_references(args.references, read_number), lines)

    def parts(self) -> dict[str, tuple[Sequence[int], Sequence[int]]]:
        args = self.args
        parts = {"by_length": (self._lengths(), args.length_bounds)}
        if args.trees is not None:
            read_text(args.trees, self.count)
            parts["by_depth"] = (list(map(depth_of, _read_forests(args.trees))), args.depth_bounds)
        elif "brackets" in args.metrics:
            parts["by_depth"] = (list(map(depth_of, self.forests)), args.depth_bounds)
        elif "tree" in args.metrics:
            parts["by_depth"] = ([tree.height() for tree in self.trees], args.depth_bounds)
        return parts

    def _lengths(self) -> list[int]:
        if self.args.sources is not None:
            return [len(line.split()) for line in read_text(self.args.sources, self.count)]
        if "brackets" in self.args.metrics:
            return [len(forest_leaves(forest)) for forest in self.forests]
        return [len(line.split()) for line in self.references[0]]

    def details(self, system: Mapping[str, measures.Measure]) -> dict[str, Any]:
        if {"exact", "tree"} <= system.keys():
            same, exact = system["tree"].outcomes["tree_match"], system["exact"].outcomes["exact_match"]
            if others := sum(tree and not text for tree, text in zip(same, exact)):
                message = "%d of %d hypotheses are the tree of the reference but not its text, as blanks or brackets "
                message += "are written in another way: exact_match counts them as wrong. Read tree_match"
                logger.warning(message, others, self.count)
        if "brackets" not in system:
            return {}
        sentences = system["brackets"].sentences
        if sentences["valid"] < self.count:
            message = "%d of %d hypotheses are not trees of the reference's words, %d are empty; EVALB leaves them out"
            logger.warning(message, sentences["error"], self.count, sentences["skipped"])
        return {"bracket_sentences": sentences}


def tree_match(
    references: Sequence[Tree], hypotheses: Sequence[Tree | None], unordered: Sequence[str]
) -> measures.MeanMeasure:
    """``tree_match``; ``tree_match_unordered``, with the children of some labels in any order; ``valid_trees``."""
    return measures.MeanMeasure({
        "tree_match": exact_matches(hypotheses, references),
        "tree_match_unordered": exact_matches(hypotheses, references, unordered),
        "valid_trees": [tree is not None for tree in hypotheses],
    })  # fmt: skip


def _read_class(line: str, path: Path, number: int) -> str:
    if path.suffix in (".tsv", ".trees"):
        return read_class(line, path, number)[0]
    if len(line.split()) != 1:
        raise LabelColumnError("the line is not a class", path, number, hint="A line is one class.")
    return line.strip()


def _read_forests(path: Path) -> list[Forest]:
    return read_references([path], read_sentences)


def _read_or_none(read: Callable[[str], Any], line: str) -> Any:
    try:
        return read(line)
    except (SymbolTreeError, TreeFormatError):
        return None


def score_files(args: Namespace) -> dict[str, Any]:
    """Scores the files that the arguments name; returns all figures, as ``--output`` writes them."""
    test_set = FileSet(args)
    ours = test_set.measures(args.hypotheses)
    baselines = {str(path): test_set.measures(path) for path in args.baseline}
    test = Resampling(args.test, args.samples or SAMPLES[args.test])
    result = score(test_set, ours, baselines, test)
    files = {"hypotheses": str(args.hypotheses), "references": [str(path) for path in args.references]}
    return {**files, **result}


def main(arguments: Sequence[str] | None = None, epilog: str = "") -> None:
    """Runs the command."""
    args = read_arguments(files_parser(epilog), arguments)
    print_scores(args, score_files, lambda result: tables(result, result["hypotheses"]))


def print_scores(
    args: Namespace, score: Callable[[Namespace], dict[str, Any]], lines: Callable[[Mapping[str, Any]], list[str]]
) -> None:
    """Scores, prints the result, and writes it to ``--output`` if this is given."""
    require_folders(args.output)
    result = score(args)
    sys.stdout.write("\n".join(lines(result)) + "\n")
    if args.output is not None:
        write_json(args.output, result)
