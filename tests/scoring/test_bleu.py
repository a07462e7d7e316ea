"""BLEU in its readings, compared with its equations; chrF and TER."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tree_fairseq.scoring.bleu import Side, bleu_by_bounds, corpus_score, paired_bootstrap, split_compounds
from tree_fairseq.scoring.breakdowns import by_bounds

REFERENCES = [
    "the old man saw a small boat on the lake .",
    "two children play with a red ball in the park .",
    "a dog runs over the green grass .",
    "a woman with a well-known hat reads a book .",
] * 5
CLOSE = [line.replace("red", "blue") for line in REFERENCES]
FAR = [line.replace("a ", "the ").replace("with", "and") for line in REFERENCES]


def ngrams(line, order):
    tokens = line.split()
    return Counter(tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1))


def bleu_written_out(hypotheses, references):
    """Computes the equations of Papineni et al. (2002); every order must match somewhere."""
    precisions = []
    for order in range(1, 5):
        matched = total = 0
        for hypothesis, reference in zip(hypotheses, references):
            found, wanted = ngrams(hypothesis, order), ngrams(reference, order)
            matched += sum(min(count, wanted[gram]) for gram, count in found.items())
            total += sum(found.values())
        precisions.append(matched / total)
    length = sum(len(line.split()) for line in hypotheses)
    wanted = sum(len(line.split()) for line in references)
    penalty = 1 if length > wanted else math.exp(1 - wanted / length)
    return 100 * penalty * math.exp(sum(map(math.log, precisions)) / 4)


def test_tokenised_bleu_equals_the_equations():
    side = Side("tokenized_bleu", REFERENCES, tokenize="none")
    for hypotheses in (CLOSE, FAR, [line.rsplit(" ", 2)[0] for line in REFERENCES]):
        score, signature = corpus_score(side, hypotheses)
        assert score == pytest.approx(bleu_written_out(hypotheses, REFERENCES), abs=1e-9)
    assert "tok:none" in signature and "version:" in signature


def test_case_counts_without_lowercase():
    upper = [line.capitalize() for line in REFERENCES]
    assert corpus_score(Side("sacrebleu", upper), REFERENCES)[0] < 100
    score, signature = corpus_score(Side("sacrebleu", upper, lowercase=True), REFERENCES)
    assert score == pytest.approx(100) and "case:lc" in signature and "tok:13a" in signature


def test_compounds_become_three_tokens():
    assert split_compounds("a well-known re-use - x-y-z -") == (
        "a well ##AT##-##AT## known re ##AT##-##AT## use - x ##AT##-##AT## y ##AT##-##AT## z -"
    )


@settings(deadline=None)
@given(st.lists(st.integers(0, 60)), st.lists(st.integers(1, 50), max_size=5))
def test_buckets_partition_the_sentences(lengths, bounds):
    buckets = by_bounds(lengths, bounds, lambda indices: {"indices": indices})
    assert sorted(index for row in buckets for index in row["indices"]) == list(range(len(lengths)))
    for row in buckets:
        low, high, indices = row["from"], row["to"], row["indices"]
        assert indices and len(indices) == row["sentences"]
        assert all(low <= lengths[index] and (high is None or lengths[index] <= high) for index in indices)


def test_bleu_by_bounds_scores_each_part_alone():
    side = Side("sacrebleu", REFERENCES, tokenize="none")
    lengths = [len(line.split()) for line in REFERENCES]
    rows = bleu_by_bounds(side, FAR, lengths, bounds=[8, 10])
    assert [row["sentences"] for row in rows] == [5, 5, 10]
    assert [(row["from"], row["to"]) for row in rows] == [(0, 8), (9, 10), (11, None)]
    longest = [index for index, length in enumerate(lengths) if length > 10]
    expected = bleu_written_out([FAR[index] for index in longest], [REFERENCES[index] for index in longest])
    assert rows[2]["bleu"] == pytest.approx(expected)


def test_bootstrap_distinguishes_a_difference_from_chance():
    side = Side("sacrebleu", REFERENCES)
    better = paired_bootstrap(side, FAR, CLOSE, samples=200)
    assert better["difference"] == pytest.approx(corpus_score(side, CLOSE)[0] - corpus_score(side, FAR)[0])
    assert better["p_value"] < 0.05
    low, high = better["system_interval"]
    assert low < better["system_score"] < high
    assert "bs:200" in better["signature"] and "seed:" in better["signature"]
    swapped = paired_bootstrap(side, CLOSE, FAR, samples=200)
    assert swapped["difference"] == pytest.approx(-better["difference"])
    one_word = [CLOSE[0].replace("old", "aged"), *CLOSE[1:]]
    assert paired_bootstrap(side, CLOSE, one_word, samples=200)["p_value"] > 0.05


def test_translation_edit_rate_counts_words_that_differ():
    side = Side("ter", REFERENCES, score="ter")
    words = sum(len(line.split()) for line in REFERENCES)
    changed = sum(a != b for line, other in zip(REFERENCES, CLOSE) for a, b in zip(line.split(), other.split()))
    score, signature = corpus_score(side, CLOSE)
    assert score == pytest.approx(100 * changed / words) and "version:" in signature


def test_chrf_is_of_characters():
    side = Side("chrf", REFERENCES, score="chrf")
    assert corpus_score(side, REFERENCES)[0] == pytest.approx(100)
    near = corpus_score(side, [line.replace("lake", "lakes") for line in REFERENCES])[0]
    far = corpus_score(side, [line.replace("lake", "mountain") for line in REFERENCES])[0]
    assert 100 > near > far
