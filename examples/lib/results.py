"""Results that anyone can repeat: a file says which commands are run, with which seeds, and what they gave here.

    python examples/lib/results.py overnight_publications --data DATA/overnight --out out/results
    python examples/lib/results.py --pages

The first command, which `make results NAME=overnight_publications DATA=... OUT=...` runs, trains every system of
``examples/results/overnight_publications.json`` with every seed by its recipe, compares the systems by
``tree-fairseq score seeds``, and writes the figures into the file and into the pages that show it. What was trained
before is not trained again. The second writes the tables of all files into the pages, between
``<!-- results NAME -->`` and ``<!-- end of results -->`` (see :mod:`result_tables`).

A file has these entries, and ``measured``, which this program writes:

* ``title``; ``data``, which files ``--data`` takes, where the recipe does not make them
* ``recipe``, a folder of ``examples``; ``options`` of its ``run.sh``; ``seeds``, each given as ``--seed``
* ``systems``: by name, their own ``options``, where ``{data}`` stands for ``--data``, and ``flags`` of
  ``fairseq-train``; with ``{seed}`` in either, the recipe's ``--seed`` is left out; ``models_of``, the other systems
  whose models a system reads, if it does: their hours are added to its own; ``starts_from``, a system before it whose
  last checkpoint, of the same seed, its training starts from
* ``metrics``: by name in ``score.json``, the heading in the table
* ``comparisons``: pairs of systems, the second of which is the baseline
* ``score``: arguments of ``tree-fairseq score seeds``, where ``{out}`` stands for ``--out``, ``{work}`` for the folder
  in it that has the folder ``runs``, and ``{set}`` for the test set; or ``outcomes``, the test set and the metric in
  ``outcomes.json`` of each figure, where a baseline writes symbols and not trees
* ``groups``, where the test draws whole groups of test examples: a file beside ``outcomes``, with the group of each, in
  ``{work}``
* ``compared``: the figures that are reported, with their headings; ``test1:bleu`` is BLEU on another test set than
  ``test``
* ``parts``, where the test set is shown in parts, too: ``section``, ``set`` and ``metric`` in ``score.json``, such as
  ``by_length``, ``test`` and ``sacrebleu``; ``title`` of the horizontal axis; ``depths``, a second panel like it
* ``curve``, where learning curves are shown: ``metric`` of the validation lines in ``train.log``; ``title`` of its axis
* ``against``, where one metric is drawn over another: the names of both, such as ``steps`` and ``accuracy``
* ``sweep``, where systems differ in a number, such as that of the pairs that they are trained on: ``title`` of its
  axis, and ``lines``, by name the system of each number; the only picture of its file, for its colours are of lines
* ``headlines``: those of the comparisons that the summary of all files shows; all where not given
* ``reasons``: what a difference comes from where it is not the tree, for the summary: system, baseline and text
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import zip_longest
from pathlib import Path

from result_tables import EXAMPLES, RESULTS, read_result, table, write_pages

from tree_fairseq.drawing.learning_curves import read_curves
from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.measures import MeanMeasure
from tree_fairseq.scoring.outputs import read_text
from tree_fairseq.scoring.runs import OUTCOMES_FILE, SCORE_FILE, read_scores
from tree_fairseq.scoring.seeds import main as score_seeds
from tree_fairseq.scoring.seeds import mean_over_seeds_test
from tree_fairseq.scoring.significance import Resampling
from tree_fairseq.support.error_reports import drop_output
from tree_fairseq.support.files import write_json
from tree_fairseq.support.logs import log_to_standard_error

PARTS = ("parts", "depths")
"""Entries that show the test set in parts."""


@dataclass(frozen=True)
class Trainings:
    """The trainings of a file: its entries, the data, where runs are, and options that only this machine needs."""

    result: dict
    data: Path | None
    out: Path
    local: Sequence[str] = ()

    def command(self, system: str, seed: int, start: Path | None = None) -> list[str]:
        """Returns the command of a recipe that trains and scores a system with a seed.

        ``start`` is the checkpoint that training starts from.
        """
        read = ["--data", str(self.data)] if self.data else []
        options, flags = self._options(system, seed, str(self.data or "DATA"), start)
        script = EXAMPLES / self.result["recipe"] / "run.sh"
        return [str(script), *read, "--out", str(self.out), *options, *self.local, *flags]

    def _options(self, system: str, seed: int, data: str, start: Path | None) -> tuple[list[str], list[str]]:
        """Returns the options of a recipe, and the flags of fairseq-train after them."""
        own = self.result["systems"][system]
        given = f"{self.result.get('options', '')} {own.get('options', '')}"
        options = [option.replace("{data}", data).replace("{seed}", str(seed)) for option in shlex.split(given)]
        flags = own.get("flags", "")
        if "{seed}" not in given + flags:
            options += ["--seed", str(seed)]
        flags = shlex.split(flags.replace("{seed}", str(seed)))
        if "starts_from" in own:
            flags += ["--finetune-from-model", str(start or f"CHECKPOINT of {own['starts_from']}")]
        return options, ["--", *flags] if flags else []

    def train(self, system: str, seed: int, start: Path | None = None) -> dict:
        """Runs the command of a recipe; returns the metrics, the size and the hours of its run, and its folder.

        Hours are those of the first call that finished, and of calls before it that failed. Hours of processors do not
        depend on what else the machine has to do.
        """
        spent = self._run(system, seed, start)
        folder = _folder_of_run(self.out)
        scores = read_scores(folder / SCORE_FILE)
        facts = {fact: scores["checkpoint"][fact] for fact in ("updates", "parameters") if fact in scores["checkpoint"]}
        for name in PARTS:
            if name in self.result and self.result[name]["section"] in scores:
                facts[name] = _parts(self.result[name], scores)
        log = folder / "train.log"
        if "curve" in self.result and log.is_file():  # a system may read the models of others, and train none
            facts["curve"] = learning_curve(log, self.result["curve"]["metric"])
        return {"folder": folder, **spent, **facts, "metrics": scores["metrics"]}

    def _run(self, system: str, seed: int, start: Path | None) -> dict[str, float]:
        """Runs the command; returns the hours, which the diary keeps under what is the same on every machine."""
        diary = self.out / "hours.json"
        options, flags = self._options(system, seed, "DATA", None)
        key = shlex.join([*options, *flags])
        entry = _hours(diary).get(key, {"hours": 0.0, "processor_hours": 0.0, "finished": False})
        command = self.command(system, seed, start)
        begin, processor_begin = time.monotonic(), _processor_seconds()
        status = subprocess.run(command).returncode
        if not entry["finished"]:
            entry["hours"] += (time.monotonic() - begin) / 3600
            entry["processor_hours"] += (_processor_seconds() - processor_begin) / 3600
            entry["finished"] = status == 0
            self.out.mkdir(parents=True, exist_ok=True)
            # Another call may have written while this one was training.
            write_json(diary, {**_hours(diary), key: entry})
        if status != 0:
            raise ScoringError(f"this command failed: {shlex.join(command)}")
        return {name: round(entry[name], 3) for name in ("hours", "processor_hours") if name in entry}


def _hours(diary: Path) -> dict:
    """Returns the hours of all runs that a diary has."""
    return json.loads(diary.read_text(encoding="utf-8")) if diary.is_file() else {}


def _folder_of_run(out: Path) -> Path:
    """Returns the folder of the run that ``result.json`` is about. Runs on other data may have the same name."""
    top = json.loads((out / "result.json").read_text(encoding="utf-8"))
    named = {path.parent for path in out.rglob(f"runs/{top['description']['run']}/{SCORE_FILE}")}
    [folder] = {run for run in named if read_scores(run / SCORE_FILE).get("checkpoint") == top.get("checkpoint")}
    return folder


def learning_curve(log: Path, metric: str) -> list[list[float]]:
    """Returns a metric on the validation set by number of updates, as a log of fairseq-train has it.

    Raises ScoringError if the log does not have it.
    """
    found = read_curves(log).validation
    if metric not in found:
        raise ScoringError(f"{log}: no validation line has {metric!r}; there are {', '.join(sorted(found))}")
    return [[updates, value] for updates, value in sorted(found[metric].items())]


def _processor_seconds() -> float:
    """Returns the seconds that ended children of this process, and theirs, have spent on processors."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _parts(parts: dict, scores: dict) -> dict[str, float]:
    """Returns a metric by parts of the test set, such as ``10-20 (131)`` for 131 examples of 10 to 20 words."""
    found = {}
    for bucket in scores[parts["section"]][parts["set"]]:
        ends = f"{bucket['from']}+" if bucket["to"] is None else f"{bucket['from']}-{bucket['to']}"
        found[f"{ends} ({bucket['sentences']})"] = bucket[parts["metric"]]
    return found


