"""``--scoring classification``."""

from __future__ import annotations

from fairseq.data import Dictionary
from fairseq.scoring import build_scorer

import tree_fairseq  # noqa: F401  (registers the scorer)


def test_metrics_and_confusion_matrix():
    scorer = build_scorer("classification", Dictionary())
    for right, predicted in (("pos", "pos"), ("pos", "neg"), ("neg", "neg"), ("neg", "neg")):
        scorer.add_string(right, predicted)
    assert scorer.score() == 75.0
    # F1 of neg is 2 * 2 / (2 + 3), that of pos 2 * 1 / (2 + 1).
    title, explanation, *table = scorer.result_string().splitlines()
    # 2 * 1 - 0 * 1 by the root of 3 * 2 * 1 * 2.
    assert title == "accuracy 75.00, macro F1 73.33, Matthews 57.74, F1 66.67, 4 examples"
    assert explanation == "confusion, rows are right, columns predicted"
    assert [line.split() for line in table] == [["neg", "pos"], ["neg", "2", "0"], ["pos", "1", "1"]]


def test_a_scorer_without_examples():
    assert build_scorer("classification", Dictionary()).result_string() == "no examples"
