"""Batches of similar length, and the recovery of batches that fail."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsing.fake_parsers import FaultyParser, ToyParser
from tree_fairseq.errors import ParserUnavailableError
from tree_fairseq.parsing.batches import Failure, parse_recovering, text_batches


@settings(deadline=None)
@given(st.lists(st.integers(1, 3000), max_size=60), st.integers(1, 20))
def test_batches_have_every_text_once_and_respect_their_limits(sizes, batch_size):
    texts = [" ".join([str(number)] * size) for number, size in enumerate(sizes)]
    batches = text_batches(texts, batch_size)
    assert sorted(text for batch in batches for text in batch) == sorted(texts)
    lengths = [[len(text.split()) for text in batch] for batch in batches]
    for batch in lengths:
        assert 1 <= len(batch) <= batch_size
        assert len(batch) == 1 or len(batch) * max(batch) <= 64 * batch_size
    # Texts are sorted by length, the longest first.
    assert sum(lengths, []) == sorted(sizes, reverse=True)


def test_equal_lengths_keep_their_order():
    assert text_batches(["a a", "b b b", "c c", "d d d"], 3) == [["b b b", "d d d", "a a"], ["c c"]]


def leaves_agree(words, tree):
    return tree.leaves() == words


def recover(sentences, parser=None):
    parser = parser or FaultyParser()
    sentences = [sentence.split() for sentence in sentences]
    results = parse_recovering(parser.parse, sentences, leaves_agree)
    reasons = {number: result.reason for number, result in enumerate(results) if isinstance(result, Failure)}
    return [None if number in reasons else result for number, result in enumerate(results)], reasons, parser


def test_a_batch_without_faults_is_parsed_once():
    trees, reasons, parser = recover(["a b", "c"])
    assert [tree.leaves() for tree in trees] == [["a", "b"], ["c"]] and not reasons
    assert len(parser.calls) == 1


@pytest.mark.parametrize("fault", ["RAISE", "NONE", "LEAVES", "DROP", "HUGE"])
@pytest.mark.parametrize("place", range(5))
def test_one_faulty_sentence_does_not_affect_the_others(fault, place):
    sentences = [f"w{index} w" for index in range(5)]
    sentences[place] += f" {fault}"
    trees, reasons, _ = recover(sentences)
    assert [index for index, tree in enumerate(trees) if tree is None] == [place] == list(reasons)
    assert all(tree.leaves() == sentence.split() for tree, sentence in zip(trees, sentences) if tree)


def test_the_reason_of_a_failure_is_returned():
    assert "out of memory" in recover(["a HUGE"])[1][0]
    assert "KeyError" in recover(["a RAISE"])[1][0]
    assert "leaves" in recover(["a LEAVES"])[1][0]
    assert "no tree" in recover(["a NONE"])[1][0]


@pytest.mark.parametrize(
    "change",
    [
        lambda trees: trees[::-1],
        lambda trees: trees[1:] + trees[:1],
        lambda trees: trees[:-1],
        lambda trees: [*trees, trees[0]],
        lambda trees: [],
    ],
    ids=["reversed", "moved", "one too few", "one too many", "none"],
)
def test_trees_in_another_order_or_number_are_not_used(change):
    class Mixing(ToyParser):
        def parse(self, sentences):
            trees = super().parse(sentences)
            return change(trees) if len(trees) > 1 else trees

    trees, reasons, _ = recover(["a", "b b", "c c c"], Mixing())
    # Alone, each sentence gets its own tree.
    assert [tree.leaves() for tree in trees] == [["a"], ["b", "b"], ["c", "c", "c"]] and not reasons


def test_a_batch_that_exceeds_memory_is_halved(caplog):
    parser = FaultyParser()
    sentences = [[f"w{index}", "MEMORY"] for index in range(8)]
    results = parse_recovering(parser.parse, sentences, leaves_agree)
    assert [tree.leaves() for tree in results] == sentences
    # 8, 4, 2, 2, 4, 2, 2 did not fit.
    assert caplog.text.count("out of memory") == 7


def test_errors_that_affect_all_sentences_are_raised():
    def unavailable(sentences):
        raise ParserUnavailableError("no model")

    with pytest.raises(ParserUnavailableError):
        parse_recovering(unavailable, [["a"], ["b"]], leaves_agree)


def test_an_empty_batch_is_not_parsed():
    assert parse_recovering(None, [], leaves_agree) == []