def compare(result: dict, system: Sequence[Path], baseline: Sequence[Path], out: Path) -> dict:
    """Compares all seeds of two systems, by their outputs or by the outcomes of their runs; returns rows by metric."""
    rows = _compare_outcomes if "outcomes" in result else _compare_outputs
    kept = ("difference", "interval", "p_value", "signature")
    found = rows(result, system, baseline, out)
    return {name: {key: found[name][key] for key in kept if key in found[name]} for name in result["compared"]}


def _compare_outputs(result: dict, system: Sequence[Path], baseline: Sequence[Path], out: Path) -> dict:
    written, found = out / "comparison.json", {}
    figures = {name: ("test", *name.split(":"))[-2:] for name in result["compared"]}  # test set and metric
    for test_set in sorted({own_set for own_set, _ in figures.values()}):
        places = {"out": out, "work": system[0].parents[1], "set": test_set}
        arguments = [text.format(**places) for text in shlex.split(result["score"])]
        for flag, folders in {"--hypotheses": system, "--baseline": baseline}.items():
            arguments += [flag, *(str(folder / f"generate-{test_set}.txt") for folder in folders)]
        if score_seeds([*arguments, "--json", str(written)]) != 0:
            raise ScoringError("the comparison failed; see above")
        metrics = json.loads(written.read_text(encoding="utf-8"))["metrics"]
        found |= {name: metrics[metric] for name, (own_set, metric) in figures.items() if own_set == test_set}
    return found


