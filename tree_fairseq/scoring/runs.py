"""Scores the runs of recipes: folders with ``generate-{subset}.txt``, the output of ``fairseq-generate``.

A subclass of :class:`RunSet` says how such a file is read, and is a command: ``tree-fairseq score NAME --run DIR``. It
writes ``score.json`` into the run and, where outputs are right or wrong, ``outcomes.json``. ``--result`` collects all
runs below a folder in one ``result.json``.
"""

from __future__ import annotations

import hashlib
import sys
from abc import abstractmethod
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from tree_fairseq.errors import CorruptFileError, ScoringError
from tree_fairseq.repairs.checkpoint_loading import load_weights_only
from tree_fairseq.scoring.frame import COUNT, TestSet, score, tables
from tree_fairseq.scoring.outputs import read_text
from tree_fairseq.scoring.significance import Resampling
from tree_fairseq.support.files import file_sha256, read_json, write_json
from tree_fairseq.support.logs import log_to_standard_error
from tree_fairseq.support.options import command, given_arguments, refuse_unread

SCORE_FILE, OUTCOMES_FILE = "score.json", "outcomes.json"


class RunSet(TestSet):
    """One test set of runs; the docstring of a subclass is the description of its command."""

    name: ClassVar[str]  # the name of the command, ``tree-fairseq score NAME``
    primary: ClassVar[str]  # the default metric under ``score`` in ``result.json``
    test: Resampling = Resampling()  # the paired test
    outcomes: ClassVar[str | None] = None  # the measure whose outcomes are stored, example by example

    def __init__(self, args: Namespace, subset: str):
        self.args, self.subset = args, subset

    @staticmethod
    @abstractmethod
    def add_arguments(parser: ArgumentParser) -> None:
        """Adds the command's own options."""

    def reference_files(self, *names: str) -> list[Path]:
        """Returns the files with these names in ``--references``, or ``--references`` itself if it is a file."""
        path, sets = self.args.references, self.args.sets
        if path.is_file() and len(sets) > 1:
            raise ScoringError(f"--references {path} is one file for {len(sets)} sets: give the folder")
        return [path] if path.is_file() else [path / name for name in names]

    def groups(self) -> Sequence[Iterable[str]] | None:
        """Reads ``{subset}.groups`` beside the references, where a scorer has ``--references``."""
        folder = getattr(self.args, "references", None)
        path = folder / f"{self.subset}.groups" if folder is not None else None
        return [line.split() for line in read_text(path, self.count)] if path and path.is_file() else None

    def notes(self, result: Mapping[str, Any]) -> list[str]:
        """Returns lines to print below the table of a result."""
        return []

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
        cls.add_arguments(parser)
        args = parser.parse_args(arguments)
        unread = {} if args.against else {"samples": "it goes with --against"}
        if getattr(args, "source_trees", args) is None:
            unread["depth_bounds"] = "it goes with --source-trees"
        refuse_unread(given_arguments(parser, arguments), unread)
        log_to_standard_error()
        return command(lambda _: score_run(cls, args))(arguments)


def add_references(parser: ArgumentParser) -> None:
    """Adds ``--references``."""
    references = "folder of the corpus's own lines, or the file of one set"
    parser.add_argument("--references", type=Path, required=True, help=references)


def score_run(kind: type[RunSet], args: Namespace) -> None:
    """Scores all test sets of a run, prints tables, and writes the files of the result."""
    description = {"run": args.run.name, **_pairs(args.describe)}
    content: dict[str, Any] = {"primary": args.primary, "description": description}
    content |= {"metrics": {}, "signatures": {}, "differences": []}
    outcomes, lines = {}, []
    for subset, label in _pairs(args.sets).items():
        test_set = kind(args, subset)
        ours = test_set.measures(args.run)
        baselines = {run.name: test_set.measures(run) for run in args.against}
        result = score(test_set, ours, baselines, test_set.test)
        right = getattr(ours.get(test_set.outcomes), "outcomes", {})
        outcomes[subset] = {name: "".join("01"[value] for value in values) for name, values in right.items()}
        # The label ends names of metrics, and so does a group; all other entries are kept by subset.
        end = f"_{label}" if label else ""
        content["metrics"] |= {name + end: value for name, value in result["metrics"].items()}
        content["signatures"] |= {name + end: text for name, text in result["signatures"].items()}
        content["differences"] += [{**row, "metric": row["metric"] + end} for row in result["differences"]]
        for section, value in result.items():
            if section not in ("metrics", "signatures", "differences", "baselines"):
                content.setdefault(section, {})[subset] = value
        for group, figures in result.get("groups", {}).items():
            content["metrics"] |= {f"{name}_{group}{end}": x for name, x in figures.items() if name != COUNT}
        lines += [f"{subset}:", *tables(result, args.run.name), *test_set.notes(result), ""]
    if args.checkpoint is not None:
        content["checkpoint"] = checkpoint_facts(args.checkpoint)
    if kind.outcomes is not None:
        write_json(args.run / OUTCOMES_FILE, outcomes)
    write_json(args.run / SCORE_FILE, content)
    sys.stdout.write("\n".join(lines))
    if args.result is not None:
        summary = build_result(content, args.result.parent)
        args.result.parent.mkdir(parents=True, exist_ok=True)
        write_json(args.result, summary)
        sys.stdout.write(f"{summary['metric']} = {summary['score']:.2f} -> {args.result}\n")


def _pairs(values: Sequence[str]) -> dict[str, str]:
    return dict(value.partition("=")[::2] for value in values)


def generated(run: Path, subset: str) -> Path:
    """Returns the file that a run generated for a test set. Raises ScoringError if it is missing."""
    path = run / f"generate-{subset}.txt"
    if not path.is_file():
        raise ScoringError(f"{path} is missing: generate with that run first")
    return path


def read_scores(path: Path) -> dict:
    """Reads ``score.json``. Raises ScoringError if it is missing or not JSON."""
    try:
        scores = read_json(path)
    except CorruptFileError as error:
        raise ScoringError(f"{error}; delete it and score that run again") from error
    if scores is None:
        raise ScoringError(f"{path} is missing: score that run first")
    return scores


def build_result(current: dict, folder: Path) -> dict:
    """Returns the content of ``result.json``: metrics, the primary one as ``score``, and all ``runs`` of the folder.

    Raises ScoringError if the primary metric is missing or a ``score.json`` is not JSON.
    """
    metrics, metric = current["metrics"], current["primary"]
    if metric not in metrics:
        raise ScoringError(f"the primary metric {metric} was not measured; there are {', '.join(metrics)}")
    details = {name: value for name, value in current.items() if name not in ("metrics", "primary")}
    runs = [read_scores(path) for path in sorted(folder.rglob(SCORE_FILE))]
    summary = [{**run["description"], "metrics": run["metrics"], "differences": run["differences"]} for run in runs]
    return {"metric": metric, "score": metrics[metric], **metrics, **details, "runs": summary}


def parameter_count(model: Mapping[str, torch.Tensor]) -> int:
    """Counts the parameters of a saved model, tied matrices once.

    Tied matrices are saved under several names, from a GPU as separate copies; equal content identifies them.
    """
    counts = {}
    for name, tensor in model.items():
        if name.rsplit(".", 1)[-1] in ("version", "_float_tensor"):
            continue  # fairseq's modules save these markers; they are no parameters
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
