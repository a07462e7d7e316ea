"""The parser that asks a CoreNLP server, with a small server that speaks the same protocol."""

from __future__ import annotations

import pytest

from tests.parsing.conftest import content, parse_file, write_text
from tests.parsing.corenlp_server import running
from tree_fairseq.errors import ParserUnavailableError
from tree_fairseq.parsing import corenlp_parser
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions, build_parser
from tree_fairseq.trees.bracket import write_forest


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(corenlp_parser, "_WAITS", (0.0, 0.001, 0.001, 0.001))


@pytest.fixture
def server():
    with running() as started:
        yield started


def options(server, **more) -> ParserOptions:
    return ParserOptions(name="corenlp", corenlp_url=server.url, **more)


def written(trees) -> list[str | None]:
    return [None if tree is None else write_forest((tree,)) for tree in trees]


def test_sentences_go_in_one_request_and_keep_their_words(server):
    parser = build_parser(options(server))
    sentences = [["the", "(", "old", ")", "1/2"], ["ein", "Müller"]]
    assert written(parser.parse(sentences)) == [
        "(ROOT (S (T3 the) (T1 -LRB-) (T3 old) (T1 -RRB-) (T3 1/2)))",
        "(ROOT (S (T3 ein) (T6 Müller)))",
    ]
    ((properties, text),) = server.requests
    assert text == "the ( old ) 1/2\nein Müller"
    assert properties["tokenize.whitespace"] == properties["ssplit.eolonly"] == "true"
    assert properties["outputFormat"] == "json" and "parse" in properties["annotators"]
    assert properties["pipelineLanguage"] == "en" and properties["timeout"] == "60000"


def test_sentences_without_a_parse_and_with_other_words_fail_alone(server):
    trees = build_parser(options(server)).parse([["a"], ["b", "UNPARSED"], ["c", "OTHER"], ["d"]])
    assert [tree is None for tree in trees] == [False, True, True, False]


def test_a_batch_that_the_server_refuses_is_tried_in_halves(server):
    parser = LineParser(options(server))
    lines = parser.parse_lines(["a b", "c RAISE", "d e"])
    assert [line.failed for line in lines] == [0, 1, 0]
    assert lines[1].written == "(FRAG (XX c) (XX RAISE))" and lines[2].written == "(ROOT (S (T1 d) (T1 e)))"


def test_lines_that_become_one_sentence_are_never_mixed_up(server):
    assert len(build_parser(options(server)).parse([["a"], ["JOIN"]])) == 1  # for which the batch is halved


def test_a_busy_server_is_asked_again(server):
    server.busy = 2
    assert written(build_parser(options(server)).parse([["a"]])) == ["(ROOT (S (T1 a)))"]
    assert len(server.requests) == 3
    server.busy = 99
    with pytest.raises(ParserUnavailableError, match=r"no CoreNLP server answers .*503 loading.*Start one with"):
        build_parser(options(server)).parse([["a"]])
    assert len(server.requests) == 3 + 4


def test_nobody_at_the_address():
    nobody = ParserOptions(name="corenlp", corenlp_url="http://127.0.0.1:1")
    with pytest.raises(ParserUnavailableError, match=r"http://127.0.0.1:1 .*refused.*--corenlp-url"):
        build_parser(nobody).parse([["a"]])
    with pytest.raises(ParserUnavailableError, match="--corenlp-url localhost:9000 is not an address"):
        build_parser(nobody.replace(corenlp_url="localhost:9000"))


def test_another_kind_of_server_is_named(server, monkeypatch):
    monkeypatch.setattr("tests.parsing.corenlp_server.answer", lambda *arguments: {"hello": 1})
    with pytest.raises(ParserUnavailableError, match="is not a CoreNLP server"):
        build_parser(options(server)).parse([["a"]])


def test_a_request_that_takes_too_long_is_a_failure_of_its_sentences(server, monkeypatch):
    monkeypatch.setattr(corenlp_parser, "_GRACE", 0.05)
    monkeypatch.setattr(corenlp_parser, "SECONDS", 0.05)
    parser = build_parser(options(server))
    with pytest.raises(RuntimeError, match="gave no answer in 0.05 s"):
        parser.parse([["SLOW"]])


def test_languages_without_a_parser(server):
    with pytest.raises(ParserUnavailableError, match="no constituency parser for 'fi'; it has one for ar, de, en"):
        build_parser(options(server, lang="fi"))
    build_parser(options(server, lang="zh-hans")).parse([["a"]])
    assert server.requests[-1][0]["pipelineLanguage"] == "zh"


def test_the_identity_follows_the_version_the_properties_and_the_models(server):
    identity = build_parser(options(server)).identity()
    assert identity["version"] == "4.5.10" and identity["properties"]["pipelineLanguage"] == "en"
    # The place of the server does not matter.
    with running() as other:
        assert build_parser(options(other)).identity() == identity
        other.label = "NP"
        assert build_parser(options(other)).identity() != identity
    server.page = "no number here"
    assert build_parser(options(server)).identity()["version"] == "unknown"
    assert build_parser(options(server, lang="de")).identity() != identity


def test_raw_text_is_tokenised_by_the_server(server):
    raw = LineParser(options(server, tokenize="parser", ssplit="punct")).parse_lines(["The man (old) sleeps. He", ""])
    assert raw[0].written == (
        "(ROOT (S (T3 The) (T3 man) (T1 -LRB-) (T3 old) (T1 -RRB-) (T6 sleeps) (T1 .))) (ROOT (S (T2 He)))"
    )
    assert (raw[0].sentences, raw[1].written) == (2, "")
    (one,) = LineParser(options(server, tokenize="parser")).parse_lines(["The man. He"])
    assert one.sentences == 1 and one.forest[0].leaves() == ["The", "man", ".", "He"]


def test_a_corpus_is_parsed_by_processes(server, tmp_path):
    parsed = parse_file(write_text(tmp_path / "text", ["a b", "c", "a b"]), tmp_path / "shards", options(server), 1)
    trees = ["(ROOT (S (T1 a) (T1 b)))", "(ROOT (S (T1 c)))", "(ROOT (S (T1 a) (T1 b)))"]
    assert content(parsed.shards).decode().splitlines() == trees
    requests = [text for _, text in server.requests if "boat" not in text]
    assert sorted(line for text in requests for line in text.split("\n")) == ["a b", "c"]
