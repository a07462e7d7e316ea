"""Tables of the files of ``examples/results``, and the pages that show them and their pictures.

A page has a file's table between ``<!-- results NAME -->`` and ``<!-- end of results -->``. Between ``<!-- results
headlines_KIND -->`` and the end stands one row for each of the comparisons that the files call their ``headlines``, for
the recipes of a kind (see ``KINDS``). Each kind has a picture of its comparisons.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from result_pictures import SIGNIFICANT, draw_differences, draw_result, is_drawn

from tree_fairseq.drawing.figure_files import write_figure
from tree_fairseq.errors import ScoringError

EXAMPLES = Path(__file__).resolve().parents[1]
RESULTS = EXAMPLES / "results"
DOCUMENTS = EXAMPLES.parent / "docs"
PAGES = (*EXAMPLES.glob("*/README.md"), *DOCUMENTS.rglob("*.md"))
PICTURES = DOCUMENTS / "images/results"
MARKED = re.compile(r"(<!-- results (\w+) -->\n).*?(<!-- end of results -->)", re.DOTALL)
HEADLINES = "headlines_"
KINDS = {
    "trees": "active_logical atis coffeescript_javascript cogs for2lam geo ifttt jobs overnight".split(),
    "text": """cognition generated_en_de gigaword iwslt13_en_fr iwslt13_fr_en iwslt14_de_en iwslt14_en_de iwslt14_en_fr
        multi30k_en_de wmt14_en_de""".split(),
    "classes": "glue imdb movie_reviews sst2 sst5 sva".split(),
}
"""Recipes by what their models write."""


def read_result(name: str) -> dict:
    """Reads a file of results. Raises ScoringError if there is none of that name."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in RESULTS.glob("*.json")))
        raise ScoringError(f"there is no {path}; results with files: {known}")
    return json.loads(path.read_text(encoding="utf-8"))


def measured_results() -> list[dict]:
    """Reads all files that have been measured, by title."""
    found = (json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("*.json"))
    return sorted((result for result in found if "measured" in result), key=lambda result: result["title"])


def results_of_kind(kind: str) -> list[dict]:
    """Reads the measured files of the recipes of a kind, by title."""
    return [result for result in measured_results() if result["recipe"] in KINDS[kind]]


def figures(values: Sequence[float]) -> str:
    """Formats the mean over the seeds, and the value of each seed."""
    each = f" ({', '.join(f'{value:.3g}' for value in values)})" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.3g}{each}"


def table(result: dict) -> str:
    """Formats a file of results in Markdown: systems, comparisons, and where they were measured, if they were."""
    if "measured" not in result:
        return "Not measured yet.\n"
    measured = result["measured"]
    is_processor = all("processor_hours" in system for system in measured["systems"].values())
    spent, heading = ("processor_hours", "processor hours") if is_processor else ("hours", "hours")
    rows = [["", *result["metrics"].values(), f"{heading} a run"], ["---"] * (len(result["metrics"]) + 2)]
    for name, system in measured["systems"].items():
        hours = _mean_hours(result, name, spent)
        rows.append([name, *(figures(system["metrics"][metric]) for metric in result["metrics"]), f"{hours:.2f}"])
    lines = [*map(_row, rows), "", *map(_row, _comparisons(result))]
    seeds = ", ".join(map(str, result["seeds"]))
    note = f" {measured['note']}" if "note" in measured else ""
    drawn = " The test draws whole groups of examples." if "groups" in result else ""
    lines += ["", f"Seeds {seeds}; measured on {measured['date']} with {measured['machine']}.{drawn}{note}"]
    return "\n".join(lines) + "\n"


def summary(results: Iterable[dict]) -> str:
    """Formats the headlines of all files: who is compared, the difference of the means over the seeds, and the cost.

    The first row of a file names its task.
    """
    headings = "task", "comparison", "difference", "95 % interval", "p", "does it help?", "time of training"
    rows = [[*headings], ["---"] * len(headings)]
    for result in results:
        task = f"[{result['title']}](../examples/{result['recipe']}/README.md)"
        for pair, metric, row in headlines(result):
            names = pair["system"], pair["baseline"]
            compared = f"{names[0]} over {names[1]}, {result['compared'][metric]}"
            reason = "".join(f", {text}" for *pair_of, text in result.get("reasons", ()) if (*pair_of,) == names)
            seeds = ", though not with every seed" if _disagree(row, by_seed(result, pair, metric)) else ""
            cells = *_parts_of_difference(row), verdict(row) + seeds + reason, _cost(result, pair)
            rows.append([task, compared, *cells])
            task = ""
    return "\n".join(map(_row, rows)) + "\n"


