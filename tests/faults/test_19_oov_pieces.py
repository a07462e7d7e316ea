"""Fault 19: whatever a subword model falls back to for unknown text, every piece has its place in the tree."""

from __future__ import annotations

import io
import re

import pytest

from tree_fairseq.trees import subwords
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.text import tokens
from tree_fairseq.trees.tree import forest_leaves

CORPUS = ["the old man the boat .", "the young man sleeps on the old boat .", "a boat sleeps ."] * 20
UNKNOWN = ["zyzzyva", "日本語", "ﬁnal", "€", "🛶", "a\u0302\u0301", "(", "-LRB-", "don't", "…", "the"]
TEXTS = [
    "the old man",
    "the old zyzzyva 日本語 ﬁnal 🛶 don't boat… (sleeps)",
    "  the   boat sleeps  ",
    "a\u0302\u0301 ① ½ ",
    "🛶",
]


def forest_over(words):
    """A forest of one tree in which every second word opens a new constituent."""
    line = "(S " + "".join("(X (W w) " if place % 2 else "(W w) " for place in range(len(words)))
    tree = read_forest(line + ")" * (1 + len(words) // 2))[0]
    return (tree.map_leaves(words),)


@pytest.fixture(scope="module")
def bpe():
    learn = pytest.importorskip("subword_nmt.learn_bpe", reason="needs subword-nmt")
    apply = pytest.importorskip("subword_nmt.apply_bpe", reason="needs subword-nmt")
    codes = io.StringIO()
    learn.learn_bpe(io.StringIO("\n".join(CORPUS)), codes, 30)
    codes.seek(0)
    return apply.BPE(codes)


@pytest.fixture(scope="module", params=["words", "identity", "bytes", "across words", "bpe"])
def sentencepiece_model(request):
    """Small models of every kind; all of them meet unknown characters in the texts."""
    library = pytest.importorskip("sentencepiece", reason="needs sentencepiece")
    options = {
        "words": {"vocab_size": 60},
        "identity": {"vocab_size": 60, "normalization_rule_name": "identity"},
        "bytes": {"vocab_size": 310, "byte_fallback": True, "normalization_rule_name": "identity"},
        "across words": {"vocab_size": 100, "model_type": "bpe", "split_by_whitespace": False},
        "bpe": {"vocab_size": 45, "model_type": "bpe"},
    }[request.param]
    model = io.BytesIO()
    library.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=model,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
        **options,
    )
    return request.param, library.SentencePieceProcessor(model_proto=model.getvalue())


def test_bpe_pieces_of_unknown_words(bpe):
    pieces = [bpe.segment_tokens([word]) for word in UNKNOWN]
    assert max(map(len, pieces)) >= 7  # down to single characters
    forest = forest_over(UNKNOWN)
    split = subwords.split_words(forest, pieces)
    flat = [piece for word in pieces for piece in word]
    assert forest_leaves(split) == flat
    assert subwords.join_bpe(flat) == (UNKNOWN, pieces)
    assert subwords.join_words(split, subwords.bpe_word) == forest
    assert read_forest(write_forest(split)) == split


@pytest.mark.parametrize("text", TEXTS)
def test_sentencepiece_pieces_are_all_covered(sentencepiece_model, text):
    _, model = sentencepiece_model
    encoded = model.encode(text, return_type="offset_mapping")
    pieces = encoded["pieces"]
    spans = [found.span() for found in re.finditer(r"\w+|[^\w\s]", text)]
    forest = forest_over([text[start:end] for start, end in spans])
    aligned = subwords.align_pieces(forest, spans, encoded["offsets"], pieces)
    assert forest_leaves(aligned) == pieces
    assert read_forest(write_forest(aligned)) == aligned
    assert tokens(" ".join(pieces)) == pieces


@pytest.mark.parametrize("text", TEXTS)
def test_sentencepiece_words_are_the_words_of_the_text(sentencepiece_model, text):
    kind, model = sentencepiece_model
    pieces = model.encode(text, out_type=str)
    words, pieces_per_word = subwords.join_sentencepiece(pieces)
    assert [piece for word in pieces_per_word for piece in word] == pieces
    assert all(words) and all(len(word.split()) == 1 for word in words)
    if kind in ("identity", "bytes"):
        assert words == text.split()
    split = subwords.split_words(forest_over(words), pieces_per_word)
    assert forest_leaves(split) == pieces
    assert subwords.join_words(split, subwords.sentencepiece_word) == forest_over(words)


@pytest.mark.parametrize("sentencepiece_model", ["across words"], indirect=True)
def test_pieces_over_several_words_become_leaves_of_a_common_ancestor(sentencepiece_model):
    _, model = sentencepiece_model
    text = "the old boat sleeps on the old boat ."
    encoded = model.encode(text, return_type="offset_mapping")
    crossing = [piece for piece in encoded["pieces"] if "\u2581" in piece.strip("\u2581")]
    assert crossing
    spans = [found.span() for found in re.finditer(r"\S+", text)]
    aligned = subwords.align_pieces(forest_over(text.split()), spans, encoded["offsets"], encoded["pieces"])
    assert forest_leaves(aligned) == encoded["pieces"]
    parents = {node.children[0].label: node.label for node in aligned[0].preorder() if node.is_preterminal}
    assert {parents[piece] for piece in crossing} <= {"S", "X", "S_sub", "X_sub"}
