"""Results that anyone can repeat: a file says which recipes are run, with which seeds, and what they gave here.

`make results NAME=overnight_publications DATA=... OUT=...` runs ``python -m examples.lib.results overnight_publications
--data ... --out ...``. It trains every system of ``examples/results/overnight_publications.json`` with every seed by a
recipe, compares the systems, and writes the figures into the file and the pages; what is done is not done again.
``--pages`` only writes the tables of all files into the pages, between ``<!-- results NAME -->`` and ``<!-- end of
results -->``, and draws the pictures. ``examples/results/README.md`` explains the entries of the files.
"""

from __future__ import annotations

import argparse
import functools
import os
import platform
import re
import shlex
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from itertools import product
from pathlib import Path
from statistics import fmean

import numpy as np

from examples.lib.figure_files import COLOURS, as_written, new_figure, write_figure
from examples.lib.learning_curves import read_curves
from examples.lib.plots import Line, Plot, draw_plots
from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.measures import MeanMeasure
from tree_fairseq.scoring.outputs import read_text
from tree_fairseq.scoring.runs import OUTCOMES_FILE, SCORE_FILE, read_scores
from tree_fairseq.scoring.seeds import main as score_seeds
from tree_fairseq.scoring.seeds import mean_over_seeds_test
from tree_fairseq.scoring.significance import Resampling
from tree_fairseq.support.files import read_json, write_json
from tree_fairseq.support.logs import log_to_standard_error

EXAMPLES = Path(__file__).resolve().parents[1]
RESULTS = EXAMPLES / "results"
FILES = sorted(RESULTS.glob("*.json"))
PAGES = (*EXAMPLES.glob("*/README.md"), *EXAMPLES.parent.glob("docs/**/*.md"))
MARKED = re.compile(r"(<!-- results (\w+) -->\n).*?(<!-- end of results -->)", re.DOTALL)
SIGNIFICANT = 0.05
KINDS = ("trees", "text", "classes")
RULE = ["---"]
_RUN = re.compile(r"\{run:([^@}]+)@?(\d*)\}")


