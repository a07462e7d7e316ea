"""Aligned files: reading, filtering, sampling, writing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preprocess import corpora

PAIRS = st.lists(st.tuples(st.text("ab ", max_size=6), st.text("xy ", max_size=6)), max_size=30)


def test_lines_end_at_newline_only(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("a\u2028b\r\nc\x0cd\u00a0e\rf\n".encode())
    assert list(corpora.read_lines(path)) == ["a b", "c d e f"]


def test_other_encodings_are_refused_with_the_file_name(tmp_path):
    path = tmp_path / "latin"
    path.write_bytes(b"caf\xe9\n")
    with pytest.raises(corpora.CorpusError, match="latin:1: not UTF-8"):
        list(corpora.read_lines(path))


def test_shorter_side_is_named(tmp_path):
    (tmp_path / "a").write_text("1\n2\n3\n")
    (tmp_path / "b").write_text("1\n2\n")
    with pytest.raises(corpora.CorpusError, match=r"/b ends before line 3 of .*/a"):
        list(corpora.read_pairs(tmp_path / "a", tmp_path / "b"))


@given(st.text())
def test_clean_line_has_the_tokens_of_str_split(text):
    assert corpora.clean_line(text).split(" ") == (text.split() or [""])


@settings(max_examples=50, deadline=None)
@given(PAIRS, st.integers(0, 35), st.integers(0, 35))
def test_samples_are_ordered_and_nested(pairs, one, other):
    numbered = [(f"{index}", right) for index, (_, right) in enumerate(pairs)]
    small, large = (corpora.sample(numbered, size) for size in sorted((one, other)))
    assert len(large) == min(max(one, other), len(pairs))
    assert large == [pair for pair in numbered if pair in large]
    assert set(small) <= set(large)


def test_seeds_draw_differently():
    pairs = [(str(index), "") for index in range(200)]
    assert corpora.sample(pairs, 20, seed=1) == corpora.sample(pairs, 20, seed=1) != corpora.sample(pairs, 20, seed=2)


@pytest.mark.parametrize(
    ("left", "right", "kept"),
    [
        ("a b c", "a b", True),
        ("a b c d", "a b", False),
        ("", "a", False),
        ("a", "", False),
        ("a " * 9, "a " * 9, False),
    ],
)
def test_keep_pair_is_moses_rule(left, right, kept):
    assert corpora.keep_pair((left, right), minimum=1, maximum=8, ratio=1.5) is kept
    assert corpora.keep_pair((right, left), minimum=1, maximum=8, ratio=1.5) is kept


def test_interrupted_writing_leaves_no_file(tmp_path):
    def broken():
        yield "a", "b"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        corpora.write_columns(tmp_path / "train", ("en", "de"), broken())
    assert not (tmp_path / "train.en").exists()
    assert corpora.write_columns(tmp_path / "train", ("en", "de"), corpora.parallel(["a"], ["b"], ("x", "y"))) == 1
    assert (tmp_path / "train.de").read_text() == "b\n"
