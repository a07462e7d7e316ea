"""Metrics of a confusion matrix and correlations, against counting by hand and their definitions."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tree_fairseq.classification.criterion import class_figures, confusion_counts, moments
from tree_fairseq.classification.criterion import pearson as pearson_of_sums
from tree_fairseq.scoring.predictions import spearman

NUMBERS = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=3, max_size=9)
PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20)


def counts_of(pairs) -> np.ndarray:
    target, predicted = torch.tensor(pairs).unbind(1)
    return confusion_counts(target, predicted, 4).numpy()


def f1_by_hand(pairs, name: int) -> float:
    right = sum(pair == (name, name) for pair in pairs)
    return 2 * right / (sum(target == name for target, _ in pairs) + sum(predicted == name for _, predicted in pairs))


@given(PAIRS)
def test_figures_are_those_of_counting(pairs):
    counts = counts_of(pairs)
    assert all(counts[row, column] == pairs.count((row, column)) for row in range(4) for column in range(4))
    figures = class_figures(counts)
    assert figures["accuracy"] == pytest.approx(
        100 * sum(target == predicted for target, predicted in pairs) / len(pairs)
    )
    occurring = sorted({name for pair in pairs for name in pair})
    assert figures["macro_f1"] == pytest.approx(
        100 * sum(f1_by_hand(pairs, name) for name in occurring) / len(occurring)
    )


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=20))
def test_figures_of_two_classes_are_those_of_their_definitions(pairs):
    target, predicted = torch.tensor(pairs).long().unbind(1)
    figures = class_figures(confusion_counts(target, predicted, 2).numpy())
    assert figures["f1"] == pytest.approx(100 * f1_by_hand(pairs, True) if any(map(any, pairs)) else 0)
    agreement = [pairs.count((right, ours)) for right in (True, False) for ours in (True, False)]
    hits, misses, alarms, rests = agreement
    margins = (hits + misses) * (hits + alarms) * (rests + misses) * (rests + alarms)
    assert figures["matthews"] == pytest.approx(100 * (hits * rests - misses * alarms) / margins**0.5 if margins else 0)


@given(PAIRS)
def test_of_more_classes_none_is_the_positive_one(pairs):
    assert list(class_figures(counts_of(pairs))) == ["accuracy", "macro_f1", "matthews"]


def ranks(values: list[int]) -> list[float]:
    """The mean of the places that equal values have."""
    places = sorted(values)
    return [statistics.fmean(place for place, other in enumerate(places) if other == value) for value in values]


def correlation(left, right):
    """The covariance over the root of the product of the variances."""
    covariance = statistics.fmean(one * other for one, other in zip(left, right)) - statistics.fmean(
        left
    ) * statistics.fmean(right)
    return covariance / (statistics.pvariance(left) * statistics.pvariance(right)) ** 0.5


def pearson(left, right) -> float:
    return pearson_of_sums(moments(*(torch.tensor(side).double() for side in (left, right))).sum(0).numpy())


@given(NUMBERS)
def test_correlations_are_what_they_are_defined_as(pairs):
    left, right = map(list, zip(*pairs))
    if len(set(left)) < 2 or len(set(right)) < 2:
        assert pearson(left, right) == spearman(left, right) == 0
        return
    assert pearson(left, right) == pytest.approx(100 * correlation(left, right), abs=1e-6)
    assert spearman(left, right) == pytest.approx(100 * correlation(ranks(left), ranks(right)), abs=1e-6)


def test_too_few_numbers_do_not_correlate():
    assert pearson([1], [2]) == spearman([], []) == 0