class Experiment:
    """The systems of a file: their commands, runs and comparisons."""

    def __init__(self, result: dict, data: str, out: Path, local: Sequence[str] = ()):
        self.result, self.seeds, self.data, self.out, self.local = result, result["seeds"], data, out, local

    def command(self, system: str, seed: int, *more: str) -> list[str]:
        """Returns the command that trains and scores a system with a seed, with more options."""
        own = self.result["systems"][system]
        given = f"{self.result.get('options', '')} {own.get('options', '')}"
        options = ["--out", str(self.out), *(["--data", self.data] if self.data else []), *self.local, *more]
        options += [] if "--seed" in given else ["--seed", str(seed)]
        flags = shlex.split(self._filled(own.get("flags", ""), seed))
        script = EXAMPLES / self.result["recipe"] / self.result.get("script", "run.sh")
        return [str(script), *options, *shlex.split(self._filled(given, seed)), *(["--", *flags] if flags else [])]

    def _filled(self, text: str, seed: int) -> str:
        text = text.replace("{data}", self.data).replace("{seed}", str(seed))
        return _RUN.sub(lambda found: self.places(found[1], int(found[2] or seed))["run"], text)

    @functools.cache  # noqa: B019  an experiment lives as long as the program
    def places(self, system: str, seed: int) -> dict[str, str]:
        """Returns the folders of a run, of its outputs and of the references, which the recipe's commands name."""
        command = self.command(system, seed, "--dry-run")
        words = shlex.split(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        values = dict(zip(words, words[1:]))  # those of the last command count, which scores
        run, text = str(Path(values["--save-dir"]).parent), values.get("--references") or values["--words"]
        return {"run": run, "outputs": values["--run"], "text": text}

    def run(self, system: str, seed: int) -> None:
        """Trains and scores a system, unless that is done; ``hours.json`` beside the outputs has the time it took."""
        for other, its_seed in _RUN.findall(str(self.result["systems"][system]).replace("{seed}", str(seed))):
            self.run(other, int(its_seed or seed))
        outputs, command = Path(self.places(system, seed)["outputs"]), self.command(system, seed)
        outputs.mkdir(parents=True, exist_ok=True)
        log, diary = outputs / "recipe.log", outputs / "hours.json"
        spent = read_json(diary) or {"hours": 0, "processor_hours": 0, "done": False}
        print(f"{system}, seed {seed}: {log}", flush=True)
        begin = time.monotonic()
        with log.open("a", encoding="utf-8") as stream:
            process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT)
            _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if not spent["done"]:
            spent["hours"] += (time.monotonic() - begin) / 3600
            spent["processor_hours"] += (used.ru_utime + used.ru_stime) / 3600
            write_json(diary, {**spent, "done": process.returncode == 0})
        if process.returncode:
            raise ScoringError(f"this command failed, see {log}: {shlex.join(command)}")

    def run_all(self, jobs: int) -> None:
        """Runs all systems with all seeds, several at a time; those that read the models of others come last."""
        systems = self.result["systems"]
        later = [name for name, own in systems.items() if "models_of" in own or "{run:" in str(own)]
        for names in ([name for name in systems if name not in later], later):
            with ThreadPoolExecutor(jobs) as pool:
                list(pool.map(lambda each: self.run(*each), product(names, self.seeds)))

    def facts(self, system: str) -> dict:
        """Returns what the runs of a system gave, a value for each seed."""
        found: dict = {}
        for seed in self.seeds:
            folder = Path(self.places(system, seed)["outputs"])
            scores, spent = read_scores(folder / SCORE_FILE), read_json(folder / "hours.json")
            facts = {name: scores["metrics"][name] for name in self.result["metrics"]}
            facts |= {name: round(spent[name], 3) for name in ("hours", "processor_hours")}
            facts |= {name: scores.get("checkpoint", {}).get(name) for name in ("updates", "parameters")}
            for name in [name for name in ("parts", "depths") if self.result.get(name, {}).get("section") in scores]:
                facts[name] = _parts(self.result[name], scores)
            log = Path(self.places(system, seed)["run"]) / "train.log"
            if "curve" in self.result and "models_of" not in self.result["systems"][system] and log.is_file():
                curves = read_curves(log).validation
                facts["curve"] = sorted(map(list, curves[self.result["curve"]["metric"]].items()))
            for name, fact in facts.items():
                found.setdefault(name, []).append(fact)
        metrics = {metric: found.pop(metric) for metric in self.result["metrics"]}
        return {"metrics": metrics, **found, "parameters": found["parameters"][0]}

    def compare(self, system: str, baseline: str) -> dict:
        """Compares all seeds of two systems, by their outputs or the outcomes of their runs; returns rows by metric."""
        folders = [[Path(self.places(name, seed)["outputs"]) for seed in self.seeds] for name in (system, baseline)]
        compare = self._compare_outcomes if "outcomes" in self.result else self._compare_outputs
        found = compare(*folders, self.places(system, self.seeds[0])["text"])
        kept = ("difference", "interval", "p_value", "signature")
        return {name: {key: found[name][key] for key in kept if key in found[name]} for name in self.result["compared"]}

    def _compare_outputs(self, system: Sequence[Path], baseline: Sequence[Path], text: str) -> dict:
        written, found = self.out / "comparison.json", {}
        figures = {name: ("test", *name.split(":"))[-2:] for name in self.result["compared"]}  # test set and metric
        for test_set in sorted({own_set for own_set, _ in figures.values()}):
            ours, theirs = (
                [str(folder / f"generate-{test_set}.txt") for folder in folders] for folders in (system, baseline)
            )
            arguments = shlex.split(self.result["score"].format(text=text, set=test_set))
            score_seeds([*ours, "--baseline", *theirs, *arguments, "--output", str(written)])
            metrics = read_json(written)["metrics"]
            found |= {name: metrics[metric] for name, (own_set, metric) in figures.items() if own_set == test_set}
        return found

    def _compare_outcomes(self, system: Sequence[Path], baseline: Sequence[Path], text: str) -> dict:
        found = {}
        for name, (test_set, metric) in self.result["outcomes"].items():
            ours, theirs = ([_right(run, test_set, metric) for run in folders] for folders in (system, baseline))
            groups = self.result.get("groups", "").format(text=text)
            groups = tuple(read_text(Path(groups), len(ours[0].counts))) if groups else ()
            found[name] = mean_over_seeds_test(theirs, ours, Resampling(samples=10_000, groups=groups))[metric]
        return found

    def measure(self, jobs: int) -> dict:
        """Runs and compares all systems; returns the entry ``measured``."""
        self.run_all(jobs)
        name = subprocess.getoutput("sed -n 's/^model name.*: //p' /proc/cpuinfo 2> /dev/null").partition("\n")[0]
        machine = f"{os.cpu_count()} cores of {name or platform.machine()}, Python {platform.python_version()}"
        systems = {name: self.facts(name) for name in self.result["systems"]}
        pairs = self.result["comparisons"]
        comparisons = [{"system": one, "baseline": two, "metrics": self.compare(one, two)} for one, two in pairs]
        return {"date": date.today().isoformat(), "machine": machine, "systems": systems, "comparisons": comparisons}


