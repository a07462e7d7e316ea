"""Options and the registry of parsers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.parsing.conftest import content, parse_file
from tree_fairseq.errors import ParserError, ParserUnavailableError
from tree_fairseq.parsing import parsers
from tree_fairseq.parsing.parsers import ParserOptions, build_parser, parser_names, registered_parser


def test_options_are_kept_in_json():
    options = ParserOptions(
        name="random", max_parse_failures=3, parser_dir="models", ssplit="punct", subword_model="codes"
    )
    assert ParserOptions.from_json(json.loads(json.dumps(options.to_json()))) == options
    share = ParserOptions(max_parse_failures=0.25)
    # A count and a share differ only in their type.
    assert isinstance(ParserOptions.from_json(json.loads(json.dumps(share.to_json()))).max_parse_failures, float)


def test_options_of_another_version_are_refused():
    with pytest.raises(ValueError, match="colour"):
        ParserOptions.from_json({**ParserOptions().to_json(), "colour": "red"})


@pytest.mark.parametrize(
    "changes", [{"ssplit": "maybe"}, {"tokenize": "moses"}, {"subwords": "morfessor"}, {"on_parse_error": "ignore"}]
)
def test_impossible_values_are_refused(changes):
    with pytest.raises(ValueError):
        ParserOptions(**changes)


def test_by_default_malformed_brackets_are_errors_and_failed_parses_are_not():
    assert ParserOptions(name="brackets").on_parse_error == "stop"
    assert ParserOptions(name="stanza").on_parse_error == "flat"
    assert ParserOptions(name="brackets", on_parse_error="flat").on_parse_error == "flat"


def test_parsers_are_found_by_name():
    assert {"stanza", "brackets", "right-branching", "balanced", "random"} <= set(parser_names())
    assert build_parser(ParserOptions(name="balanced")).identity()["name"] == "balanced"
    assert (
        not registered_parser("balanced").expensive
        and not registered_parser("brackets").expensive
        and registered_parser("stanza").expensive
    )
    assert registered_parser("balanced").factory.__module__ == "tree_fairseq.parsing.parsers"


def test_the_message_about_an_unknown_parser_names_the_known_ones():
    with pytest.raises(ParserUnavailableError, match="the parsers are balanced, benepar, brackets, corenlp, "):
        build_parser(ParserOptions(name="berkeley"))
    with pytest.raises(ParserUnavailableError, match=r"Did you mean stanza\b"):
        build_parser(ParserOptions(name="stanz"))


def test_existing_trees_have_no_parser():
    with pytest.raises(ParserError, match="read, not parsed"):
        build_parser(ParserOptions(name="brackets"))


def test_registering_a_name_again_replaces_the_parser(monkeypatch):
    monkeypatch.setattr(parsers, "_REGISTRY", dict(parsers._REGISTRY))
    parsers.register_parser("mine", expensive=False)(lambda options: "first")
    parsers.register_parser("mine")(lambda options: "second")
    assert build_parser(ParserOptions(name="mine")) == "second" and registered_parser("mine").expensive


def test_the_example_of_the_page_on_extending_works(tmp_path, monkeypatch):
    """Its module is named by --tree-parser and imported by the processes of a corpus."""
    page = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
    example = page.partition("# my_parsers.py\n")[2].partition("```")[0]
    (tmp_path / "my_parsers.py").write_text(example)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(parsers, "_REGISTRY", dict(parsers._REGISTRY))
    (tmp_path / "text").write_text("a b c\nd\n")
    for workers in (0, 1):
        options = ParserOptions(name="my_parsers:comb")
        parsed = parse_file(tmp_path / "text", tmp_path / str(workers), options, workers)
        assert content(parsed.shards).decode() == "(X (X a) (X (X b) (X c)))\n(X d)\n"
    assert (
        registered_parser("my_parsers:comb").expensive
        and registered_parser("my_parsers:comb").factory.__module__ == "my_parsers"
    )
    with pytest.raises(ParserUnavailableError, match="no parser 'cob'"):
        build_parser(ParserOptions(name="my_parsers:cob"))
    with pytest.raises(ParserUnavailableError, match="nowhere cannot be imported"):
        build_parser(ParserOptions(name="nowhere:comb"))
