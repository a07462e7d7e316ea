"""Correlations, against their definitions."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tree_fairseq.classification.metrics import pearson, spearman

numbers = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=3, max_size=9)


def ranks(values: list[int]) -> list[float]:
    """The mean of the places that equal values have."""
    places = sorted(values)
    return [statistics.fmean(place for place, other in enumerate(places) if other == value) for value in values]


@given(numbers)
def test_they_are_what_they_are_defined_as(pairs):
    left, right = map(list, zip(*pairs))
    if len(set(left)) < 2 or len(set(right)) < 2:
        assert pearson(left, right) == spearman(left, right) == 0
        return
    assert pearson(left, right) == pytest.approx(100 * statistics.correlation(left, right), abs=1e-6)
    assert spearman(left, right) == pytest.approx(100 * statistics.correlation(ranks(left), ranks(right)), abs=1e-6)


def test_too_few():
    assert pearson([1], [2]) == spearman([], []) == 0