def _compare_outcomes(result: dict, system: Sequence[Path], baseline: Sequence[Path], out: Path) -> dict:
    """By ``outcomes.json``, which says of each test example whether a run has it right."""
    found = {}
    for name, (test_set, metric) in result["outcomes"].items():

        def right(folder: Path, test_set: str = test_set, metric: str = metric) -> MeanMeasure:
            outcomes = json.loads((folder / OUTCOMES_FILE).read_text(encoding="utf-8"))
            return MeanMeasure({metric: [int(digit) for digit in outcomes[test_set][metric]]})

        ours, theirs = list(map(right, system)), list(map(right, baseline))
        groups = ()
        if "groups" in result:
            path = Path(result["groups"].format(work=system[0].parents[1]))
            groups = tuple(read_text(path, len(ours[0].counts)))
        found[name] = mean_over_seeds_test(theirs, ours, Resampling(samples=10_000, groups=groups))[metric]
    return found


def measure(trainings: Trainings) -> dict:
    """Trains and compares all systems; returns the entry ``measured``."""
    result, out, runs = trainings.result, trainings.out, {}
    for name, own in result["systems"].items():
        starts = [row["folder"] / "checkpoints/checkpoint_last.pt" for row in runs.get(own.get("starts_from"), ())]
        runs[name] = [trainings.train(name, seed, start) for seed, start in zip_longest(result["seeds"], starts)]
    systems = {}
    for system, rows in runs.items():
        systems[system] = {
            "metrics": {metric: [row["metrics"][metric] for row in rows] for metric in result["metrics"]},
            "updates": [row.get("updates") for row in rows],
            "parameters": rows[0].get("parameters"),
            "hours": [row["hours"] for row in rows],
        }
        for name in ("processor_hours", *PARTS, "curve"):
            if all(name in row for row in rows):
                systems[system][name] = [row[name] for row in rows]
    folders = {name: [row["folder"] for row in rows] for name, rows in runs.items()}
    comparisons = [
        {"system": ours, "baseline": theirs, "metrics": compare(result, folders[ours], folders[theirs], out)}
        for ours, theirs in result["comparisons"]
    ]
    machine = f"{os.cpu_count()} cores of {processor()}, Python {platform.python_version()}"
    return {"date": date.today().isoformat(), "machine": machine, "systems": systems, "comparisons": comparisons}


def print_commands(trainings: Trainings) -> None:
    """Prints the command of every training, as far as somebody reads them."""
    try:
        for system in trainings.result["systems"]:
            for seed in trainings.result["seeds"]:
                print(shlex.join(trainings.command(system, seed)))
    except BrokenPipeError:
        drop_output()


def processor() -> str:
    """Returns the name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.is_file() else None
    return named.group(1) if named else platform.machine()


def main(arguments: list[str] | None = None) -> int:
    """Command line of this script; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", help="a file of examples/results, without .json")
    parser.add_argument("--data", type=Path, help="the files of the data set")
    parser.add_argument("--out", type=Path, default=Path("out/results"), help="where runs are (default: %(default)s)")
    parser.add_argument("--local", default="", help="options of the recipe about this machine: '--parser-dir DIR'")
    parser.add_argument("--note", help="written under the table, such as: which models the parser had")
    parser.add_argument("--pages", action="store_true", help="only write the tables into the pages")
    parser.add_argument("--dry-run", action="store_true", help="only print the commands")
    args = parser.parse_args(arguments)
    log_to_standard_error()
    if args.pages:
        print("\n".join(map(str, write_pages())))
        return 0
    try:
        if args.name is None:
            raise ScoringError(f"name one of {', '.join(sorted(path.stem for path in RESULTS.glob('*.json')))}")
        result = read_result(args.name)
        if args.data is None and "data" in result:
            raise ScoringError(f"--data is needed: {result['data']}")
        data = args.data.resolve() if "data" in result else None
        trainings = Trainings(result, data, (args.out / args.name).resolve(), shlex.split(args.local))
        if args.dry_run:
            print_commands(trainings)
            return 0
        result["measured"] = measure(trainings)
        if args.note:
            result["measured"]["note"] = args.note
    except ScoringError as error:
        sys.stderr.write(f"results: {error}\n")
        return 1
    write_json(RESULTS / f"{args.name}.json", result)
    write_pages()
    sys.stdout.write(table(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
