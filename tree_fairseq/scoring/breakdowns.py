"""Metrics of parts of a test set (buckets of a measure, groups), and McNemar's test between runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from scipy.stats import binomtest

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.outputs import read_text

SIGNATURE = "McNemar's test, exact, two-sided"


def mcnemar(baseline: Sequence[bool], system: Sequence[bool]) -> dict:
    """McNemar's exact test (1947) of paired outcomes.

    Only sentences on which the systems disagree count: two equally good systems are each right on such a sentence with
    probability 1/2.

    Returns:
        the difference in points, the numbers of sentences that only one system has right, and the p-value

    Raises:
        ScoringError: the outcomes belong to different test sets
    """
    if len(baseline) != len(system):
        raise ScoringError(
            f"one run has {len(system)} outcomes, the other {len(baseline)}: they are of different test sets"
        )
    gained = sum(ours and not theirs for theirs, ours in zip(baseline, system))
    lost = sum(theirs and not ours for theirs, ours in zip(baseline, system))
    p_value = binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    return {
        "difference": 100 * (gained - lost) / len(system),
        "only_system": gained,
        "only_baseline": lost,
        "p_value": float(p_value),
        "signature": SIGNATURE,
    }


COUNT = "sentences"
"""Key of the number of sentences beside the metrics of a part."""

Metrics = Callable[[Sequence[int]], dict[str, float]]


def by_bounds(measures: Sequence[int], bounds: Sequence[int], metrics: Metrics) -> list[dict]:
    """Returns metrics of buckets of sentences. Buckets end at ``bounds``; empty ones are left out.

    Args:
        measures: of each sentence, such as its length
        metrics: computes the metrics of the sentences with the given numbers
    """
    rows, low = [], 0
    for high in [*sorted(set(bounds)), None]:
        inside = [index for index, value in enumerate(measures) if value >= low and (high is None or value <= high)]
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


def read_groups(folder: Path, subset: str, count: int) -> list[list[str]]:
    """Reads the groups of each sentence from ``{subset}.groups``; returns an empty list if the file is missing.

    Raises:
        ScoringError: the file does not have ``count`` lines
    """
    path = folder / f"{subset}.groups"
    return [line.split() for line in read_text(path, count)] if path.is_file() else []


def group_metrics(groups: Mapping[str, dict], wanted: Sequence[str], suffix: str) -> dict[str, float]:
    """Returns the metrics of some groups as ``METRIC_GROUP``."""
    return {
        f"{metric}_{name}{suffix}": value
        for name in wanted
        if name in groups
        for metric, value in groups[name].items()
        if metric != COUNT
    }


def differences(
    name: str, baseline: Mapping[str, Sequence[bool]], outcomes: Mapping[str, Sequence[bool]], suffix: str
) -> list[dict]:
    """Tests each metric for which both the baseline ``name`` and this run have outcomes.

    Raises:
        ScoringError: the outcomes belong to different test sets
    """
    return [
        {"metric": metric + suffix, "baseline": name, **mcnemar(baseline[metric], ours)}
        for metric, ours in outcomes.items()
        if metric in baseline
    ]
