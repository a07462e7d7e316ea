"""What the commands that score a run have in common: their options, and where the scores go."""

from __future__ import annotations

import hashlib
import logging
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from tree_fairseq.commands.average import load_state
from tree_fairseq.compat import allow_checkpoint_classes
from tree_fairseq.errors import ScoringError, TreeFairseqError
from tree_fairseq.files import write_json
from tree_fairseq.scoring.outputs import SCORE_FILE, build_result, read_runs, read_scores

OUTCOMES_FILE = "outcomes.json"


# FROM scoring/checkpoint: What a table of results tells of a checkpoint.


def parameter_count(model: dict[str, torch.Tensor]) -> int:
    """Parameters of a saved model, tied matrices counted once.

    Tied matrices are saved under several names, from a GPU as separate copies: equal content is what tells them.
    """
    counts = {}
    for name, tensor in model.items():
        if name.rsplit(".", 1)[-1] in ("version", "_float_tensor"):
            continue  # markers of fairseq's modules
        tied = tensor.dim() > 1
        key = hashlib.sha256(tensor.float().contiguous().numpy()).digest() if tied else name
        counts[key] = tensor.numel()
    return sum(counts.values())


def checkpoint_facts(path: Path) -> dict:
    """SHA-256, parameters, updates, seconds of training."""
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    state = load_state(path)
    history = state.get("optimizer_history") or [{}]
    extra = state.get("extra_state") or {}
    return {
        "sha256": digest,
        "parameters": parameter_count(state["model"]),
        "updates": history[-1].get("num_updates"),
        "training_seconds": extra.get("previous_training_time"),
    }


logger = logging.getLogger(__name__)


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


def reference_sets(args: Namespace) -> dict[str, str]:
    """The test sets of ``--sets``, whose references are in a folder or, of a single one, a file.

    Raises:
        ScoringError: one file is given for several sets
    """
    sets = pairs(args.sets)
    if args.references.is_file() and len(sets) > 1:
        raise ScoringError(f"--references {args.references} is one file for {len(sets)} sets: give the folder")
    return sets


def difference_lines(scores: dict) -> list[str]:
    """How a run differs from those it was set beside, example by example, as lines of text."""
    return [
        f"{row['metric']}: {row['difference']:+.2f} over {row['baseline']} "
        f"(p = {row['p_value']:.4f}, {row['only_system']} to {row['only_baseline']}, {row['signature']})"
        for row in scores["differences"]
    ]


def group_lines(scores: dict) -> list[str]:
    """Accuracy of each group of each test set, as lines of text."""
    return [
        f"accuracy of {subset}, {name}: {row['accuracy']:.2f} ({row['sentences']})"
        for subset, rows in scores["groups"].items()
        for name, row in rows.items()
    ]


def bucket_lines(scores: dict, key: str, measure: str) -> list[str]:
    """Accuracy of each test set by a measure, such as words, whose buckets stand under a key, as lines of text."""
    lines = []
    for subset, rows in scores[key].items():
        parts = (f"{row['from']}-{row['to'] or ''}: {row['accuracy']:.2f} ({row['sentences']})" for row in rows)
        lines.append(f"accuracy of {subset} by {measure}  " + "  ".join(parts))
    return lines


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
        args.result.parent.mkdir(parents=True, exist_ok=True)
        write_json(args.result, result)
        sys.stdout.write(f"{result['metric']} = {result['score']:.2f} -> {args.result}\n")


def score_and_publish(
    args: Namespace, score: Callable[[], tuple[dict, dict | None]], report: Callable[[dict], str]
) -> int:
    """Scores a run and publishes what came of it; errors of ours are told, not raised.

    Args:
        args: of the command
        score: makes the scores and the outcomes that other runs are compared with, None where there are none
        report: the scores as lines of text

    Returns:
        the exit status
    """
    logging.basicConfig(format="%(levelname)s | %(message)s", level=logging.INFO)
    try:
        scores, outcomes = score()
        content = run_content(args, scores)
        if outcomes is not None:
            write_json(args.run / OUTCOMES_FILE, outcomes)
        publish(args, content, report(content))
    except TreeFairseqError as error:
        logger.error("%s", error)
        return 1
    return 0
