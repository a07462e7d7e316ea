"""Score generated trees: whole-program accuracy, exact match with unordered children, validity, IFTTT's metrics.

    python -m tree_fairseq.scoring structural --run runs/tree --data data-bin --references words --against runs/stock \
        --result result.json

``--run`` is a folder with ``generate-{subset}.txt``, the output of fairseq-generate. ``--references`` is the folder with the
corpus's own ``{subset}.{language}`` and, if sentences belong to groups, ``{subset}.groups``: the reference is the line as
it was before preprocessing, so that a symbol that the dictionary does not have is never right. Accuracies and F1 are in
percent, ``validity`` is a share from 0 to 1, ``steps`` (where ``I-`` lines tell them) the mean number of decoding steps, ``partial`` counts
outputs that reached a limit. The outcomes of single sentences go to ``outcomes.json`` beside ``score.json``;
``--against`` compares with those of runs that were scored before.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import MissingTreesError, ScoringError
from tree_fairseq.scoring.breakdowns import differences, group_metrics, read_groups
from tree_fairseq.scoring.outcomes import SCHEMES, VALIDITY, Judgement, as_digits, from_digits, read_output, size
from tree_fairseq.scoring.outputs import LINES, Outputs, read_complete, reader_named
from tree_fairseq.scoring.runs import (
    OUTCOMES_FILE,
    add_run_arguments,
    bucket_lines,
    difference_lines,
    group_lines,
    reference_sets,
    score_and_publish,
)
from tree_fairseq.tree_insertion import INVALID, PARTIAL
from tree_fairseq.tree_insertion.folder import InsertionRecord
from tree_fairseq.trees.notations import NOTATIONS
from tree_fairseq.trees.symbols import SymbolEncoding
from tree_fairseq.trees.text import read_lines
from tree_fairseq.trees.tree import Tree
from tree_fairseq.trees.unordered import unordered_labels

# FROM scoring/structural_runs: A run's outputs beside the corpus's own lines: metrics, differences from other runs, outcomes of single sentences.


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StructuralOptions:
    """How a run is scored.

    Attributes:
        references: folder of the test sets, or the one file of the one test set.
        language: of the target, the suffix of its files.
        notation: name of that of references, and of outputs unless they are symbols; ``lines`` for text that is no tree.
        encoding: how outputs that are symbols make trees; None for text.
        sets: subset of the data folder -> label in metric names ("" for none).
        unordered: labels whose children have no order.
        scheme: of metrics, see :class:`Judgement`.
        size_bounds, depth_bounds: largest size (nodes) and depth (edges) of each bucket of references but the last.
        group_metrics: groups whose metrics stand among those of the run.
    """

    references: Path
    language: str
    notation: str
    encoding: SymbolEncoding | None
    sets: dict[str, str]
    unordered: tuple[str, ...]
    scheme: str = "exact"
    size_bounds: tuple[int, ...] = (10, 20, 30, 40, 50)
    depth_bounds: tuple[int, ...] = (2, 4, 6, 8, 10)
    group_metrics: tuple[str, ...] = ()


def read_references(options: StructuralOptions, subset: str) -> list[Tree]:
    """The trees of a test set.

    Raises:
        ScoringError: there are none
        SymbolTreeError: a line is no tree
    """
    path = options.references if options.references.is_file() else options.references / f"{subset}.{options.language}"
    if not path.is_file():
        raise ScoringError(f"{path} is missing: --references takes the folder with the lines that were preprocessed")
    notation = reader_named(options.notation)
    trees = [notation.read(line, path=path, line_number=number) for number, line in enumerate(read_lines(path), 1)]
    if not trees:
        raise ScoringError(f"{path} is empty")
    return trees


def read_run(run: Path, subset: str, count: int) -> Outputs:
    """What a run generated for a test set of ``count`` sentences; says how many of them have nothing.

    Raises:
        ScoringError: there is no such file, or it is of other sentences
    """
    path = run / f"generate-{subset}.txt"
    if not path.is_file():
        raise ScoringError(f"{path} is missing: generate with that run first")
    outputs = read_complete(path, count)
    if missing := count - len(outputs.best):
        logger.warning("%s: %d of %d sentences have no output; they count as wrong and invalid", path, missing, count)
    return outputs


def judge(outputs: Outputs, references: list[Tree], options: StructuralOptions) -> Judgement:
    """Outputs beside the references; what was not one tree when it was generated is none, however it reads."""
    notation = reader_named(options.notation)
    trees = []
    for index in range(len(references)):
        is_valid = INVALID not in outputs.unfinished.get(index, ())
        trees.append(read_output(outputs.best.get(index), notation, options.encoding) if is_valid else None)
    steps = [outputs.steps.get(index) for index in range(len(references))]
    return Judgement(trees, references, options.unordered, options.scheme, None if None in steps else steps)


def score_run(run: Path, options: StructuralOptions, against: Sequence[Path] = ()) -> tuple[dict, dict]:
    """Metrics of a run, by size, depth and group too, and its difference from other runs; its outcomes by set and metric.

    Raises:
        ScoringError: files are missing or do not fit each other
    """
    scores: dict = {"metrics": {}, "sentences": {}, "by_size": {}, "by_depth": {}, "groups": {}, "differences": []}
    scores["partial"] = {}
    kept, judgements = {}, []
    others = {other.name: read_outcomes(other) for other in against}
    for subset, label in options.sets.items():
        suffix = f"_{label}" if label else ""
        references = read_references(options, subset)
        outputs = read_run(run, subset, len(references))
        judgement = judge(outputs, references, options)
        judgements.append(judgement)
        scores["metrics"] |= {name + suffix: value for name, value in judgement.metrics().items()}
        scores["sentences"][subset] = len(references)
        scores["partial"][subset] = sum(PARTIAL in said for said in outputs.unfinished.values())
        scores["by_size"][subset] = judgement.by(size, options.size_bounds)
        scores["by_depth"][subset] = judgement.by(Tree.height, options.depth_bounds)
        if groups := read_groups(options.references, subset, len(references)):
            scores["groups"][subset] = judgement.by_group(groups)
            scores["metrics"] |= group_metrics(scores["groups"][subset], options.group_metrics, suffix)
        kept[subset] = as_digits(judgement.outcomes)
        compared = {metric: values for metric, values in judgement.outcomes.items() if metric != VALIDITY}
        for name, outcomes in others.items():
            scores["differences"] += differences(name, outcomes.get(subset, {}), compared, suffix)
    if options.notation == LINES:
        # Nothing tells whether a line is a program.
        scores["metrics"] = {name: value for name, value in scores["metrics"].items() if not name.startswith(VALIDITY)}
    elif VALIDITY not in scores["metrics"]:
        valid = [outcome for judgement in judgements for outcome in judgement.outcomes[VALIDITY]]
        scores["metrics"][VALIDITY] = sum(valid) / len(valid)
    return scores, kept


def read_outcomes(run: Path) -> dict[str, dict[str, list[bool]]]:
    """The outcomes of a run that was scored before, by set and metric. Raises ScoringError where there are none."""
    path = run / OUTCOMES_FILE
    try:
        return {
            subset: from_digits(outcomes) for subset, outcomes in json.loads(path.read_text(encoding="utf-8")).items()
        }
    except FileNotFoundError:
        raise ScoringError(f"{path} is missing: score that run first") from None
    except (ValueError, AttributeError) as error:
        raise ScoringError(f"{path} holds no outcomes ({error}); score that run again") from error


def report(scores: dict) -> str:
    """The scores as lines of text."""
    lines = [f"{name} = {value:.{4 if name.startswith(VALIDITY) else 2}f}" for name, value in scores["metrics"].items()]
    lines += difference_lines(scores)
    lines += bucket_lines(scores, "by_size", "nodes") + bucket_lines(scores, "by_depth", "depth")
    lines += [
        f"{count} outputs of {subset} reached a limit and are partial"
        for subset, count in scores["partial"].items()
        if count
    ]
    return "\n".join([*lines, *group_lines(scores)])


def options_from_arguments(args: argparse.Namespace) -> StructuralOptions:
    """The options that a command line asks for; what it leaves open stands in the manifest of the data folder.

    Raises:
        ScoringError: neither tells
        MissingTreesError: the folder has no symbol trees of the target, nor such as grow by insertions
    """
    language, notation, encoding = args.target_lang, args.notation, None
    if args.symbols or notation is None or language is None and args.references.is_dir():
        if args.data is None:
            raise ScoringError(
                "--data is missing: without it, --notation and --target-lang are needed, and --symbols is not possible"
            )
        manifest = Manifest.load(args.data)
        language = language or manifest.target_lang
        record = manifest.symbols.get(language)
        grown = (
            manifest.section(InsertionRecord)
            if manifest.section(InsertionRecord) is not None and manifest.section(InsertionRecord).lang == language
            else None
        )
        if record is None and (grown is None or args.symbols):
            raise MissingTreesError(f"{args.data} holds no symbol trees of {language}: give --notation")
        notation = notation or (record or grown).notation
        encoding = record.encoding if args.symbols else None
    sets = reference_sets(args)
    unordered = unordered_labels(notation) if args.unordered is None else tuple(args.unordered)
    return StructuralOptions(
        args.references,
        language,
        notation,
        encoding,
        sets,
        unordered,
        args.scheme,
        tuple(args.size_bounds),
        tuple(args.depth_bounds),
        tuple(args.group_metrics),
    )


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tree_fairseq.scoring structural", description=__doc__.splitlines()[0]
    )
    add_run_arguments(parser, primary="accuracy")
    parser.add_argument(
        "--references", type=Path, required=True, help="folder of the corpus's own lines, or the file of one set"
    )
    parser.add_argument("--data", type=Path, help="data folder of the run: tells language, notation and encoding")
    parser.add_argument("--target-lang", help="suffix of the reference files (that of the data folder)")
    parser.add_argument(
        "--notation",
        choices=[*sorted(NOTATIONS), LINES],
        help="how trees are written (as in the data folder); lines: they are text",
    )
    parser.add_argument(
        "--symbols", action="store_true", help="outputs are symbols with arities, as stock tasks print them"
    )
    parser.add_argument(
        "--unordered",
        nargs="*",
        metavar="LABEL",
        help="labels whose children have no order (and, or; in Prolog , and ; too)",
    )
    parser.add_argument(
        "--scheme", choices=SCHEMES, default="exact", help="ifttt: channels, functions and productions too"
    )
    parser.add_argument(
        "--group-metrics", nargs="*", default=[], metavar="GROUP", help="groups whose metrics join those of the run"
    )
    parser.add_argument(
        "--size-bounds", type=int, nargs="*", default=[10, 20, 30, 40, 50], help="in nodes of the reference"
    )
    parser.add_argument("--depth-bounds", type=int, nargs="*", default=[2, 4, 6, 8, 10], help="in edges from the root")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    args = _arguments(arguments)
    return score_and_publish(args, lambda: score_run(args.run, options_from_arguments(args), args.against), report)


if __name__ == "__main__":
    sys.exit(main())