def _right(run: Path, test_set: str, metric: str) -> MeanMeasure:
    return MeanMeasure({metric: [int(digit) for digit in read_json(run / OUTCOMES_FILE)[test_set][metric]]})


def _parts(entry: dict, scores: dict) -> dict[str, float]:
    """Returns a metric by parts of the test set, such as ``10-20 (131)`` for 131 examples of 10 to 20 words."""
    found = {}
    for bucket in scores[entry["section"]][entry["set"]]:
        ends = f"{bucket['from']}+" if bucket["to"] is None else f"{bucket['from']}-{bucket['to']}"
        found[f"{ends} ({bucket['sentences']})"] = bucket[entry["metric"]]
    return found


def read_result(name: str) -> dict:
    """Reads a file of results. Raises ScoringError if there is none of that name."""
    found = read_json(RESULTS / f"{name}.json")
    if found is None:
        raise ScoringError(f"there is no {name}.json; files: {', '.join(sorted(path.stem for path in FILES))}")
    return found


def results_of_kind(kind: str) -> list[dict]:
    """Reads the measured files of a kind, by title."""
    found = [each for path in FILES if (each := read_json(path))["kind"] == kind and "measured" in each]
    return sorted(found, key=lambda each: each["title"])


def table(result: dict) -> str:
    """Formats a file of results in Markdown: systems, comparisons, and where they were measured, if they were."""
    if "measured" not in result:
        return "Not measured yet.\n"
    measured = result["measured"]
    is_processor = all("processor_hours" in system for system in measured["systems"].values())
    spent = "processor_hours" if is_processor else "hours"
    rows = [["", *result["metrics"].values(), f"{spent.replace('_', ' ')} a run"], RULE]
    for name, system in measured["systems"].items():
        values = [system["metrics"][metric] for metric in result["metrics"]]
        figures = [f"{fmean(each):.3g} ({', '.join(f'{value:.3g}' for value in each)})" for each in values]
        rows.append([name, *figures, f"{_mean_hours(result, name, spent):.2f}"])
    if measured["comparisons"]:
        rows += [[], ["difference (95 % interval)", *result["compared"].values()], RULE]
    for pair in measured["comparisons"]:
        cells = [_difference(result, pair, metric) for metric in result["compared"]]
        rows.append([f"{pair['system']} over {pair['baseline']}", *cells])
    end = f"Seeds {', '.join(map(str, result['seeds']))}; {measured['date']}; {measured['machine']}."
    drawn = " The test draws whole groups of examples." if "groups" in result else ""
    return f"{_rows(rows)}\n{end}{drawn}{' ' * ('note' in measured)}{measured.get('note', '')}\n"


def _rows(rows: Sequence[list[str]]) -> str:
    lines = [["---"] * len(before) if row is RULE else row for before, row in zip([[], *rows], rows)]
    return "".join(f"| {' | '.join(line)} |\n" if line else "\n" for line in lines)


