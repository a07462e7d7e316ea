"""McNemar's exact test, compared with a sum of binomial coefficients."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.breakdowns import mcnemar


def p_value(gained: int, lost: int) -> float:
    """Computes the probability of a split at least as uneven if both sides are equally likely."""
    total = gained + lost
    tail = sum(comb(total, count) for count in range(min(gained, lost) + 1)) / 2**total
    return min(1.0, 2 * tail)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_it_equals_its_definition(pairs):
    baseline, system = zip(*pairs)
    row = mcnemar(baseline, system)
    gained, lost = pairs.count((False, True)), pairs.count((True, False))
    assert (row["only_system"], row["only_baseline"]) == (gained, lost)
    assert row["p_value"] == pytest.approx(p_value(gained, lost))
    assert row["difference"] == pytest.approx(100 * (sum(system) - sum(baseline)) / len(pairs))


def test_outcomes_of_different_test_sets_are_refused():
    with pytest.raises(ScoringError, match="different test sets"):
        mcnemar([True], [True, False])
