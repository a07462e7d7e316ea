"""The flags about trees."""

from __future__ import annotations

import argparse

import pytest

from tree_fairseq.parsing.arguments import add_parser_arguments, options_from_arguments
from tree_fairseq.parsing.parsers import ParserOptions


def options(*flags):
    parser = argparse.ArgumentParser()
    add_parser_arguments(parser.add_argument_group("trees"))
    return options_from_arguments(parser.parse_args(flags))


def test_without_flags_the_defaults_hold():
    assert options() == ParserOptions()


def test_every_flag_arrives():
    flags = {
        "--tree-parser": "random",
        "--tree-lang": "de",
        "--parser-dir": "models",
        "--parser-package": "x",
        "--tree-batch-size": "7",
        "--tree-ssplit": "punct",
        "--tree-tokenize": "stanza",
        "--tree-subwords": "bpe",
        "--tree-subword-model": "codes",
        "--tree-seed": "3",
        "--on-parse-error": "stop",
        "--max-parse-failures": "5",
        "--tree-device": "cpu",
    }
    given = options(
        *(part for flag in flags.items() for part in flag), "--tree-strip-function-tags", "--tree-keep-entities"
    )
    assert given == ParserOptions(
        name="random",
        lang="de",
        parser_dir="models",
        package="x",
        batch_size=7,
        ssplit="punct",
        tokenize="stanza",
        subwords="bpe",
        subword_model="codes",
        seed=3,
        on_parse_error="stop",
        max_parse_failures=5,
        device="cpu",
        unescape_moses=False,
        strip_function_tags=True,
    )
    # No field may be forgotten: each differs from its default.
    default = ParserOptions()
    assert all(getattr(given, name) != value for name, value in default.to_json().items())


def test_a_share_stays_a_share():
    assert options("--max-parse-failures", "2%").max_parse_failures == 0.02


@pytest.mark.parametrize(
    "flags", [["--max-parse-failures", "some"], ["--tree-ssplit", "yes"], ["--on-parse-error", "skip"]]
)
def test_impossible_values_are_refused(flags):
    with pytest.raises(SystemExit):
        options(*flags)
