"""EVALB's own sample, digit for digit; its documentation's examples; and an obvious implementation of its rules."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import trees
from tree_fairseq.scoring.evalb import ERROR, SKIPPED, VALID, Parameters, compare, counts, figures
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.tree import Tree

SAMPLE = Path(__file__).parent / "evalb_sample"
COLLINS = Parameters()
WITH_PUNCTUATION = Parameters(deleted=frozenset({"TOP", "-NONE-"}))


def compared(gold, test, rules=COLLINS):
    return compare(read_forest(gold), read_forest(test), rules)


def test_the_figures_of_the_sample_are_evalbs_own():
    rules = Parameters(  # as in sample.prm, which deletes no full stop
        deleted=COLLINS.deleted - {"."},
        equal_labels=frozenset({frozenset({"T", "TT"})}),
        equal_words=frozenset({frozenset({"This", "this"})}),
    )
    sides = [(SAMPLE / f"sample.{side}").read_text(encoding="utf-8").splitlines() for side in ("gld", "tst")]
    scores = [compared(gold, test, rules) for gold, test in zip(*sides)]
    printed = (SAMPLE / "sample.rsl").read_text(encoding="utf-8")
    rows = re.findall(
        r"^ *\d+ +\d+ +(\d) +[\d.]+ +[\d.]+ +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) ", printed, re.MULTILINE
    )
    assert [list(map(int, row)) for row in rows] == [list(score) for score in scores] and len(scores) == 24
    summary = dict(re.findall(r"^(\S.*?) +=\s+([\d.]+)$", printed.split("-- All --")[1].split("--")[0], re.MULTILINE))
    total = counts(scores).sum(axis=0)
    names = ("recall", "precision", "complete_match", "average_crossing", "no_crossing", "two_or_less_crossing")
    found = [f"{figures(total)[name]:.2f}" for name in (*names, "tagging_accuracy")]
    assert [str(number) for number in total[:4]] + found == list(summary.values())
    assert f"{figures(total)['f1']:.2f}" == "89.12"  # EVALB has printed it since 2006; the sample is older


def test_examples_of_the_documentation():
    # Traces, and what dominates nothing else, are removed.
    gold = "(S (NP (PRP He)) (VP (VBD reported) (SBAR (-NONE- 0) (S (-NONE- *T*-1)))) (. .))"
    assert compared(gold, "(S (NP (PRP He)) (VP (VBD reported)) (. !))")[:] == (VALID, 3, 3, 3, 0, 2, 2)
    # Functions are cut off labels, not off tags.
    assert compared("(S (NP-SBJ (X-1 a)) (NP=2 (Y b)))", "(S (NP (X a)) (NP-3 (Y b)))").matched == 3
    assert compared("(S (NP-SBJ (X-1 a)) (NP=2 (Y b)))", "(S (NP (X a)) (NP-3 (Y b)))").tags == 1
    # Equal brackets match as often as both sides have them.
    once, twice = "(NP (DT the) (NN man))", "(NP (NP (DT the) (NN man)))"
    assert compared(once, twice)[1:4] == (1, 1, 2) and compared(twice, once)[1:4] == (1, 2, 1)
    # Particles are adverbs.
    assert compared("(S (PRT (RP up)))", "(S (ADVP (RP up)))").matched == 2


def test_sentences_that_do_not_count():
    gold = "(S (NP (DT the) (NN man)) (. .))"
    assert compared(gold, "")[:2] == (SKIPPED, 0)
    assert compared(gold, "(S (. .))").status == SKIPPED
    assert compared(gold, "(S (NP (DT the)) (. .))").status == ERROR
    assert compared(gold, "(S (NP (DT the) (NN dog)) (. .))").status == ERROR
    assert compare(read_forest(gold), None, COLLINS).status == ERROR
    scores = [compared(gold, gold), compared(gold, ""), compare(read_forest(gold), None, COLLINS)]
    table = counts(scores)
    assert table.sum(axis=0)[:4].tolist() == [3, 1, 1, 1]
    assert figures(table.sum(axis=0))["f1"] == 100 and figures(table[1])["f1"] == 0


def test_punctuation_counts_on_request():
    gold, test = "(S (NP (NN a)) (, ,) (VP (VB b)) (. .))", "(S (NP (NN a) (, ,)) (VP (VB b)) (. .))"
    assert compared(gold, test)[1:] == (3, 3, 3, 0, 2, 2)
    assert compared(gold, test, WITH_PUNCTUATION)[1:] == (2, 3, 3, 0, 4, 4)


# The obvious implementation: trees without what is deleted, and multisets of their brackets.


def pruned(tree, deleted):
    """The trees that replace a tree: none for a deleted word, several for a deleted bracket."""
    if tree.is_preterminal:
        return [] if tree.label in deleted else [tree]
    children = [part for child in tree.children for part in pruned(child, deleted)]
    label = tree.label.split("=")[0].split("-")[0]
    label = "ADVP" if label == "PRT" else label
    return children if label in deleted or not children else [Tree(label, children)]


def brackets_of(parts):
    """The multiset of brackets ``(label, start, end)``, the words and the tags."""
    brackets, words, tags = Counter(), [], []

    def walk(tree):
        start = len(words)
        if tree.is_preterminal:
            tags.append(tree.label)
            words.append(tree.children[0].label)
            return
        for child in tree.children:
            walk(child)
        brackets[tree.label, start, len(words)] += 1

    for part in parts:
        walk(part)
    return brackets, words, tags


def twin(gold, test, rules):
    (wanted, words, tags), (found, other_words, other_tags) = (
        brackets_of(pruned(tree, rules.deleted)) for tree in (gold, test)
    )
    if not other_words:
        return SKIPPED
    if words != other_words:
        return ERROR
    if not rules.labelled:
        wanted, found = (
            sum((Counter({key[1:]: count}) for key, count in side.items()), Counter()) for side in (wanted, found)
        )

    def cross(one, other):
        (start, end), (first, last) = one[-2:], other[-2:]
        return first < start < last < end or start < first < end < last

    crossing = sum(count for key, count in found.items() if any(cross(key, other) for other in wanted))
    same_tags = sum({left, right} in ({left}, {"ADVP", "PRT"}) for left, right in zip(tags, other_tags))
    sums = (sum(side.values()) for side in (wanted & found, wanted, found))
    return (*sums, crossing, len(words), same_tags)


_LABELS = st.sampled_from(["S", "NP", "NP-SBJ", "ADVP", "PRT", "VP=2", "TOP", "-NONE-"])
_TREES = trees(st.just("w"), _LABELS | st.sampled_from([",", ".", "-NONE-", "NN"]), max_words=7)
_RULES = [COLLINS, WITH_PUNCTUATION, Parameters(labelled=False)]


@given(_TREES, _TREES, st.sampled_from(_RULES))
def test_counts_equal_the_obvious_ones(gold, test, rules):
    for one, other in product((gold, test), repeat=2):
        if one.is_preterminal or other.is_preterminal:
            continue  # without a bracket
        score = compare((one,), (other,), rules)
        assert (score[1:] if score.status == VALID else score.status) == twin(one, other, rules)


def test_figures_of_many_sums_at_once():
    generator = np.random.default_rng(5)
    table = counts(
        [compared("(S (NP (NN a)) (VP (VB b)))", "(S (X (NN a)) (VP (VB b)))"), compared("(S (A a))", "(S (A a))")]
    )
    sums = generator.integers(0, 4, (6, 2)) @ table
    together = figures(sums)
    for row, sum_ in enumerate(sums):
        assert {name: values[row] for name, values in together.items()} == pytest.approx(figures(sum_))
