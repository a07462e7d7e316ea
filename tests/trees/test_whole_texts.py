"""Whole text files: line counts, chunks and digests against slow readings, and every odd line break is refused."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data_bin.corpora import write_lines
from tree_fairseq.errors import InputError
from tree_fairseq.support.files import file_sha256
from tree_fairseq.trees.text import inspect_text, read_lines

texts = st.lists(st.sampled_from([b"", b"a", b"b c", "über ".encode(), b"\r", b"\n", b"\n\n", b"x" * 30])).map(b"".join)


@settings(deadline=None, max_examples=200)
@given(texts, st.integers(1, 4), st.integers(1, 9))
def test_against_reading_line_by_line(tmp_path_factory, content, chunk_lines, block):
    path = tmp_path_factory.mktemp("inputs") / "text"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tree_fairseq.trees.text.CHUNK_LINES", chunk_lines)
        patch.setattr("tree_fairseq.trees.text._BLOCK", block)
        try:
            lines = list(read_lines(path))
        except InputError as error:
            with pytest.raises(InputError) as caught:
                inspect_text(path)
            assert str(caught.value) == str(error)
            return
        text = inspect_text(path)
    assert text.lines == len(lines)
    assert text.size == len(content)
    assert text.sha256 == hashlib.sha256(content).hexdigest() == file_sha256(path)
    read = []
    for chunk in text.chunks:
        assert chunk.first_line == len(read) + 1
        part = content[chunk.start : chunk.end].decode().removesuffix("\n").split("\n")
        assert 1 <= len(part) <= chunk_lines
        read += [line.removesuffix("\r") for line in part]
    assert read == lines
    assert all(len(content[chunk.start : chunk.end].split(b"\n")) > chunk_lines for chunk in text.chunks[:-1])


@pytest.mark.parametrize("character", "\u2027\x1fà\x84…'\t\xa0\u3000")
def test_their_neighbours_are_no_line_breaks(tmp_path, character):
    assert inspect_text(write_lines(tmp_path / "text", [f"a{character}b"])).lines == 1


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="train.en"):
        inspect_text(tmp_path / "train.en")