def summary(results: Iterable[dict]) -> str:
    """Formats the headlines of files: who is compared, the difference of the means over the seeds, and the cost."""
    rows = [["task", "comparison", "difference (95 % interval)", "does it help?", "time of training"], RULE]
    for result in results:
        task = f"[{result['title']}](results/{result['recipe']}.md)"
        for pair, metric, row in headlines(result):
            ours, theirs = pair["system"], pair["baseline"]
            reason = "".join(f", {text}" for *names, text in result.get("reasons", ()) if names == [ours, theirs])
            hours = [_mean_hours(result, name, "processor_hours") for name in (ours, theirs)]
            cost = f"{hours[0] / hours[1]:.1f} times" if all(hours) else "not measured"
            compared = f"{ours} over {theirs}, {result['compared'][metric]}"
            rows.append([task, compared, _difference(result, pair, metric), verdict(row) + reason, cost])
            task = ""
    return _rows(rows)


def headlines(result: dict) -> list[tuple[dict, str, dict]]:
    """Returns the measured comparisons that the summary shows, each with its first metric and the figures of that."""
    found = {(pair["system"], pair["baseline"]): pair for pair in result["measured"]["comparisons"]}
    metric = next(iter(result["compared"]))
    wanted = map(tuple, result.get("headlines", result["comparisons"]))
    return [(found[pair], metric, found[pair]["metrics"][metric]) for pair in wanted if pair in found]


def verdict(row: dict) -> str:
    """Says whether a difference is significant, and which way it goes."""
    return "level" if row["p_value"] >= SIGNIFICANT else "yes" if row["difference"] > 0 else "no, it costs"


def seeds_that_disagree(result: dict, pair: dict, metric: str) -> list[float]:
    """Returns the difference with each seed if it is significant and has another sign with some; else nothing."""
    shown = {heading: name for name, heading in result["metrics"].items()}.get(result["compared"][metric])
    row = pair["metrics"][metric]
    if shown is None or verdict(row) == "level":  # the table may not have the figure
        return []
    ours, theirs = (result["measured"]["systems"][pair[side]]["metrics"][shown] for side in ("system", "baseline"))
    each = [one - other for one, other in zip(ours, theirs)]
    return each if any(value * row["difference"] < 0 for value in each) else []


def _difference(result: dict, pair: dict, metric: str) -> str:
    row = pair["metrics"][metric]
    low, high = map(_signed, row["interval"])
    p_value = f"= {row['p_value']:.3f}" if row["p_value"] >= 0.001 else "< 0.001"
    mark = "" if verdict(row) == "level" else "**"
    each = seeds_that_disagree(result, pair, metric)
    signs = f"; by seed {', '.join(map(_signed, each))}" if each else ""
    return f"{mark}{_signed(row['difference'])}{mark} ({low} to {high}, p {p_value}){signs}"


def _signed(value: float) -> str:
    return "0.0" if round(value, 1) == 0 else f"{value:+.1f}"


def _mean_hours(result: dict, name: str, spent: str) -> float | None:
    """The mean hours of a system's runs and of those whose models it reads; None if not all were measured."""
    others = result["systems"][name].get("models_of", ())
    found = [result["measured"]["systems"][each].get(spent) for each in (name, *others)]
    return sum(map(fmean, found)) if all(found) else None


def plots(result: dict) -> list[Plot]:
    """Returns the plots that a file asks for, of the means over the seeds."""
    systems, title = result["measured"]["systems"], next(iter(result["metrics"].values()))
    found: dict[tuple[str, str], list[Line]] = defaultdict(list)  # by the names of the axes
    for name, own in systems.items():
        if "curve" in own:
            first, last = max(curve[0][0] for curve in own["curve"]), min(curve[-1][0] for curve in own["curve"])
            updates = [update for update, _ in own["curve"][0] if first <= update <= last]  # of other seeds, others
            points = list(zip(updates, np.mean([np.interp(updates, *zip(*curve)) for curve in own["curve"]], axis=0)))
            found["updates", result["curve"]["title"]].append(Line(name, points))
        for entry in [entry for entry in ("parts", "depths") if entry in own]:
            means = {part: fmean(run[part] for run in own[entry]) for part in own[entry][0]}
            points = [(int(re.match(r"\d+", part)[0]), mean) for part, mean in means.items()]
            found[result[entry]["title"].partition(" (")[0] + ", from", title].append(Line(name, points))
    return [Plot("", across, up, lines, logarithmic=False) for (across, up), lines in found.items()]


