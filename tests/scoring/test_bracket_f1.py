"""Unlabelled F1 of small trees and of controls that ignore the words."""

from __future__ import annotations

import pytest

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.bracket_f1 import bracket_f1, compare, inner_spans, table
from tree_fairseq.trees.bracket import read_forest

GOLD = read_forest("(ROOT (S (NP (DT the) (JJ old) (NN man)) (VP (VBZ sees) (NP (NP (PRP it)))) (. .)))")
RIGHT = read_forest("(X (X the) (X (X old) (X (X man) (X (X sees) (X (X it) (X .))))))")
GOOD = read_forest("(X (X (X (X the) (X (X old) (X man))) (X (X sees) (X it))) (X .))")
FLAT = read_forest("(S (A a) (B b) (C c))")
PAIR = read_forest("(S (A a) (B b))")


def test_trivial_spans_labels_and_chains_do_not_count():
    assert inner_spans(GOLD) == {(0, 3), (3, 5)}
    assert inner_spans(RIGHT) == {(1, 6), (2, 6), (3, 6), (4, 6)}
    assert inner_spans(FLAT) == inner_spans(PAIR) == set()


def test_mean_over_sentences_and_f1_of_the_corpus():
    # The gold tree has 2 spans. GOOD has 4, with both of them: F1 is 2 / 3. RIGHT has 4 others: 0.
    one = bracket_f1([(GOLD, GOOD)])
    assert (one.sentence, one.corpus) == (pytest.approx(200 / 3), pytest.approx(200 / 3))
    both = bracket_f1([(GOLD, GOOD), (GOLD, RIGHT), (PAIR, PAIR)])
    assert both.sentence == pytest.approx((200 / 3 + 0 + 100) / 3)
    assert both.corpus == pytest.approx(100 * 2 * 2 / 12)
    assert both.sentences == 3


def test_sentences_without_gold_spans():
    """Recall is 1, and precision is 1 if the other tree has no spans either."""
    binary = read_forest("(S (A a) (X (B b) (C c)))")
    assert bracket_f1([(FLAT, binary)]).sentence == 0
    assert bracket_f1([(FLAT, FLAT)]).sentence == 100
    word = read_forest("(X w)")
    assert bracket_f1([(word, word), (FLAT, FLAT)]).sentences == 1


def test_trees_over_different_words_are_refused():
    with pytest.raises(ScoringError, match="sentence 2: 2 words, but 3 in the gold tree"):
        bracket_f1([(GOLD, GOLD), (FLAT, PAIR)])
    with pytest.raises(ScoringError, match="two words"):
        bracket_f1([((), ())])


def test_comparison_with_controls():
    scores = compare([GOLD, FLAT, PAIR, ()], [GOOD, None, PAIR, ()])
    assert list(scores) == ["induced", "right-branching", "left-branching", "balanced", "random", "gold, binary"]
    assert {score.sentences for score in scores.values()} == {2}
    assert scores["induced"].sentence == pytest.approx((200 / 3 + 100) / 2)
    assert scores["right-branching"].sentence == bracket_f1([(GOLD, RIGHT), (PAIR, PAIR)]).sentence == 50
    left = read_forest("(X (X (X (X (X (X the) (X old)) (X man)) (X sees)) (X it)) (X .))")
    assert scores["left-branching"].corpus == bracket_f1([(GOLD, left), (PAIR, PAIR)]).corpus
    assert max(scores.values(), key=lambda score: score.sentence) in (scores["gold, binary"], scores["induced"])
    assert "left-branching" in table(scores) and "2 sentences" in table(scores)
