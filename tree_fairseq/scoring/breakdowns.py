"""Metrics of parts of a test set (buckets of a measure, groups), and McNemar's test between runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy.stats import binomtest

from tree_fairseq.errors import ScoringError
from tree_fairseq.trees.tree import Forest

COUNT = "sentences"  # key of the number of sentences beside the metrics of a part

Metrics = Callable[[Sequence[int]], dict[str, float]]  # computes metrics of the sentences with the given numbers


def by_bounds(measures: Sequence[int], bounds: Sequence[int], metrics: Metrics) -> list[dict]:
    """Returns metrics of buckets of sentences by length or another measure; buckets that are empty are left out."""
    rows, low = [], 0
    for high in [*sorted(set(bounds)), None]:
        inside = [index for index, value in enumerate(measures) if value >= low and (high is None or value <= high)]
        if inside:
            rows.append({"from": low, "to": high, COUNT: len(inside), **metrics(inside)})
        low = low if high is None else high + 1
    return rows


def depth_of(forest: Forest) -> int:
    """Returns the edges from the root to the deepest word of the deepest tree."""
    return max((tree.height() for tree in forest), default=0)


def by_group(groups: Sequence[Iterable[str]], metrics: Metrics) -> dict[str, dict]:
    """Returns metrics of each group, given the groups of every sentence."""
    members: dict[str, list[int]] = {}
    for index, names in enumerate(groups):
        for name in names:
            members.setdefault(name, []).append(index)
    return {name: {COUNT: len(members[name]), **metrics(members[name])} for name in sorted(members)}


def mcnemar(baseline: Sequence[bool], system: Sequence[bool]) -> dict:
    """McNemar's exact test (1947) of paired outcomes.

    Only sentences on which the systems disagree count: two equally good systems are each right on such a sentence with
    probability 1/2. Returns the difference in points, the numbers of sentences that only one system has right, and the
    p-value. Raises ScoringError if the outcomes belong to different test sets.
    """
    if len(baseline) != len(system):
        raise ScoringError(
            f"one run has {len(system)} outcomes, the other {len(baseline)}: they are of different test sets"
        )
    change = np.subtract(system, baseline, dtype=int)
    gained, lost = int((change > 0).sum()), int((change < 0).sum())
    return {
        "difference": 100 * (gained - lost) / len(system),
        "only_system": gained,
        "only_baseline": lost,
        "p_value": float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0,
        "signature": "McNemar's test, exact, two-sided",
    }