def draw_differences(results: Iterable[dict]):
    """Draws the headlines as points with their 95 % intervals, one line each, grey if they are not significant."""
    lines: list[tuple[str, dict | None]] = []
    for result in results:
        lines += [(result["title"], None)] if headlines(result) else []
        lines += [(f"{pair['system']} over {pair['baseline']}", row) for pair, _, row in headlines(result)]
    figure = new_figure(9.0, 1.0 + 0.16 * len(lines))
    axes = figure.add_subplot()
    axes.set_yticks(range(len(lines)), [name for name, _ in lines], fontsize=7.5)
    for place, (_, row) in enumerate(lines):
        if row is None:
            axes.get_yticklabels()[place].set_fontweight("bold")
            continue
        colour = COLOURS[0] if row["p_value"] < SIGNIFICANT else COLOURS[-1]
        axes.plot(row["interval"], [place, place], color=colour)
        axes.plot([row["difference"]], [place], "o", color=colour, markersize=4)
    axes.axvline(0, color="#52606d", linewidth=1)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xscale("symlog", linthresh=2)  # some differences are below 1, others above 50
    axes.xaxis.set_major_formatter("{x:+g}")
    axes.grid(axis="x", color="#e4e7eb")
    axes.set_axisbelow(True)
    title = axes.set_xlabel("difference of the means, 95 % interval\n(logarithmic beyond ±2)")
    as_written([title, *axes.get_yticklabels()])
    return figure


def write_pages(pages: Iterable[Path] = PAGES, pictures: Path = EXAMPLES.parent / "docs/images/results") -> None:
    """Writes the tables into the pages, and the pictures; prints the pages that change."""
    for page in pages:
        text = page.read_text(encoding="utf-8")
        new = MARKED.sub(lambda found: f"{found[1]}{shown(found[2])}{found[3]}", text)
        if new != text:
            print(page)
            page.write_text(new, encoding="utf-8")
    for kind, measured in {kind: results_of_kind(kind) for kind in KINDS}.items():
        if measured:
            write_figure(draw_differences(measured), pictures / f"differences_{kind}.svg", f"Differences, {kind}")
    for path in FILES:
        result = read_json(path)
        if "measured" in result and plots(result):
            write_figure(draw_plots(plots(result)), pictures / f"{path.stem}.svg", result["title"])


def shown(name: str) -> str:
    """Returns the table of a mark: of a file, with its command, or the headlines of all files of a kind."""
    if name.startswith("headlines_"):
        return summary(results_of_kind(name[10:]))
    result = read_result(name)
    return f"{table(result)[:-1]} `make results NAME={name}{' DATA=DIR' if 'data' in result else ''}`\n"


def main(arguments: list[str] | None = None) -> int:
    """Command line of this script; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", default="", help="a file of examples/results, without .json")
    parser.add_argument("--data", default="", help="the files of the data set")
    parser.add_argument("--out", type=Path, default=Path("out/results"), help="where runs are (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time (default: %(default)s)")
    parser.add_argument("--local", default="", help="more options of the recipe: --local='--parser-dir DIR'")
    parser.add_argument("--note", help="written under the table, such as: which models the parser had")
    parser.add_argument("--pages", action="store_true", help="only write the tables into the pages, and the pictures")
    parser.add_argument("--dry-run", action="store_true", help="only print the commands")
    args = parser.parse_args(arguments)
    log_to_standard_error()
    if args.pages:
        write_pages()
        return 0
    try:
        result = read_result(args.name)
        if not args.data and "data" in result:
            raise ScoringError(f"--data is needed: {result['data']}")
        out, data = (args.out / args.name).resolve(), os.path.abspath(args.data) if args.data else ""
        experiment = Experiment(result, data, out, shlex.split(args.local))
        if args.dry_run:
            print(
                "\n".join(shlex.join(experiment.command(*each)) for each in product(result["systems"], result["seeds"]))
            )
            return 0
        result["measured"] = {**experiment.measure(args.jobs), **({"note": args.note} if args.note else {})}
    except ScoringError as error:
        parser.exit(1, f"results: {error}\n")
    write_json(RESULTS / f"{args.name}.json", result)
    write_pages()
    print(table(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
