"""Whether two systems that were scored right or wrong on the same sentences differ."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.stats import binomtest

from tree_fairseq.errors import ScoringError

SIGNATURE = "McNemar's test, exact, two-sided"


def mcnemar(baseline: Sequence[bool], system: Sequence[bool]) -> dict:
    """McNemar's exact test (1947) of paired outcomes.

    Only sentences on which the two disagree count: were the systems equally good, each of them would be right on such a
    sentence with probability 1/2.

    Returns:
        the difference in points, how many sentences only one of the two has right, and the p-value

    Raises:
        ScoringError: they are not outcomes of the same sentences
    """
    if len(baseline) != len(system):
        raise ScoringError(f"one run has {len(system)} outcomes, the other {len(baseline)}: they are of different test sets")
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
