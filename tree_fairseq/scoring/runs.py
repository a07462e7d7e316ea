"""The frame of all commands that score the runs of a recipe.

A *run* is a folder with ``generate-{subset}.txt``, the output of ``fairseq-generate``. Scoring writes ``score.json``
into it and, where other runs can be compared example by example, ``outcomes.json``. ``--result`` collects all runs
below a folder in one ``result.json``.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from abc import ABC, abstractmethod
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import torch

from tree_fairseq.compat import allow_checkpoint_classes, load_weights_only
from tree_fairseq.errors import ScoringError, TreeFairseqError
from tree_fairseq.files import write_json
from tree_fairseq.scoring.breakdowns import differences
from tree_fairseq.scoring.outputs import SCORE_FILE, build_result, read_hypotheses, read_runs, read_scores

logger = logging.getLogger(__name__)

OUTCOMES_FILE = "outcomes.json"

Outcomes = Mapping[str, Sequence[bool]]
"""For each metric, whether each example of a test set is right."""


class RunScorer(ABC):
    """Scores one run: loops over test sets, compares with other runs, prints the report and writes the result files.

    A subclass adds its options and scores a test set.

    Args:
        args: parsed options

    Attributes:
        name: of the scorer, ``python -m tree_fairseq.scoring NAME``
        about: one line for ``--help``
        primary: default metric under ``score`` in ``result.json``
        sections: entries of ``score.json`` that hold something for each test set
        compares_outcomes: whether runs are compared example by example, by McNemar's test
    """

    name: ClassVar[str]
    about: ClassVar[str]
    primary: ClassVar[str]
    sections: ClassVar[tuple[str, ...]] = ("sentences",)
    compares_outcomes: ClassVar[bool] = False

    def __init__(self, args: Namespace):
        self.args = args

    @staticmethod
    @abstractmethod
    def add_arguments(parser: ArgumentParser) -> None:
        """Adds the scorer's own options."""

    @abstractmethod
    def score_set(self, scores: dict, subset: str, suffix: str) -> Outcomes | None:
        """Scores one test set.

        Args:
            scores: content of ``score.json`` to extend
            subset: of the data folder, such as ``test``
            suffix: of metric names

        Returns:
            the outcomes to store and to compare, if the scorer compares outcomes

        Raises:
            ScoringError: a file is missing or does not fit the others
        """

    def report(self, scores: dict) -> list[str]:
        """Returns the lines to print."""
        return [*(f"{name} = {value:.2f}" for name, value in scores["metrics"].items()), *difference_lines(scores)]

    def compared(self, outcomes: Outcomes) -> Outcomes:
        """Returns the outcomes by which runs are compared."""
        return outcomes

    @cached_property
    def sets(self) -> dict[str, str]:
        """The test sets: subset of the data folder, and the label that ends its metric names."""
        return pairs(self.args.sets)

    @cached_property
    def others(self) -> dict[str, dict[str, dict[str, list[bool]]]]:
        """The outcomes of the runs of ``--against``, by run, test set and metric."""
        return {other.name: read_outcomes(other) for other in self.args.against} if self.compares_outcomes else {}

    def score(self) -> tuple[dict, dict | None]:
        """Returns the content of ``score.json`` and of ``outcomes.json``."""
        scores = {"metrics": {}, **{section: {} for section in self.sections}, "differences": []}
        kept = {}
        for subset, label in self.sets.items():
            suffix = f"_{label}" if label else ""
            outcomes = self.score_set(scores, subset, suffix)
            if outcomes is None:
                continue
            kept[subset] = as_digits(outcomes)
            for name, others in self.others.items():
                scores["differences"] += differences(name, others.get(subset, {}), self.compared(outcomes), suffix)
        return scores, kept if self.compares_outcomes else None

    def run(self) -> int:
        """Scores, writes and prints; returns the exit status. Our own errors are logged."""
        logging.basicConfig(format="%(levelname)s | %(message)s", level=logging.INFO)
        try:
            scores, outcomes = self.score()
            content = run_content(self.args, scores)
            if outcomes is not None:
                write_json(self.args.run / OUTCOMES_FILE, outcomes)
            publish(self.args, content, "\n".join(self.report(content)))
        except TreeFairseqError as error:
            logger.error("%s", error)
            return 1
        return 0

    @classmethod
    def main(cls, arguments: list[str] | None = None) -> int:
        """Runs the command; returns its exit status."""
        parser = ArgumentParser(prog=f"python -m tree_fairseq.scoring {cls.name}", description=cls.about)
        add_run_arguments(parser, cls.primary)
        cls.add_arguments(parser)
        return cls(parser.parse_args(arguments)).run()


def add_run_arguments(parser: ArgumentParser, primary: str) -> None:
    """Adds the options that all scorers share."""
    parser.add_argument("--run", type=Path, required=True, help="folder with generate-{subset}.txt; gets score.json")
    parser.add_argument(
        "--sets", nargs="+", default=["test="], metavar="SUBSET=LABEL", help="test sets; labels end metric names"
    )
    parser.add_argument("--against", type=Path, nargs="*", default=[], help="folders of runs to compare with")
    parser.add_argument("--primary", default=primary, help="metric under 'score' in the result (default: %(default)s)")
    parser.add_argument("--checkpoint", type=Path, help="the run's checkpoint; adds parameters, updates and digest")
    parser.add_argument("--describe", nargs="*", default=[], metavar="NAME=VALUE", help="stored with the scores")
    parser.add_argument("--result", type=Path, help="collect all runs below the folder of this file in it")
    parser.add_argument("--main-run", type=Path, help="the run at the top of the result (default: this one)")


