"""Sentences of one line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tree_fairseq.parsing.input_lines import split_sentences


@pytest.mark.parametrize(
    ("line", "sentences"),
    [
        ("a man sleeps", ["a man sleeps"]),
        ("He sleeps . She reads .", ["He sleeps .", "She reads ."]),
        ("what ? no ! yes", ["what ?", "no !", "yes"]),
        ('" He sleeps . " she said .', ['" He sleeps . "', "she said ."]),
        ('He sleeps . " Why ? "', ["He sleeps .", '" Why ? "']),
        ("( He sleeps . ) She reads .", ["( He sleeps . )", "She reads ."]),
        ("Mr. Smith sleeps .", ["Mr. Smith sleeps ."]),
        ("I ... do not know .", ["I ... do not know ."]),
        ("I do not know ... You do .", ["I do not know ...", "You do ."]),
        ("really ?! yes .", ["really ?!", "yes ."]),
        ("really ? ! yes .", ["really ? !", "yes ."]),
        ("他 睡 。 她 读 。", ["他 睡 。", "她 读 。"]),
        ("« oui . » dit-il .", ["« oui . »", "dit-il ."]),
        (". a", [".", "a"]),
    ],
)
def test_cut_after_final_punctuation(line, sentences):
    words = line.split()
    assert [" ".join(words[start:end]) for start, end in split_sentences(words)] == sentences


def test_a_blank_line_has_no_sentence():
    assert split_sentences([]) == []


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "B", ".", "?", '"', "''", "...", "'", ")", "("]), max_size=20))
def test_the_spans_cover_the_line(words):
    spans = split_sentences(words)
    assert [start for start, _ in spans] == [0, *(end for _, end in spans)][: len(spans)]
    assert all(start < end for start, end in spans)
    assert (spans[-1][1] if spans else 0) == len(words)
