"""The frame of all commands that score the runs of a recipe.

A *run* is a folder with ``generate-{subset}.txt``, the output of ``fairseq-generate``. Scoring writes ``score.json``
into it and, if runs can be compared example by example, ``outcomes.json``. ``--result`` collects all runs
below a folder in one ``result.json``.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from abc import ABC, abstractmethod
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import torch

from tree_fairseq.errors import ScoringError, TreeFairseqError
from tree_fairseq.repairs.checkpoint_loading import load_weights_only
from tree_fairseq.scoring.breakdowns import COUNT, Metrics, by_group, mcnemar
from tree_fairseq.scoring.outputs import SCORE_FILE, build_result, read_hypotheses, read_scores, read_text
from tree_fairseq.support.error_reports import failed
from tree_fairseq.support.files import file_sha256, write_json

logger = logging.getLogger(__name__)

OUTCOMES_FILE = "outcomes.json"

Outcomes = Mapping[str, Sequence[bool]]  # for each metric, whether each example of a test set is right


class RunScorer(ABC):
    """Scores one run: loops over test sets, compares with other runs, prints the report and writes the result files.

    A subclass adds its options and scores a test set. Its docstring is the description of ``--help``.
    """

    name: ClassVar[str]  # of the scorer, ``tree-fairseq score NAME``
    primary: ClassVar[str]  # default metric under ``score`` in ``result.json``
    sections: ClassVar[tuple[str, ...]] = (COUNT,)  # entries of ``score.json`` that hold something for each test set
    compares_outcomes: ClassVar[bool] = False  # whether runs are compared by McNemar's test, example by example
    not_compared: ClassVar[str] = ""  # metric of these outcomes that is left out
    unit: ClassVar[str] = ""  # printed after each difference
    test: ClassVar[str] = ""  # printed before the signature of its test

    def __init__(self, args: Namespace):
        self.args = args

    @staticmethod
    @abstractmethod
    def add_arguments(parser: ArgumentParser) -> None:
        """Adds the scorer's own options."""

    @abstractmethod
    def score_set(self, scores: dict, subset: str, suffix: str) -> Outcomes | None:
        """Scores a subset of the data folder, such as ``test``, and extends ``scores``, the content of ``score.json``.

        The suffix ends metric names. Returns the outcomes to store and to compare, if the scorer compares outcomes.
        Raises ScoringError if a file is missing or does not fit the others.
        """

    def metric_line(self, scores: dict, name: str) -> str:
        """Returns the printed line of a metric."""
        return f"{name} = {scores['metrics'][name]:.2f}"

    def report(self, scores: dict) -> list[str]:
        """Returns the lines to print."""
        lines = [self.metric_line(scores, name) for name in scores["metrics"]]
        for row in scores["differences"]:
            test = f"{row['only_system']} to {row['only_baseline']}, " if "only_system" in row else self.test
            test = f" (p = {row['p_value']:.4f}, {test}{row['signature']})" if "p_value" in row else ""
            lines.append(f"{row['metric']}: {row['difference']:+.2f}{self.unit} over {row['baseline']}{test}")
        return lines

    def score(self) -> tuple[dict, dict | None]:
        """Returns the content of ``score.json`` and of ``outcomes.json``, which has a digit for each example."""
        scores = {"metrics": {}, **{section: {} for section in self.sections}, "differences": []}
        others = {run.name: read_outcomes(run) for run in self.args.against} if self.compares_outcomes else {}
        kept = {}
        for subset, label in pairs(self.args.sets).items():
            suffix = f"_{label}" if label else ""
            outcomes = self.score_set(scores, subset, suffix)
            if outcomes is None:
                continue
            kept[subset] = {name: "".join("01"[value] for value in values) for name, values in outcomes.items()}
            for other, baseline in others.items():
                scores["differences"] += [
                    {"metric": metric + suffix, "baseline": other, **mcnemar(baseline[subset][metric], ours)}
                    for metric, ours in outcomes.items()
                    if metric in baseline.get(subset, {}) and metric != self.not_compared
                ]
        return scores, kept if self.compares_outcomes else None

    def run(self) -> int:
        """Scores, writes and prints; returns the exit status. Our own errors are logged."""
        logging.basicConfig(format="%(levelname)s | %(message)s", level=logging.INFO)
        args = self.args
        try:
            scores, outcomes = self.score()
            description = {"run": args.run.name, **pairs(args.describe)}
            content = {"primary": args.primary, "description": description, **scores}
            if args.checkpoint is not None:
                content["checkpoint"] = checkpoint_facts(args.checkpoint)
            if outcomes is not None:
                write_json(args.run / OUTCOMES_FILE, outcomes)
            write_json(args.run / SCORE_FILE, content)
            sys.stdout.write("\n".join(self.report(content)) + "\n")
            if args.result is not None:
                top = content if args.main_run is None else read_scores(args.main_run / SCORE_FILE)
                result = build_result(top, args.result.parent)
                args.result.parent.mkdir(parents=True, exist_ok=True)
                write_json(args.result, result)
                sys.stdout.write(f"{result['metric']} = {result['score']:.2f} -> {args.result}\n")
        except TreeFairseqError as error:
            return failed(error, logger)
        return 0

    @classmethod
    def main(cls, arguments: list[str] | None = None) -> int:
        """Runs the command; returns its exit status."""
        parser = ArgumentParser(prog=f"tree-fairseq score {cls.name}", description=cls.__doc__)
        add = parser.add_argument
        add("--run", type=Path, required=True, help="folder with generate-{subset}.txt; gets score.json")
        add("--sets", nargs="+", default=["test="], metavar="SUBSET=LABEL", help="test sets; labels end metric names")
        add("--against", type=Path, nargs="*", default=[], help="folders of runs to compare with")
        add("--primary", default=cls.primary, help="metric under 'score' in the result (default: %(default)s)")
        add("--checkpoint", type=Path, help="the run's checkpoint; adds parameters, updates and digest")
        add("--describe", nargs="*", default=[], metavar="NAME=VALUE", help="stored with the scores")
        add("--result", type=Path, help="collect all runs below the folder of this file in it")
        add("--main-run", type=Path, help="the run at the top of the result (default: this one)")
        cls.add_arguments(parser)
        return cls(parser.parse_args(arguments)).run()


