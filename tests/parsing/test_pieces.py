"""Pieces are joined to words and put into trees again; models split words."""

from __future__ import annotations

import io

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from subword_nmt.learn_bpe import learn_bpe

from tree_fairseq.errors import ParserUnavailableError
from tree_fairseq.parsing.parsers import ControlParser, ParserOptions
from tree_fairseq.parsing.pieces import (
    SplitWords,
    join_pieces,
    join_text,
    load_subword_model,
    marks_of_text,
    splice_pieces,
    subword_kind,
    subword_model_hash,
)
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.subwords import join_bpe, split_words

TEXT = (
    "the old man the boats . the young man sees the old boats . a man does n't see boats . unfortunately the weather "
    "was bad .\n" * 20
)


@pytest.fixture(scope="module")
def bpe_codes(tmp_path_factory):
    path = tmp_path_factory.mktemp("bpe") / "codes"
    with open(path, "w", encoding="utf-8") as codes:
        learn_bpe(io.StringIO(TEXT), codes, 12)
    return str(path)


@pytest.fixture(scope="module")
def sentencepiece_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spm")
    (folder / "text").write_text(TEXT, encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text"),
        model_prefix=str(folder / "spm"),
        vocab_size=45,
        model_type="bpe",
        minloglevel=2,
        byte_fallback=False,
    )
    return str(folder / "spm.model")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("un@@ for@@ tunate man", "bpe"),
        ("▁un for ▁tunate", "sentencepiece"),
        ("plain text", "none"),
        ("a ▁ b", "none"),
        ("", "none"),
        ("a@@b", "none"),
    ],
)
def test_marks_show_how_a_line_is_split(line, kind):
    assert subword_kind(line.split(), ParserOptions()) == kind
    assert subword_kind(line.split(), ParserOptions(subwords="none")) == "none"


def test_pieces_are_joined_to_words():
    assert join_pieces("un@@ for@@ tunate man".split(), ParserOptions()) == SplitWords(
        ["unfortunate", "man"], [["un@@", "for@@", "tunate"], ["man"]]
    )
    assert join_pieces("▁un for ▁man".split(), ParserOptions()) == SplitWords(
        ["unfor", "man"], [["▁un", "for"], ["▁man"]]
    )
    assert join_pieces("x@@ y".split(), ParserOptions(subwords="none")) == SplitWords(["x@@", "y"], [["x@@"], ["y"]])


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b@@", "▁c", "▁", "@@", "d▁", "▁@@"]), max_size=10),
    st.sampled_from(["auto", "none", "bpe", "sentencepiece"]),
)
def test_all_pieces_are_tokens_in_their_order(tokens, kind):
    split = join_pieces(tokens, ParserOptions(subwords=kind))
    assert [piece for pieces in split.pieces for piece in pieces] == tokens
    assert len(split.words) == len(split.pieces) and all(split.words) and all(split.pieces)


def test_codes_split_words(bpe_codes):
    model = load_subword_model(bpe_codes)
    pieces = model.split(["the", "weather", "Ωψ"])
    assert ["".join(piece.replace("@@", "") for piece in word) for word in pieces] == ["the", "weather", "Ωψ"]
    assert len(pieces[1]) > 1 and pieces[2] == ["Ω@@", "ψ"]
    assert model.split_text("the weather") is None
    assert join_pieces("w@@ eather".split(), ParserOptions(), model).pieces == [["w@@", "eather"]]
    assert join_pieces(["weather"], ParserOptions(), model).pieces == [pieces[1]]


def test_sentencepiece_covers_every_word_and_character(sentencepiece_model):
    model = load_subword_model(sentencepiece_model)
    assert all(model.split(["the", "weather", "Ωψ", "\u200b"]))
    text = "the old  weather,Ω n't"
    pieces, offsets = model.split_text(text)
    assert len(pieces) == len(offsets)
    assert [start for start, _ in offsets[1:]] == [end for _, end in offsets[:-1]] and offsets[-1][1] == len(text)


@pytest.mark.parametrize("name", ["some.model", "some.codes"])
def test_the_message_names_a_missing_or_damaged_model(tmp_path, name):
    for function in (load_subword_model, subword_model_hash):
        with pytest.raises(ParserUnavailableError, match=name):
            function(str(tmp_path / name))
    (tmp_path / name).write_text("this is not a model\nof any kind\n")
    with pytest.raises(ParserUnavailableError, match=name):
        load_subword_model(str(tmp_path / name))


