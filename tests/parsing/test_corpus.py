"""Whole files on one machine: all numbers of processes and interruptions give the same bytes."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.parsing.conftest import content, parse_file, toy_lines, write_text
from tests.parsing.fake_parsers import DEVICES_VARIABLE, LOADS_VARIABLE, noted
from tree_fairseq.errors import TooManyParseFailuresError, TreeFormatError
from tree_fairseq.parsing.corpus import parse_corpus, parser_labels, parsing_devices
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.tree import forest_leaves

OPTIONS = ParserOptions(name="toy-batch", batch_size=4, ssplit="punct")

pytestmark = pytest.mark.usefixtures("small_blocks")


def parse(text, folder, options=OPTIONS, workers=0, **arguments):
    return parse_file(text, folder, options, workers, **arguments)


@pytest.fixture
def text(tmp_path):
    return write_text(tmp_path / "text.en", toy_lines(95))


def test_every_line_has_its_forest(text, tmp_path):
    parsed = parse(text, tmp_path / "out", ParserOptions(name="toy", ssplit="punct"))
    lines = text.read_text(encoding="utf-8").splitlines()
    forests = content(parsed.shards).decode().split("\n")[:-1]
    assert parsed.lines == len(lines) == len(forests) == 95 and len(parsed.shards) > 5
    assert [forest_leaves(read_forest(forest)) for forest in forests] == [line.split() for line in lines]
    assert parsed.sentences == sum(len(read_forest(forest)) for forest in forests) and parsed.failed == {}
    # The slow way parses line by line.
    slow = LineParser(ParserOptions(name="toy", ssplit="punct")).parse_lines(lines)
    assert forests == [write_forest(line.forest) for line in slow]


def test_any_number_of_processes_gives_the_same_bytes(text, tmp_path, parse_log):
    expected = content(parse(text, tmp_path / "0").shards)
    once = Counter(noted(parse_log))
    for workers in (1, 3):
        assert content(parse(text, tmp_path / str(workers), workers=workers).shards) == expected
    assert Counter(noted(parse_log)) == Counter({sentence: 3 * count for sentence, count in once.items()})


def test_a_second_run_starts_no_process_and_parses_nothing(text, tmp_path, parse_log, monkeypatch):
    first = parse(text, tmp_path / "out")
    monkeypatch.setattr(ProcessPool, "stream", None)
    calls = len(noted(parse_log))
    second = parse(text, tmp_path / "out")
    assert content(first.shards) == content(second.shards)
    assert second.parsed == 0 and second.sentences == first.sentences and len(noted(parse_log)) == calls


class TestCache:
    """Sentences in a cache are not parsed again, whichever texts they are in."""

    def test_another_text_with_the_same_sentences(self, tmp_path, parse_log):
        lines = [f"sentence {number}" for number in range(95)]
        options = OPTIONS.replace(name="toy")
        first = parse(write_text(tmp_path / "first", lines), tmp_path / "1", options, cache=tmp_path / "cache")
        assert sorted(noted(parse_log)) == sorted(lines)
        folds = write_text(tmp_path / "second", [*lines[::-1], "a new line"])
        second = parse(folds, tmp_path / "2", options, workers=2, cache=tmp_path / "cache")
        assert content(second.shards).split(b"\n")[:95] == content(first.shards).split(b"\n")[94::-1]
        assert noted(parse_log)[95:] == ["a new line"]

    def test_raw_text_is_cached_by_sentence_splitting(self, tmp_path, parse_log):
        text = write_text(tmp_path / "text", ["He sleeps. She reads."])
        for turn in range(2):
            for ssplit, sentences in (("none", 1), ("punct", 2)):
                options = ParserOptions(name="toy", tokenize="stanza", ssplit=ssplit)
                parsed = parse(text, tmp_path / f"{turn}{ssplit}", options, cache=tmp_path / "cache")
                assert parsed.sentences == sentences
        assert len(noted(parse_log)) == 2

    def test_failures_are_tried_again(self, tmp_path, parse_log):
        text = write_text(tmp_path / "text", ["a b", "c NONE"])
        for folder in "xy":
            parsed = parse(text, tmp_path / folder, ParserOptions(name="faulty"), cache=tmp_path / "cache")
            assert parsed.failed == {2: 1}
        assert noted(parse_log)[-1] == "c NONE" and noted(parse_log).count("a b") == 1

    def test_cheap_parsers_have_none(self, text, tmp_path):
        parse(text, tmp_path / "out", ParserOptions(name="balanced"), cache=tmp_path / "cache")
        assert not (tmp_path / "cache").exists()


def test_files_share_a_pool_whose_processes_load_their_models_once(text, tmp_path, monkeypatch):
    monkeypatch.setenv(LOADS_VARIABLE, str(tmp_path / "loads"))
    options = ParserOptions(name="loading", batch_size=3)
    with ProcessPool(2) as pool:
        for name in ("train", "valid", "test"):
            file = write_text(tmp_path / name, [f"{name} {line}" for line in toy_lines(60)])
            parse_corpus(file, tmp_path / f"{name}.out", options, pool=pool)
        assert len(noted(tmp_path / "loads")) == len(set(noted(tmp_path / "loads"))) == 2
        # The processes name the labels of the parser, so its models are not loaded here.
        labels, tags = parser_labels(options, pool)
        assert "VP" in labels and "T3" in tags and len(noted(tmp_path / "loads")) == 2
        # With other options, the same processes load the models of another parser.
        parse_corpus(text, tmp_path / "german", options.replace(lang="de"), pool=pool)
    loads = [line.split() for line in noted(tmp_path / "loads")]
    assert [lang for lang, _, _ in loads] == ["en", "en", "de", "de"]
    processes = [{pid for _, _, pid in some} for some in (loads[:2], loads[2:])]
    assert processes[0] == processes[1] and str(os.getpid()) not in processes[0]


def test_failures_are_counted_and_not_tried_again(tmp_path, parse_log, caplog):
    lines = [f"w{index} x" for index in range(40)]
    lines[7] += " NONE"
    lines[23] = "a b . c RAISE . d"
    text = write_text(tmp_path / "text", lines)
    options = ParserOptions(name="faulty", batch_size=4, ssplit="punct", max_parse_failures=2)
    parsed = parse(text, tmp_path / "out", options)
    assert parsed.failed == {8: 1, 24: 1} and parsed.lines == 40 and parsed.sentences == 42
    assert content(parsed.shards).decode().split("\n")[7] == "(FRAG (XX w7) (XX x) (XX NONE))"
    assert "text:8: flat tree for a sentence that could not be parsed: the parser gave no tree" in caplog.text
    parse_log.unlink()
    assert parse(text, tmp_path / "out", options).failed == {8: 1, 24: 1} and noted(parse_log) == []


@pytest.mark.parametrize("ssplit", ["none", "punct"])
@pytest.mark.parametrize("limit", [1, 0, 0.02])
def test_too_many_failures_end_the_run_and_name_the_place(tmp_path, ssplit, limit):
    lines = [f"w{index} x" for index in range(40)]
    lines[7] = lines[30] = "a NONE"
    text = write_text(tmp_path / "text", lines)
    options = ParserOptions(name="faulty", max_parse_failures=limit, ssplit=ssplit)
    with pytest.raises(TooManyParseFailuresError, match=r"text: \d of 40 sentences.*Lines: 8.* in .*out: .*remove"):
        parse(text, tmp_path / "out", options)
    # With a higher limit, finished shards are not parsed again.
    assert parse(text, tmp_path / "out", options.replace(max_parse_failures=2)).failed == {8: 1, 31: 1}


@pytest.mark.parametrize("workers", [0, 2])
def test_existing_trees_are_read(tmp_path, workers):
    text = write_text(tmp_path / "text", ["(S (NN a))", "", " (S (NN b))  (S (NN -LRB-)) "] * 10)
    parsed = parse(text, tmp_path / "out", ParserOptions(name="brackets"), workers)
    assert content(parsed.shards).decode() == "(S (NN a))\n\n(S (NN b)) (S (NN -LRB-))\n" * 10
    assert parsed.sentences == 30


@pytest.mark.parametrize("workers", [0, 2])
def test_malformed_trees_end_the_run_and_name_the_place(tmp_path, workers):
    text = write_text(tmp_path / "trees.txt", ["(S (NN a))"] * 24 + ["(S (NN a)"] + ["(S (NN b))"] * 9)
    with pytest.raises(TreeFormatError, match=r"trees.txt:25:1: "):
        parse(text, tmp_path / "out", ParserOptions(name="brackets"), workers)
    flat = ParserOptions(name="brackets", on_parse_error="flat", max_parse_failures=0.1)
    parsed = parse(text, tmp_path / "out", flat, workers)
    assert parsed.failed == {25: 1} and content(parsed.shards).decode().split("\n")[24] == "(FRAG (XX a))"


@pytest.mark.parametrize("name", ["balanced", "random", "right-branching"])
def test_controls_give_the_same_trees_in_processes(tmp_path, name, text):
    options = ParserOptions(name=name)
    parsed = parse(text, tmp_path / "out", options)
    assert parsed.lines == 95 and not parsed.failed
    assert content(parsed.shards) == content(parse(text, tmp_path / "again", options, workers=2).shards)


def test_a_file_may_be_empty(tmp_path):
    parsed = parse(write_text(tmp_path / "text", []), tmp_path / "out")
    assert parsed.lines == 0 and content(parsed.shards) == b""


def test_raw_text_is_tokenised_and_parsed(tmp_path):
    text = write_text(tmp_path / "text", ["He sleeps. She reads.", "", "NONE, sorry.", "He sleeps. She reads."])
    options = ParserOptions(name="toy", tokenize="stanza", ssplit="punct", max_parse_failures=1)
    expected = "(S (NP (T2 He)) (VP (T6 sleeps) (T1 .))) (S (NP (T3 She)) (VP (T5 reads) (T1 .)))"
    for workers in (0, 2):
        parsed = parse(text, tmp_path / str(workers), options, workers)
        assert content(parsed.shards).decode() == f"{expected}\n\n(FRAG (XX NONE,) (XX sorry.))\n{expected}\n"
        assert parsed.failed == {3: 1} and parsed.sentences == 5


def test_a_parser_that_asks_for_devices_gets_one_for_each_process(text, tmp_path, monkeypatch):
    monkeypatch.setenv(LOADS_VARIABLE, str(tmp_path / "loads"))
    monkeypatch.setenv(DEVICES_VARIABLE, "gpu:4 gpu:7")
    parse(text, tmp_path / "out", ParserOptions(name="loading-on-devices", batch_size=3), workers=1)
    assert sorted(line.split()[1] for line in noted(tmp_path / "loads")) == ["gpu:4", "gpu:7"]


def test_one_process_for_each_gpu(monkeypatch):
    from tree_fairseq.parsing import stanza_parser

    monkeypatch.setattr(stanza_parser, "visible_gpus", lambda: ["cuda:0", "cuda:1", "cuda:2"])
    assert parsing_devices(ParserOptions(), 8) == ["cuda:0", "cuda:1", "cuda:2"]
    assert parsing_devices(ParserOptions(device="cpu"), 2) == ["cpu", "cpu"]
    assert parsing_devices(ParserOptions(device="cuda:1"), 2) == ["cuda:1"]
    # Other parsers get the CPU.
    assert parsing_devices(ParserOptions(name="brackets"), 2) == ["cpu"] * 2
    monkeypatch.setattr(stanza_parser, "visible_gpus", list)
    assert parsing_devices(ParserOptions(), 3) == ["cpu"] * 3
