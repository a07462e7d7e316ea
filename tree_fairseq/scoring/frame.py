"""The frame of all scoring: a test set reads the outputs of systems into measures, and this module compares them.

A :class:`TestSet` holds the references. :func:`score` computes the metrics of one system, of the parts of the test set,
and the differences from other systems. :func:`tables` formats the result. Files of hypotheses
(:mod:`tree_fairseq.scoring.hypothesis_files`) and runs of recipes (:mod:`tree_fairseq.scoring.runs`) are test sets.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tree_fairseq.scoring.measures import Measure
from tree_fairseq.scoring.significance import Resampling
from tree_fairseq.trees.tree import Forest

logger = logging.getLogger(__name__)

COUNT = "sentences"  # the key of the number of sentences beside the metrics of a part

Metrics = Callable[[Sequence[int]], dict[str, float]]  # computes metrics of the sentences with the given numbers


class TestSet(ABC):
    """The references of a test set, and how the outputs of a system are compared with them."""

    __test__ = False  # pytest would collect the class by its name

    count: int  # the number of sentences
    in_parts: Sequence[str] | None = None  # the measures that are computed for parts of the test set; None for all

    @abstractmethod
    def measures(self, system: Path) -> dict[str, Measure]:
        """Reads the outputs of a system, and returns its measures by name."""

    def parts(self) -> dict[str, tuple[Sequence[int], Sequence[int]]]:
        """Returns by section, such as ``by_length``, a number of each sentence, and the upper bounds of its parts."""
        return {}

    def groups(self) -> Sequence[Iterable[str]] | None:
        """Returns the names of the groups of each sentence; None if there are no groups."""
        return None

    def details(self, system: Mapping[str, Measure]) -> dict[str, Any]:
        """Returns more figures of a system, as JSON values."""
        return {}


def score(
    test_set: TestSet, ours: Mapping[str, Measure], baselines: Mapping[str, Mapping[str, Measure]], test: Resampling
) -> dict[str, Any]:
    """Computes all figures of a system from its measures, and its differences from baselines.

    Returns:
        ``sentences``, ``metrics``, ``signatures``; ``baselines``, the metrics of each; ``differences``; each section of
        :meth:`TestSet.parts`; ``groups``; and the details of the test set
    """
    everything = range(test_set.count)
    result: dict[str, Any] = {
        COUNT: test_set.count,
        "metrics": metrics_of(ours, everything),
        "signatures": {name: text for measure in ours.values() for name, text in measure.signatures.items()},
        "baselines": {},
        "differences": [],
        **test_set.details(ours),
    }
    for baseline, theirs in baselines.items():
        result["baselines"][baseline] = metrics_of(theirs, everything)
        for name, measure in ours.items():
            logger.info("comparing %s with %s", name, baseline)
            rows = measure.differences(theirs[name], test)
            result["differences"] += [{"metric": metric, "baseline": baseline, **row} for metric, row in rows.items()]
    of_part = partial(metrics_of, {name: ours[name] for name in test_set.in_parts or ours if name in ours})
    for section, (values, bounds) in test_set.parts().items():
        result[section] = by_bounds(values, bounds, of_part)
    groups = test_set.groups()
    if groups is not None:
        result["groups"] = by_group(groups, of_part)
    return result


def metrics_of(measures: Mapping[str, Measure], indices: Sequence[int]) -> dict[str, float]:
    """Computes the metrics of all measures for some sentences."""
    return {name: value for measure in measures.values() for name, value in measure.metrics(indices).items()}


def by_bounds(values: Sequence[int], bounds: Sequence[int], metrics: Metrics) -> list[dict]:
    """Returns metrics of parts of the test set by length or another number; empty parts are left out."""
    rows, low = [], 0
    for high in [*sorted(set(bounds)), None]:
        inside = [index for index, value in enumerate(values) if value >= low and (high is None or value <= high)]
        if inside:
            rows.append({"from": low, "to": high, COUNT: len(inside), **metrics(inside)})
        low = low if high is None else high + 1
    return rows


def by_group(groups: Sequence[Iterable[str]], metrics: Metrics) -> dict[str, dict]:
    """Returns metrics of each group, given the groups of every sentence."""
    members: dict[str, list[int]] = {}
    for index, names in enumerate(groups):
        for name in names:
            members.setdefault(name, []).append(index)
    return {name: {COUNT: len(members[name]), **metrics(members[name])} for name in sorted(members)}


def depth_of(forest: Forest) -> int:
    """Returns the edges from the root to the deepest word of the deepest tree."""
    return max((tree.height() for tree in forest), default=0)


# The printed tables leave these metrics out for parts of the test set; the JSON files have all of them.
_ONLY_IN_TOTAL = frozenset(
    "valid_trees validity steps mean_squared_error bracket_recall bracket_precision average_crossing no_crossing "
    "two_or_less_crossing tagging_accuracy exact_text ngram_match weighted_ngram_match ast_match "
    "data_flow_match".split()
)


def tables(result: Mapping[str, Any], system: str) -> list[str]:
    """Formats a result of :func:`score` as lines: metrics and differences, signatures, parts of the test set."""
    baselines, names = list(result["baselines"]), list(result["metrics"])
    own_name, *others = _short_names([system, *baselines])
    rows = [["", own_name]]
    for other in others:
        rows[0] += [other, "difference", "p"]
    found = {(row["metric"], row["baseline"]): row for row in result["differences"]}
    for name in names:
        rows.append([name, _figure(name, result["metrics"][name])])
        for baseline in baselines:
            row, theirs = found.get((name, baseline), {}), result["baselines"][baseline].get(name)
            rows[-1] += [
                "" if theirs is None else _figure(name, theirs),
                f"{row['difference']:+.2f}" if row else "",
                f"{row['p_value']:.4f}" if "p_value" in row else "",
            ]
    lines = [f"{result[COUNT]} sentences", *aligned(rows)]
    if "bracket_sentences" in result:
        counts = result["bracket_sentences"]
        lines.append("brackets of {valid} sentences; {error} errors, {skipped} skipped".format(**counts))
    lines += [f"{name}: {text}" for name, text in result["signatures"].items()]
    tests = dict.fromkeys(row["signature"] for row in result["differences"] if "signature" in row)
    lines += [f"test: {text}" for text in tests]
    titles = {"by_length": "words", "by_depth": "depth", "by_size": "nodes"}
    for section in [section for section in titles if result.get(section)]:
        parts = {f"{row['from']}-{'' if row['to'] is None else row['to']}": row for row in result[section]}
        lines += ["", *_table_of_parts(titles[section], parts)]
    if result.get("groups"):
        lines += ["", *_table_of_parts("group", result["groups"])]
    return lines


def _table_of_parts(title: str, parts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    known = {name: None for row in parts.values() for name in row}
    names = [name for name in known if name not in ("from", "to", COUNT) and name not in _ONLY_IN_TOTAL]
    rows = [[title, COUNT, *names]]
    for part, row in parts.items():
        rows.append([part, str(row[COUNT]), *(f"{row[name]:.2f}" if name in row else "" for name in names)])
    return aligned(rows)


def _figure(name: str, value: float) -> str:
    """Formats a metric; validity is a share, and is close to 1."""
    return f"{value:.4f}" if name == "validity" else f"{value:.2f}"


def _short_names(paths: Sequence[str]) -> list[str]:
    """Shortens paths to as many of their last parts as tell them apart."""
    split = [Path(path).parts for path in paths]
    for count in range(1, max(map(len, split))):
        names = ["/".join(parts[-count:]) for parts in split]
        if len(set(names)) == len(set(paths)):
            return names
    return list(paths)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Formats a table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]).rstrip()
        for row in rows
    ]
