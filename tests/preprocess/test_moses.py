"""Tokenising and its inverse."""

from __future__ import annotations

import io
import sys

from preprocess.moses import TokenizerOptions, main, tokenize_lines

LINES = ['He said: "It\'s (well-known)!"', "", "Fish & chips\u00a0cost\u2028$3.50."]


def tokenized(lines, **options):
    return list(tokenize_lines(lines, TokenizerOptions("en", **options)))


def test_moses_tokens_are_escaped():
    assert tokenized(LINES) == [
        "He said : &quot; It &apos;s ( well-known ) ! &quot;",
        "",
        "Fish &amp; chips cost $ 3.50 .",
    ]


def test_options():
    assert tokenized(["A well-known „Fact“"], lower=True, dashes=True, normalize=True) == [
        "a well @-@ known &quot; fact &quot;"
    ]


def test_processes_give_the_same_lines_in_order():
    lines = [f"Line number {number}, isn't it?" for number in range(50)]
    assert list(tokenize_lines(lines, TokenizerOptions("en"), workers=2)) == tokenized(lines)


def test_detokenize_inverts(monkeypatch, capsys):
    plain = "He said: It's (well-known)!"
    monkeypatch.setattr(sys, "stdin", io.StringIO(tokenized([plain])[0] + "\n"))
    main(["detokenize", "--lang", "en"])
    assert capsys.readouterr().out == plain + "\n"


def test_clean(tmp_path):
    (tmp_path / "in.en").write_text("a b\n\na b c d e f\n")
    (tmp_path / "in.de").write_text("x y\nz\nx\n")
    main(["clean", str(tmp_path / "in"), "en", "de", str(tmp_path / "out")])
    assert (tmp_path / "out.en").read_text() == "a b\n"
    assert (tmp_path / "out.de").read_text() == "x y\n"