class GroupScorer(RunScorer):
    """Compares each output with a line of the corpus; ``{subset}.groups`` may have the groups of each line."""

    compares_outcomes = True

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        """Adds ``--references`` and ``--group-metrics``."""
        parser.add_argument(
            "--references", type=Path, required=True, help="folder of the corpus's own lines, or the file of one set"
        )
        parser.add_argument(
            "--group-metrics", nargs="*", default=[], metavar="GROUP", help="groups whose metrics join those of the run"
        )

    def reference_files(self, *names: str) -> list[Path]:
        """Returns the files with these names in ``--references``, or ``--references`` itself if it is a file."""
        path, sets = self.args.references, self.args.sets
        if path.is_file() and len(sets) > 1:
            raise ScoringError(f"--references {path} is one file for {len(sets)} sets: give the folder")
        return [path] if path.is_file() else [path / name for name in names]

    def add_metrics(self, scores: dict, subset: str, suffix: str, count: int, metrics: Metrics, folder: Path) -> None:
        """Adds the metrics of a test set of ``count`` examples and, if the folder has its groups, of these."""
        scores["metrics"] |= {name + suffix: value for name, value in metrics(range(count)).items()}
        scores[COUNT][subset] = count
        if (path := folder / f"{subset}.groups").is_file():
            groups = by_group([line.split() for line in read_text(path, count)], metrics)
            scores["groups"][subset] = groups
            for name in self.args.group_metrics:
                figures = {metric: value for metric, value in groups.get(name, {}).items() if metric != COUNT}
                scores["metrics"] |= {f"{metric}_{name}{suffix}": value for metric, value in figures.items()}


def pairs(values: Sequence[str]) -> dict[str, str]:
    """Returns ``NAME=VALUE`` arguments as a dictionary."""
    return dict(value.partition("=")[::2] for value in values)


def generated(run: Path, subset: str) -> Path:
    """Returns the file that a run generated for a test set. Raises ScoringError if it is missing."""
    path = run / f"generate-{subset}.txt"
    if not path.is_file():
        raise ScoringError(f"{path} is missing: generate with that run first")
    return path


def hypotheses_of(run: Path, subset: str, count: int | None = None) -> list[str]:
    """Returns the best hypothesis of each sentence. Raises ScoringError if any is missing, or for another count."""
    path = generated(run, subset)
    found = read_hypotheses(path)
    if count not in (None, len(found)):
        raise ScoringError(f"{path} has {len(found)} predictions, the references are {count}")
    return found


def read_outcomes(run: Path) -> dict[str, dict[str, list[bool]]]:
    """Reads the outcomes of a scored run, by test set and metric. Raises ScoringError if it has none."""
    path = run / OUTCOMES_FILE
    try:
        return {
            subset: {name: [digit == "1" for digit in digits] for name, digits in outcomes.items()}
            for subset, outcomes in json.loads(path.read_text(encoding="utf-8")).items()
        }
    except FileNotFoundError:
        raise ScoringError(f"{path} is missing: score that run first") from None
    except (ValueError, AttributeError) as error:
        raise ScoringError(f"{path} holds no outcomes ({error}); score that run again") from error


def group_lines(scores: dict, title: str = "accuracy of ", metrics: Sequence[str] = ("accuracy",)) -> list[str]:
    """Formats metrics of each group of each test set."""
    return [
        f"{title}{subset}, {name}: {' / '.join(f'{row[metric]:.2f}' for metric in metrics)} ({row[COUNT]})"
        for subset, rows in scores["groups"].items()
        for name, row in rows.items()
    ]


def bucket_lines(buckets: Mapping[str, Sequence[dict]], title: str, metric: str = "accuracy") -> list[str]:
    """Formats a metric by buckets such as sentence length; the title has a ``{}`` for the key of the buckets."""

    def cells(rows: Sequence[dict]) -> str:
        return "  ".join(f"{row['from']}-{row['to'] or ''}: {row[metric]:.2f} ({row[COUNT]})" for row in rows)

    return [f"{title.format(name)}  {cells(rows)}" for name, rows in buckets.items()]


def parameter_count(model: Mapping[str, torch.Tensor]) -> int:
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
    state = load_weights_only(path)
    history = state.get("optimizer_history") or [{}]
    extra = state.get("extra_state") or {}
    return {
        "sha256": file_sha256(path),
        "parameters": parameter_count(state["model"]),
        "updates": history[-1].get("num_updates"),
        "training_seconds": extra.get("previous_training_time"),
    }
