"""What the commands that score a run have in common: their options, and where the scores go."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from tree_fairseq.compat import allow_checkpoint_classes
from tree_fairseq.scoring.checkpoint import checkpoint_facts
from tree_fairseq.scoring.result import SCORE_FILE, build_result, read_runs, read_scores, write_json


def add_run_arguments(parser: ArgumentParser, primary: str) -> None:
    """Adds the options about runs; ``primary`` is the metric that stands under 'score' where none is named."""
    parser.add_argument("--run", type=Path, required=True, help="folder with generate-{subset}.txt; gets score.json")
    parser.add_argument(
        "--sets", nargs="+", default=["test="], metavar="SUBSET=LABEL", help="test sets; labels end metric names"
    )
    parser.add_argument("--against", type=Path, nargs="*", default=[], help="folders of runs to compare with")
    parser.add_argument("--primary", default=primary, help="metric that stands under 'score' (default: %(default)s)")
    parser.add_argument("--checkpoint", type=Path, help="the run's checkpoint: parameters, updates, digest")
    parser.add_argument("--describe", nargs="*", default=[], metavar="NAME=VALUE", help="kept with the scores")
    parser.add_argument("--result", type=Path, help="collect all runs below this file's folder in it")
    parser.add_argument("--main-run", type=Path, help="the run whose metrics stand at the top of the result (this one)")


def pairs(values: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` arguments as a dictionary."""
    return dict(value.partition("=")[::2] for value in values)


def run_content(args: Namespace, scores: dict) -> dict:
    """What ``score.json`` holds: the scores, how the run was described, and the facts of its checkpoint."""
    content = {"primary": args.primary, "description": {"run": args.run.name, **pairs(args.describe)}, **scores}
    if args.checkpoint is not None:
        allow_checkpoint_classes()
        content["checkpoint"] = checkpoint_facts(args.checkpoint)
    return content


def publish(args: Namespace, content: dict, report: str) -> None:
    """Writes ``score.json`` of the run, prints the report, and collects all runs where a result was asked for.

    Raises:
        ScoringError: the primary metric was not measured, or the run that is to stand at the top was not scored
    """
    write_json(args.run / SCORE_FILE, content)
    sys.stdout.write(report + "\n")
    if args.result is not None:
        top = content if args.main_run is None else read_scores(args.main_run / SCORE_FILE)
        result = build_result(top, read_runs(args.result.parent))
        write_json(args.result, result)
        sys.stdout.write(f"{result['metric']} = {result['score']:.2f} -> {args.result}\n")
