"""Tokenising."""

from __future__ import annotations

from preprocess.moses import TokenizerOptions, tokenize_lines

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
    assert tokenized(["A well-known „Fact“"], lower=True, normalize=True) == ["a well-known &quot; fact &quot;"]


def test_processes_give_the_same_lines_in_order():
    lines = [f"Line number {number}, isn't it?" for number in range(50)]
    assert list(tokenize_lines(lines, TokenizerOptions("en"), workers=2)) == tokenized(lines)
