"""Score classes: accuracy, macro F1, confusions, by group (such as the number of attractors) and by length.

    python -m tree_fairseq.scoring classification --run runs/tree --references text --against runs/stock --result result.json

``--run`` is a folder with ``generate-{subset}.txt``, the output of fairseq-generate. ``--references`` is the folder with the corpus's
own ``{subset}.tsv`` or ``{subset}.trees`` and, if examples belong to groups, ``{subset}.groups``. All metrics are in percent. The outcomes of
single examples go to ``outcomes.json`` beside ``score.json``; ``--against`` compares with those of runs that were scored before.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tree_fairseq.scoring.classification_runs import ClassificationOptions, score_run
from tree_fairseq.scoring.command import add_run_arguments, bucket_lines, difference_lines, group_lines, reference_sets, score_and_publish


def report(scores: dict) -> str:
    """The scores as lines of text."""
    lines = [f"{name} = {value:.2f}" for name, value in scores["metrics"].items()]
    lines += difference_lines(scores)
    for subset, confusion in scores["confusion"].items():
        lines += [f"confusion of {subset}: rows are right, columns predicted", *table(confusion)]
    return "\n".join([*lines, *group_lines(scores), *bucket_lines(scores, "by_length", "words")])


def table(confusion: dict) -> list[str]:
    """A confusion matrix as aligned lines of text, with its classes at the margins."""
    rows = [["", *confusion["classes"]], *([name, *map(str, counts)] for name, counts in zip(confusion["classes"], confusion["counts"]))]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]


def options_from_arguments(args: argparse.Namespace) -> ClassificationOptions:
    """The options that a command line asks for. Raises ScoringError where they do not go together."""
    return ClassificationOptions(args.references, reference_sets(args), tuple(args.group_metrics), tuple(args.length_bounds))


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tree_fairseq.scoring classification", description=__doc__.splitlines()[0])
    add_run_arguments(parser, primary="accuracy")
    parser.add_argument("--references", type=Path, required=True, help="folder of the corpus's own lines, or the file of one set")
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