def add_reference_arguments(parser: ArgumentParser) -> None:
    """Adds the options of scorers that read the corpus's own lines and groups of them."""
    parser.add_argument(
        "--references", type=Path, required=True, help="folder of the corpus's own lines, or the file of one set"
    )
    parser.add_argument(
        "--group-metrics", nargs="*", default=[], metavar="GROUP", help="groups whose metrics join those of the run"
    )


def pairs(values: Sequence[str]) -> dict[str, str]:
    """Returns ``NAME=VALUE`` arguments as a dictionary."""
    return dict(value.partition("=")[::2] for value in values)


def require_one_reference(args: Namespace) -> None:
    """Raises ScoringError if ``--references`` is one file for several test sets."""
    if args.references.is_file() and len(args.sets) > 1:
        raise ScoringError(f"--references {args.references} is one file for {len(args.sets)} sets: give the folder")


def generated(run: Path, subset: str) -> Path:
    """Returns the file that a run generated for a test set. Raises ScoringError if it is missing."""
    path = run / f"generate-{subset}.txt"
    if not path.is_file():
        raise ScoringError(f"{path} is missing: generate with that run first")
    return path


def hypotheses_of(run: Path, subset: str) -> list[str]:
    """Returns the best hypothesis of each sentence. Raises ScoringError if the run did not generate all of them."""
    return read_hypotheses(generated(run, subset))


def read_outcomes(run: Path) -> dict[str, dict[str, list[bool]]]:
    """Reads the outcomes of a scored run, by test set and metric. Raises ScoringError if it has none."""
    path = run / OUTCOMES_FILE
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return {subset: from_digits(outcomes) for subset, outcomes in stored.items()}
    except FileNotFoundError:
        raise ScoringError(f"{path} is missing: score that run first") from None
    except (ValueError, AttributeError) as error:
        raise ScoringError(f"{path} holds no outcomes ({error}); score that run again") from error


def as_digits(outcomes: Outcomes) -> dict[str, str]:
    """Encodes outcomes for a file, one digit per example."""
    return {name: "".join("01"[value] for value in values) for name, values in outcomes.items()}


def from_digits(outcomes: Mapping[str, str]) -> dict[str, list[bool]]:
    """Inverts :func:`as_digits`."""
    return {name: [digit == "1" for digit in digits] for name, digits in outcomes.items()}


def difference_lines(scores: dict, unit: str = "") -> list[str]:
    """Formats the differences from other runs."""
    lines = []
    for row in scores["differences"]:
        disagreements = f"{row['only_system']} to {row['only_baseline']}, " if "only_system" in row else ""
        test = f" (p = {row['p_value']:.4f}, {disagreements}{row['signature']})" if "p_value" in row else ""
        lines.append(f"{row['metric']}: {row['difference']:+.2f}{unit} over {row['baseline']}{test}")
    return lines


def group_lines(scores: dict) -> list[str]:
    """Formats the accuracy of each group of each test set."""
    return [
        f"accuracy of {subset}, {name}: {row['accuracy']:.2f} ({row['sentences']})"
        for subset, rows in scores["groups"].items()
        for name, row in rows.items()
    ]


def bucket_line(title: str, rows: Iterable[dict], metric: str) -> str:
    """Formats a metric by buckets, such as sentence length."""
    parts = (f"{row['from']}-{row['to'] or ''}: {row[metric]:.2f} ({row['sentences']})" for row in rows)
    return f"{title}  " + "  ".join(parts)


def bucket_lines(scores: dict, section: str, measure: str) -> list[str]:
    """Formats the accuracy of each test set by buckets of a measure, such as words."""
    return [
        bucket_line(f"accuracy of {subset} by {measure}", rows, "accuracy") for subset, rows in scores[section].items()
    ]


def run_content(args: Namespace, scores: dict) -> dict:
    """Returns the content of ``score.json``: the scores, the run's description and the facts of its checkpoint."""
    content = {"primary": args.primary, "description": {"run": args.run.name, **pairs(args.describe)}, **scores}
    if args.checkpoint is not None:
        allow_checkpoint_classes()
        content["checkpoint"] = checkpoint_facts(args.checkpoint)
    return content


def publish(args: Namespace, content: dict, report: str) -> None:
    """Writes ``score.json``, prints the report, and writes ``--result``.

    Raises:
        ScoringError: the primary metric or the scores of ``--main-run`` are missing
    """
    write_json(args.run / SCORE_FILE, content)
    sys.stdout.write(report + "\n")
    if args.result is not None:
        top = content if args.main_run is None else read_scores(args.main_run / SCORE_FILE)
        result = build_result(top, read_runs(args.result.parent))
        args.result.parent.mkdir(parents=True, exist_ok=True)
        write_json(args.result, result)
        sys.stdout.write(f"{result['metric']} = {result['score']:.2f} -> {args.result}\n")


def parameter_count(model: dict[str, torch.Tensor]) -> int:
    """Counts the parameters of a saved model, tied matrices once.

    Tied matrices are saved under several names, from a GPU as separate copies; equal content identifies them.
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
    """Returns SHA-256, parameters, updates and seconds of training of a checkpoint."""
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    state = load_weights_only(path)
    history = state.get("optimizer_history") or [{}]
    extra = state.get("extra_state") or {}
    return {
        "sha256": digest,
        "parameters": parameter_count(state["model"]),
        "updates": history[-1].get("num_updates"),
        "training_seconds": extra.get("previous_training_time"),
    }