def test_the_hash_depends_on_the_content(bpe_codes, sentencepiece_model):
    assert subword_model_hash(None) is None
    assert subword_model_hash(bpe_codes) == subword_model_hash(bpe_codes) != subword_model_hash(sentencepiece_model)


@pytest.mark.parametrize(
    ("line", "text", "parts"),
    [
        ("the old man .", "the old man .", None),
        ("un@@ for@@ tunate man .", "unfortunate man .", ["un", "for", "tunate", "man", "."]),
        ("▁The ▁man , ▁o ld .", "The man, old.", ["The", "man", ",", "o", "ld", "."]),
        ("▁ The ▁ man", "The man", ["", "The", "", "man"]),
        ("a@@", "a", ["a"]),
    ],
)
def test_raw_text_of_a_line_in_pieces(line, text, parts):
    raw = join_text(line, ParserOptions(tokenize="stanza"))
    joined, pieces, offsets = raw.text, raw.pieces, raw.offsets
    assert joined == text
    if parts is None:
        assert pieces is None
    else:
        assert pieces == line.split()
        assert [joined[start:end] for start, end in offsets] == parts


@settings(deadline=None)
@given(st.text(alphabet="ab ,.é'", max_size=30))
def test_raw_text_is_restored_from_its_pieces(sentencepiece_model, text):
    model = sentencepiece.SentencePieceProcessor(model_file=sentencepiece_model)
    pieces = model.encode(text, out_type=str)
    # SentencePiece writes single blanks and none at the ends.
    assert join_text(" ".join(pieces), ParserOptions(subwords="sentencepiece")).text.split() == text.split()


WORDS = st.one_of(
    st.sampled_from(["(", ")", "-LRB-", "\\(", "\\-RRB-", "a", "S)", "@@", "x@@", "&apos;"]),
    st.text(alphabet="ab()\\-LRB", min_size=1, max_size=6),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(WORDS, st.lists(WORDS, min_size=1, max_size=3)), min_size=1, max_size=8), st.randoms())
def test_splicing_pieces_into_text_equals_splitting_the_tree(split, generator):
    words, pieces = [word for word, _ in split], [parts for _, parts in split]
    tree = ControlParser("random", lambda width, _: generator.randrange(1, width)).parse([words])[0]
    written = write_forest((tree,))
    assert splice_pieces(written, words, pieces) == write_forest(split_words((tree,), pieces))
    assert splice_pieces(written, words, [[word] for word in words]) == written


def test_a_tree_over_other_words_is_refused():
    written = "(S (NN dogs) (VB run))"
    for words in (["dogs", "ran"], ["dogs"], ["dogs", "run", "fast"], ["run", "dogs"]):
        assert splice_pieces(written, words, [[word] for word in words]) is None


DIFF = ["@@ -1,3 +1,4 @@ update", "end@@", "@@ x", "\u2581\u2582 bars"]


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (["un@@ for@@ tunate man", "a man", ""] * 50 + ["cut off@@", *DIFF], "bpe"),
        (["\u2581un for", "\u2581a"] * 50 + ["", *DIFF], "sentencepiece"),
        (["a man"] * 10 + DIFF, "none"),
        (DIFF, "none"),
        (["plain", ""], "none"),
    ],
)
def test_the_whole_text_says_how_it_is_split_and_stray_marks_are_named_once(lines, kind, caplog):
    assert marks_of_text(lines, "train.en").kind == kind
    has_strays = kind == "none" and len(lines) > 2
    assert len(caplog.records) == has_strays
    assert (
        not has_strays
        or f"train.en: 4 lines have marks of subwords (@@ or \u2581), line {len(lines) - 3} first" in caplog.text
    )


@settings(deadline=None)
@given(st.lists(st.text(alphabet="@-the\u2581", min_size=1, max_size=6), max_size=5))
def test_words_with_natural_marks_are_split_and_joined_again(bpe_codes, words):
    pieces = load_subword_model(bpe_codes).split_line(" ".join(words)).split()
    assert join_bpe(pieces)[0] == words
