"""Score generated trees: whole-program accuracy, exact match with unordered children, validity, IFTTT's metrics.

    python -m tree_fairseq.scoring structural --run runs/tree --data data-bin --references words --against runs/stock \\
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
import sys
from pathlib import Path

from tree_fairseq.data.manifest import Manifest
from tree_fairseq.errors import MissingTreesError, ScoringError
from tree_fairseq.scoring.command import add_run_arguments, bucket_lines, difference_lines, group_lines, reference_sets, score_and_publish
from tree_fairseq.scoring.exact_match import unordered_labels
from tree_fairseq.scoring.lines import LINES
from tree_fairseq.scoring.structural_outcomes import SCHEMES, VALIDITY
from tree_fairseq.scoring.structural_runs import StructuralOptions, score_run
from tree_fairseq.trees.notations import NOTATIONS


def report(scores: dict) -> str:
    """The scores as lines of text."""
    lines = [f"{name} = {value:.{4 if name.startswith(VALIDITY) else 2}f}" for name, value in scores["metrics"].items()]
    lines += difference_lines(scores)
    lines += bucket_lines(scores, "by_size", "nodes") + bucket_lines(scores, "by_depth", "depth")
    lines += [f"{count} outputs of {subset} reached a limit and are partial" for subset, count in scores["partial"].items() if count]
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
        grown = manifest.insertion if manifest.insertion is not None and manifest.insertion.lang == language else None
        if record is None and (grown is None or args.symbols):
            raise MissingTreesError(f"{args.data} holds no symbol trees of {language}: give --notation")
        notation = notation or (record or grown).notation
        encoding = record.encoding if args.symbols else None
    sets = reference_sets(args)
    unordered = unordered_labels(notation) if args.unordered is None else tuple(args.unordered)
    return StructuralOptions(
        args.references, language, notation, encoding, sets, unordered, args.scheme, tuple(args.size_bounds),
        tuple(args.depth_bounds), tuple(args.group_metrics),
    )


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tree_fairseq.scoring structural", description=__doc__.splitlines()[0])
    add_run_arguments(parser, primary="accuracy")
    parser.add_argument("--references", type=Path, required=True, help="folder of the corpus's own lines, or the file of one set")
    parser.add_argument("--data", type=Path, help="data folder of the run: tells language, notation and encoding")
    parser.add_argument("--target-lang", help="suffix of the reference files (that of the data folder)")
    parser.add_argument(
        "--notation", choices=[*sorted(NOTATIONS), LINES], help="how trees are written (as in the data folder); lines: they are text"
    )
    parser.add_argument("--symbols", action="store_true", help="outputs are symbols with arities, as stock tasks print them")
    parser.add_argument(
        "--unordered", nargs="*", metavar="LABEL", help="labels whose children have no order (and, or; in Prolog , and ; too)"
    )
    parser.add_argument("--scheme", choices=SCHEMES, default="exact", help="ifttt: channels, functions and productions too")
    parser.add_argument(
        "--group-metrics", nargs="*", default=[], metavar="GROUP", help="groups whose metrics join those of the run"
    )
    parser.add_argument("--size-bounds", type=int, nargs="*", default=[10, 20, 30, 40, 50], help="in nodes of the reference")
    parser.add_argument("--depth-bounds", type=int, nargs="*", default=[2, 4, 6, 8, 10], help="in edges from the root")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    args = _arguments(arguments)
    return score_and_publish(args, lambda: score_run(args.run, options_from_arguments(args), args.against), report)


if __name__ == "__main__":
    sys.exit(main())
