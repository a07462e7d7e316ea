"""The flags about trees, and the limit of sentences that may fail."""

from __future__ import annotations

import argparse

import pytest

from tree_fairseq.errors import TooManyParseFailuresError
from tree_fairseq.parsing import parsers


def options(*flags):
    parser = argparse.ArgumentParser()
    parsers.add_parser_arguments(parser.add_argument_group("trees"))
    return parsers.options_from_arguments(parser.parse_args(flags))


def test_defaults_apply_without_flags():
    assert options() == parsers.ParserOptions()


def test_every_flag_reaches_the_options():
    given = options(*(
        "--tree-parser random --tree-lang de --parser-dir models --parser-package x --tree-batch-size 7 "
        "--tree-ssplit punct --tree-tokenize stanza --tree-subwords bpe "
        "--corenlp-url http://localhost:1 --on-parse-error stop --max-parse-failures 5 "
        "--tree-device cpu --tree-strip-function-tags --tree-tag-separators =+ --keep-empty"
    ).split())  # fmt: skip
    expected = {"name": "random", "lang": "de", "parser_dir": "models", "package": "x", "batch_size": 7}
    expected |= {"ssplit": "punct", "tokenize": "stanza", "subwords": "bpe"}
    expected |= {"corenlp_url": "http://localhost:1", "on_parse_error": "stop", "device": "cpu"}
    expected |= {"max_parse_failures": 5, "strip_function_tags": True, "tag_separators": "=+", "keep_empty": True}
    # Every field with a flag differs from its default, so none is forgotten.
    assert given.to_json() == {**expected, "subword_model": None}
    assert all(expected[name] != value for name, value in parsers.ParserOptions().to_json().items() if name in expected)


@pytest.mark.parametrize(
    "flags", [["--max-parse-failures", "some"], ["--tree-ssplit", "yes"], ["--on-parse-error", "skip"]]
)
def test_impossible_values_are_refused(flags):
    with pytest.raises(SystemExit):
        options(*flags)


@pytest.mark.parametrize(
    ("limit", "sentences", "allowed"),
    [(0, 100, 0), (3, 100, 3), (0.01, 1000, 10), (0.01, 5, 1), (0.0, 100, 0), (0.5, 3, 1), (1, 10, 1)],
)
def test_limits_as_counts_and_as_shares(limit, sentences, allowed):
    parsers.check_failures(limit, allowed, sentences, [], "x")
    with pytest.raises(TooManyParseFailuresError):
        parsers.check_failures(limit, allowed + 1, sentences, [1], "x")


def test_the_error_names_the_lines():
    with pytest.raises(TooManyParseFailuresError) as raised:
        parsers.check_failures(0.01, 30, 200, list(range(5, 35)), "train.en")
    for part in ("train.en", "30 of 200", "Lines: 5, 6, 7", "24, ...", "allows 2"):
        assert part in str(raised.value)


@pytest.mark.parametrize(("text", "limit"), [("25", 25), ("0.01", 0.01), ("1%", 0.01), ("0", 0), ("50%", 0.5)])
def test_the_flag_accepts_counts_and_shares(text, limit):
    assert parsers.parse_limit(text) == limit and type(parsers.parse_limit(text)) is type(limit)


@pytest.mark.parametrize("text", ["many", "-1", "1.5", "100%", "-3%", "nan", "inf"])
def test_other_values_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="a share such as 0.01"):
        parsers.parse_limit(text)
