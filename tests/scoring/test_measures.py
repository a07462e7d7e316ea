"""BLEU, chrF, TER and ROUGE, compared with their definitions; parts of a test set."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tree_fairseq.errors import MissingLibraryError
from tree_fairseq.scoring.frame import by_bounds
from tree_fairseq.scoring.measures import pltrdy_rouge, rouge


def ngrams(line, order):
    tokens = line.split()
    return Counter(tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1))


@given(st.lists(st.integers(0, 60)), st.lists(st.integers(1, 50), max_size=5))
def test_parts_divide_the_sentences(lengths, bounds):
    parts = by_bounds(lengths, bounds, lambda indices: {"indices": indices})
    assert sorted(index for row in parts for index in row["indices"]) == list(range(len(lengths)))
    for row in parts:
        low, high, indices = row["from"], row["to"], row["indices"]
        assert indices and len(indices) == row["sentences"]
        assert all(low <= lengths[index] and (high is None or lengths[index] <= high) for index in indices)


def f1(common, found, wanted):
    return 2 * common / (found + wanted) if common else 0.0


def ngram_f1(reference, hypothesis, size):
    counts = [ngrams(" ".join(side), size) for side in (reference, hypothesis)]
    return f1(*(sum(counter.values()) for counter in (counts[0] & counts[1], counts[1], counts[0])))


def longest_common(left, right):
    if not left or not right:
        return 0
    if left[-1] == right[-1]:
        return longest_common(left[:-1], right[:-1]) + 1
    return max(longest_common(left[:-1], right), longest_common(left, right[:-1]))


@pytest.mark.skipif(importlib.util.find_spec("rouge_score") is None, reason="rouge-score is not installed")
def test_rouge_equals_its_definition():
    generator = random.Random(2)
    sides = [
        [generator.choices(["a", "b", "#.#", "'s", "C"], k=generator.randrange(1, 7)) for _ in range(40)]
        for _ in range(2)
    ]
    found = rouge(*([" ".join(line) for line in side] for side in sides))
    for index, (reference, hypothesis) in enumerate(zip(*sides)):
        longest = f1(longest_common(reference, hypothesis), len(hypothesis), len(reference))
        assert found.metrics([index]) == pytest.approx({
            "rouge1": 100 * ngram_f1(reference, hypothesis, 1),
            "rouge2": 100 * ngram_f1(reference, hypothesis, 2),
            "rougeL": 100 * longest,
        })  # fmt: skip


@pytest.mark.skipif(importlib.util.find_spec("rouge") is None, reason="pltrdy's rouge is not installed")
def test_the_reading_of_the_paper_counts_an_n_gram_once_and_takes_texts_without_words():
    found = pltrdy_rouge(["the cat sat on the mat", "a b . c", "x", "a"], ["the cat the cat", "a b", "", " . "])
    rows = [found.metrics([index]) for index in range(4)]
    assert rows[0]["pltrdy_rouge1"] == pytest.approx(100 * f1(2, 2, 5), abs=1e-4)  # 2 of 2 words in 5
    assert rows[0]["pltrdy_rouge2"] == pytest.approx(100 * f1(1, 2, 5), abs=1e-4)
    assert rows[1]["pltrdy_rouge1"] == pytest.approx(100 * f1(2, 2, 3), abs=1e-4)
    assert rows[2] == rows[3] == dict.fromkeys(rows[0], 0)


@pytest.mark.parametrize(
    ("module", "extra", "scored"), [("rouge_score.rouge_scorer", "scores", rouge), ("rouge", "pltrdy", pltrdy_rouge)]
)
def test_the_message_names_the_missing_library(module, extra, scored, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingLibraryError, match=rf"pip install 'tree-fairseq\[{extra}\]'"):
        scored(["a"], ["a"])
