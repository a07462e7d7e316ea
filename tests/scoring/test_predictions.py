"""Measures of classes and numbers, and ``--scoring classification`` and ``regression``, against their definitions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from fairseq.data import Dictionary
from fairseq.scoring import build_scorer
from hypothesis import given
from hypothesis import strategies as st

import tree_fairseq  # noqa: F401  (registers the scorers)
from tree_fairseq.classification.criterion import class_figures
from tree_fairseq.scoring.predictions import ClassMeasure, NumberMeasure
from tree_fairseq.scoring.significance import Resampling


def test_the_classification_scorer_of_fairseq_generate():
    scorer = build_scorer("classification", Dictionary())
    assert scorer.result_string() == "no examples"
    for right, predicted in (("pos", "pos"), ("pos", "neg"), ("neg", "neg"), ("neg", "neg")):
        scorer.add_string(right, predicted)
    assert scorer.score() == 75.0
    # F1 of neg is 2 * 2 / (2 + 3), that of pos 2 * 1 / (2 + 1).
    title, explanation, *table = scorer.result_string().splitlines()
    # 2 * 1 - 0 * 1 by the root of 3 * 2 * 1 * 2.
    assert title == "accuracy 75.00, macro F1 73.33, Matthews 57.74, F1 66.67, 4 examples"
    assert explanation == "confusion, rows are right, columns predicted"
    assert [line.split() for line in table] == [["neg", "pos"], ["neg", "2", "0"], ["pos", "1", "1"]]


def test_the_regression_scorer_of_fairseq_generate():
    # Means 2 and 3; deviations -2 -1 0 3 and -3 -1 -2 6. Ranks 0 1 2 3 and 0 2 1 3.
    pearson = 100 * 25 / (14 * 50) ** 0.5
    scorer = build_scorer("regression", Dictionary())
    assert scorer.result_string() == "no examples"
    for right, predicted in zip(("0", "1", "2", "5.000"), ("0", "2", "1", "9")):
        scorer.add_string(right, predicted)
    assert scorer.score() == pytest.approx(pearson)
    assert scorer.result_string() == f"Pearson {pearson:.2f}, Spearman 80.00, mean squared error 4.5000, 4 examples"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abcd")), min_size=1, max_size=40), st.data())
def test_confusions_are_counted_of_all_examples_and_figures_of_some(pairs, data):
    right, predicted = map(list, zip(*pairs))
    measure, counts = ClassMeasure(right, predicted), Counter(pairs)
    names = measure.confusion()["classes"]
    assert measure.confusion()["counts"] == [[counts[right, ours] for ours in names] for right in names]
    some = data.draw(st.lists(st.integers(0, len(pairs) - 1), min_size=1, unique=True))
    matrix = np.array([[sum(pairs[k] == (a, b) for k in some) for b in names] for a in names])
    assert measure.metrics(some) == pytest.approx(class_figures(matrix))


def test_pearson_of_sums_equals_that_of_each_sample():
    """The bootstrap and the randomization of sums, against the correlation of samples that are written out."""
    generator = np.random.default_rng(3)
    right = generator.uniform(0, 5, 40) + 1e4  # sums of squares of large numbers lose digits
    ours, theirs = right + generator.normal(0, 1, 40), generator.normal(0, 2, 40) + 1e4
    measure, other = (NumberMeasure(list(map(str, right)), list(map(str, side))) for side in (ours, theirs))
    for test in (Resampling("bootstrap", 25, seed=5), Resampling("randomization", 25, seed=5)):
        rows = measure.differences(other, test)
        draws = np.random.default_rng(5).integers(0, 40 if test.kind == "bootstrap" else 2, (25, 40))

        def figures(numbers, answers):
            return np.array([100 * np.corrcoef(numbers, answers)[0, 1], np.mean((numbers - answers) ** 2)])

        real = figures(ours, right) - figures(theirs, right)
        if test.kind == "bootstrap":
            drawn = np.array([figures(ours[row], right[row]) - figures(theirs[row], right[row]) for row in draws])
            intervals = np.percentile(drawn, [2.5, 97.5], axis=0).T
            drawn = drawn - drawn.mean(axis=0)
        else:
            changed = [(np.where(row, theirs, ours), np.where(row, ours, theirs)) for row in draws]
            drawn = np.array([figures(first, right) - figures(second, right) for first, second in changed])
        for column, name in enumerate(("pearson", "mean_squared_error")):
            assert rows[name]["difference"] == pytest.approx(real[column], rel=1e-9)
            as_far = (np.abs(drawn[:, column]) >= abs(real[column])).sum()
            assert rows[name]["p_value"] == pytest.approx((as_far + 1) / 26)
            if test.kind == "bootstrap":
                assert rows[name]["interval"] == pytest.approx(intervals[column], rel=1e-9)


@pytest.mark.parametrize("numbers", [["0.1"] * 7, ["1234567.1"] * 7, ["0"] * 7])
def test_equal_numbers_correlate_with_nothing(numbers):
    right = ["1", "2.5", "3", "0.1", "7", "2", "4"]
    measure = NumberMeasure(right, numbers)
    found = measure.statistic(measure.counts.sum(axis=0))
    assert float(found["pearson"]) == measure.metrics(range(7))["pearson"] == 0
    other = NumberMeasure(right, ["1", "2", "3", "1", "8", "2", "4"])
    assert 0 < measure.differences(other, Resampling(samples=20))["pearson"]["p_value"] < 1


def test_two_systems_are_counted_over_the_classes_of_both():
    right, ours, theirs = "abcdabcd", "abcdabca", "ebcdabcd"
    measure, other = (ClassMeasure(list(right), list(predicted)) for predicted in (ours, theirs))
    baseline, system = measure.aligned_counts([other, measure])
    assert baseline.shape == system.shape == (8, 25)
    sums = np.stack([counts.sum(axis=0) for counts in (baseline, system)])
    assert measure.statistic(sums)["macro_f1"] == pytest.approx(
        [each.metrics(range(8))["macro_f1"] for each in (other, measure)]
    )
