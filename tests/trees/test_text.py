"""Lines and tokens compared with fairseq's own."""

from __future__ import annotations

import gzip
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tree_fairseq.errors import FaultyLinesError, LineBreakError, TextFormatError
from tree_fairseq.trees.text import character_name, inspect_text, read_lines, tokens

fairseq_tokenizer = pytest.importorskip("fairseq.tokenizer", reason="the reference tokenizer is fairseq's")


@given(st.text())
@settings(deadline=None)
def test_tokens_are_fairseqs_on_any_line(line):
    assert tokens(line) == fairseq_tokenizer.tokenize_line(line)


def test_tokens_are_fairseqs_beside_every_character():
    for codepoint in range(sys.maxunicode + 1):
        line = f"a{chr(codepoint)}b"
        if len(tokens(line)) != 1 or chr(codepoint).isspace():
            assert tokens(line) == fairseq_tokenizer.tokenize_line(line) == ["a", "b"], hex(codepoint)


def write(path, content: bytes):
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"a b\n", ["a b"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", ["a", "\ufeffb"]),
        (b"a\nb", ["a", "b"]),
        (b"a\n\n b \n", ["a", "", " b "]),
        (b"a\r\n\r\nb\r\n", ["a", "", "b"]),
        (b"a\r\nb\r", ["a", "b"]),
        (b"\n", [""]),
        ("über 日本\n".encode(), ["über 日本"]),
    ],
)
def test_lines_keep_their_slots(tmp_path, content, lines):
    path = write(tmp_path / "text", content)
    assert list(read_lines(path)) == lines


_LINES = st.lists(st.text(st.characters(codec="utf-8")), max_size=5)


@given(_LINES, st.booleans())
@settings(deadline=None, max_examples=200)
def test_any_file_gives_its_lines_or_a_typed_error(tmp_path_factory, lines, ends_with_newline):
    content = "\n".join(lines) + ("\n" if ends_with_newline else "")
    path = write(tmp_path_factory.mktemp("text") / "text", content.encode())
    expected = [line.removesuffix("\r") for line in content.removeprefix("\ufeff").split("\n")]
    if expected[-1] == "" and not content.split("\n")[-1]:
        expected.pop()
    breaks = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
    faulty = [number for number, line in enumerate(expected, start=1) if set(line) & set(breaks)]
    if not faulty:
        assert list(read_lines(path)) == expected
        # str.splitlines finds the same lines in an accepted file.
        assert all(len(line.splitlines()) <= 1 for line in expected)
    else:
        with pytest.raises((LineBreakError, FaultyLinesError)) as caught:
            list(read_lines(path))
        assert [error.line for error in getattr(caught.value, "errors", [caught.value])] == faulty[:10]


def test_bad_utf8_is_placed(tmp_path):
    path = write(tmp_path / "text", "gut\nün".encode() + b"\xff\n")
    for read in (lambda path: list(read_lines(path)), inspect_text):
        with pytest.raises(TextFormatError, match="0xff.*iconv") as caught:
            read(path)
        assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), 2, 3)
    path.write_bytes(gzip.compress(b"gut"))
    with pytest.raises((TextFormatError, FaultyLinesError), match="text:1:2: .* gunzip"):
        inspect_text(path)


def test_characters_are_named():
    assert character_name("\xa0") == "U+00A0 NO-BREAK SPACE"
    assert character_name("\r") == "U+000D CARRIAGE RETURN"
    assert character_name("\x00") == "U+0000"
