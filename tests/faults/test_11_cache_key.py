"""Fault 11: another parser, version, model or option in the cache is never taken for this one."""

from __future__ import annotations

import importlib.metadata

import pytest

from tests.parsing.conftest import parse_log, toy_lines, write_text  # noqa: F401 (a fixture)
from tests.parsing.fake_parsers import noted
from tree_fairseq.parsing.corpus import parse_corpus
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions

pytest.importorskip("stanza", reason="Stanza is not installed")


def models(folder, **contents):
    folder.mkdir(exist_ok=True)
    for name in ("constituency", "tagger", "pretrain", "tokenizer"):
        (folder / f"{name}.pt").write_text(contents.get(name, name))
    return str(folder)


def key(**options):
    """The key of a parser; models are hashed and not loaded, so their files may hold anything."""
    return LineParser(ParserOptions(name="stanza", **options)).cache_key()


def test_another_version_or_language_is_another_parser(tmp_path, monkeypatch):
    folder = models(tmp_path / "a")
    keys = {
        key(parser_dir=folder),
        key(parser_dir=folder, lang="de"),
        key(parser_dir=folder, tokenize="stanza"),
        key(parser_dir=folder, tokenize="stanza", ssplit="punct"),
    }
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.0")
    keys.add(key(parser_dir=folder))
    assert len(keys) == 5


def test_what_changes_no_tree_changes_no_key(tmp_path):
    folder = models(tmp_path / "a")
    same = {"batch_size": 3, "max_parse_failures": 9, "on_parse_error": "stop", "device": "cpu", "ssplit": "punct"}
    assert (
        len({key(parser_dir=folder), *(key(parser_dir=folder, **{name: value}) for name, value in same.items())}) == 1
    )


def test_a_corpus_is_parsed_again_by_another_version(tmp_path, parse_log, monkeypatch):
    text = write_text(tmp_path / "text", toy_lines(40))

    def run():
        parse_log.unlink(missing_ok=True)
        parse_corpus(text, tmp_path / "out", ParserOptions(name="toy"), cache=tmp_path / "cache")
        return len(noted(parse_log))

    first = run()
    assert first > 20 and run() == 0
    monkeypatch.setenv("TOY_VERSION", "2")
    assert run() == first
    monkeypatch.setenv("TOY_VERSION", "1")
    # The shards were of version 2, the cache still has both.
    assert run() == 0