def headlines(result: dict) -> list[tuple[dict, str, dict]]:
    """Returns the comparisons that the summary shows, each with its first metric and the figures of that.

    A comparison that was added after the measurement is left out until it is measured.
    """
    found = {(pair["system"], pair["baseline"]): pair for pair in result["measured"]["comparisons"]}
    metric = next(iter(result["compared"]))
    wanted = map(tuple, result.get("headlines", result["comparisons"]))
    return [(found[pair], metric, found[pair]["metrics"][metric]) for pair in wanted if pair in found]


def differences(results: Iterable[dict]) -> Iterator[tuple[str, str, dict]]:
    """Yields the headlines of files as :func:`draw_differences` takes them: the task, who is compared, the figures."""
    for result in results:
        for pair, _, row in headlines(result):
            yield result["title"], f"{pair['system']} over {pair['baseline']}", row


def by_seed(result: dict, pair: dict, metric: str) -> list[float]:
    """Returns the difference of two systems with each seed; nothing where the table does not have the figure."""
    shown = {heading: name for name, heading in result["metrics"].items()}.get(result["compared"][metric])
    if shown is None:
        return []
    ours, theirs = (result["measured"]["systems"][pair[side]]["metrics"][shown] for side in ("system", "baseline"))
    return [one - other for one, other in zip(ours, theirs)]


def _disagree(row: dict, by_seeds: Sequence[float]) -> bool:
    """Whether a significant difference has the other sign with one of the seeds, over which no test draws."""
    return verdict(row) != "level" and any(value * row["difference"] < 0 for value in by_seeds)


def verdict(row: dict) -> str:
    """Says whether a difference is significant, and which way it goes."""
    if row["p_value"] >= SIGNIFICANT:
        return "level"
    return "yes" if row["difference"] > 0 else "no, it costs"


def write_pages(pages: Iterable[Path] = PAGES, pictures: Path = PICTURES) -> list[Path]:
    """Writes the tables into the pages, and the pictures; returns the pages that changed."""
    changed = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        new = MARKED.sub(lambda found: f"{found[1]}{shown(found[2])}{found[3]}", text)
        if new != text:
            page.write_text(new, encoding="utf-8")
            changed.append(page)
    for kind in KINDS:
        if compared := list(differences(results_of_kind(kind))):
            write_figure(draw_differences(compared), pictures / f"differences_{kind}.svg", f"Differences, {kind}")
    for path in RESULTS.glob("*.json"):
        result = read_result(path.stem)
        if is_drawn(result):
            write_figure(draw_result(result), pictures / f"{path.stem}.svg", result["title"])
    return changed


def shown(name: str) -> str:
    """Returns the table of a mark's name."""
    if name.startswith(HEADLINES):
        return summary(results_of_kind(name.removeprefix(HEADLINES)))
    return table(read_result(name))


def _comparisons(result: dict) -> list[list[str]]:
    """Rows of a table: a comparison each, a metric in each column; significant differences are bold."""
    if not result["measured"]["comparisons"]:
        return []
    rows = [["difference (95 % interval)", *result["compared"].values()], ["---"] * (len(result["compared"]) + 1)]
    for pair in result["measured"]["comparisons"]:
        cells = [_difference(result, pair, metric) for metric in result["compared"]]
        rows.append([f"{pair['system']} over {pair['baseline']}", *cells])
    return rows


def _difference(result: dict, pair: dict, metric: str) -> str:
    row = pair["metrics"][metric]
    difference, interval, p_value = _parts_of_difference(row)
    mark = "" if verdict(row) == "level" else "**"
    sign = "" if p_value.startswith("<") else "= "
    each = by_seed(result, pair, metric)
    signs = f"; by seed {', '.join(map(_signed, each))}" if _disagree(row, each) else ""
    return f"{mark}{difference}{mark} ({interval}, p {sign}{p_value}){signs}"


def _parts_of_difference(row: dict) -> tuple[str, str, str]:
    low, high = map(_signed, row["interval"])
    p_value = f"{row['p_value']:.3f}" if row["p_value"] >= 0.001 else "< 0.001"
    return _signed(row["difference"]), f"{low} to {high}", p_value


def _signed(value: float) -> str:
    text = f"{value:+.1f}"
    return "0.0" if float(text) == 0 else text


def _cost(result: dict, pair: dict) -> str:
    """Hours of processors of a run over those of the baseline."""
    ours, theirs = (_mean_hours(result, pair[side], "processor_hours") for side in ("system", "baseline"))
    return f"{ours / theirs:.1f} times" if ours and theirs else "not measured"


def _mean_hours(result: dict, name: str, spent: str) -> float | None:
    """The mean hours of a system's runs and of those whose models it reads; None if not all were measured."""
    others = result["systems"][name].get("models_of", ())
    found = [result["measured"]["systems"][each].get(spent) for each in (name, *others)]
    return sum(map(statistics.fmean, found)) if all(found) else None


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
