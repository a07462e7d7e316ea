"""Whole files: all numbers of processes, ranks and interruptions give the same bytes; each sentence is parsed once."""

from __future__ import annotations

import os
import threading
from collections import Counter

import pytest

from tests.parsing.conftest import toy_lines, write_text
from tests.parsing.fake_parsers import DEVICES_VARIABLE, LOADS_VARIABLE, noted
from tree_fairseq.errors import LeafMismatchError, LineBreakError, TooManyParseFailuresError, TreeFormatError
from tree_fairseq.parsing import corpus
from tree_fairseq.parsing.cache import ParseCache
from tree_fairseq.parsing.corpus import devices, parse_corpus
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.tree import forest_leaves

OPTIONS = ParserOptions(name="toy-batch", batch_size=4, ssplit="punct")


def parse(text, folder, options=OPTIONS, **arguments):
    arguments = {"workers": 0, "shard_lines": 10, "progress": False, **arguments}
    return parse_corpus(text, folder, options, **arguments)


def content(summary):
    return b"".join(path.read_bytes() for path in summary.shards)


@pytest.fixture
def text(tmp_path):
    return write_text(tmp_path / "text.en", toy_lines(95))


def test_every_line_has_its_forest(text, tmp_path):
    summary = parse(text, tmp_path / "out", ParserOptions(name="toy", ssplit="punct"))
    lines = text.read_text(encoding="utf-8").splitlines()
    forests = content(summary).decode().split("\n")[:-1]
    assert summary.lines == len(lines) == len(forests) == 95 and len(summary.shards) == 10
    assert [forest_leaves(read_forest(forest)) for forest in forests] == [line.split() for line in lines]
    assert summary.sentences == sum(len(read_forest(forest)) for forest in forests) and summary.failed == []
    # The slow way parses line by line.
    slow = LineParser(ParserOptions(name="toy", ssplit="punct")).parse_lines(lines)
    assert forests == [write_forest(line.forest) for line in slow]


def test_any_number_of_processes_gives_the_same_bytes(text, tmp_path, parse_log):
    expected = content(parse(text, tmp_path / "0"))
    once = Counter(noted(parse_log))
    assert set(once.values()) == {1}
    for workers in (1, 3):
        assert content(parse(text, tmp_path / str(workers), workers=workers)) == expected
    assert set(Counter(noted(parse_log)).values()) == {3}


def test_two_ranks_share_the_work(text, tmp_path, parse_log):
    expected = content(parse(text, tmp_path / "alone"))
    parse_log.unlink()
    summaries = {}

    def run(rank):
        summaries[rank] = parse(text, tmp_path / "ranks", rank=rank, world_size=2)

    ranks = [threading.Thread(target=run, args=(rank,)) for rank in (1, 0)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    assert content(summaries[0]) == expected
    assert summaries[0].sentences > 0 and min(summaries[rank].parsed for rank in (0, 1)) > 0
    assert set(Counter(noted(parse_log)).values()) == {1}


def test_a_second_run_starts_no_process(text, tmp_path, parse_log, monkeypatch):
    first = parse(text, tmp_path / "out")
    monkeypatch.setattr(corpus, "_where_answered", None)
    calls = len(noted(parse_log))
    second = parse(text, tmp_path / "out")
    assert content(first) == content(second) and second.parsed == 0 and second.sentences == first.sentences
    assert len(noted(parse_log)) == calls


def test_new_shards_come_from_the_cache(text, tmp_path, parse_log):
    first = parse(text, tmp_path / "first", cache=tmp_path / "cache")
    calls = len(noted(parse_log))
    with ParseCache(tmp_path / "cache") as cache:
        second = parse(text, tmp_path / "second", cache=cache, workers=2)
    assert content(first) == content(second) and len(noted(parse_log)) == calls


@pytest.mark.parametrize("kind, wrong", [("pretokenized", "(S (NP (T1 a)) (VP (T1 c)))"), ("stanza", "{}")])
def test_a_cached_tree_over_other_words_is_refused(tmp_path, kind, wrong):
    options = ParserOptions(name="toy", tokenize=kind)
    text = write_text(tmp_path / "text", ["a b"])
    with ParseCache(tmp_path / "cache") as cache:
        cache.put_many({LineParser(options).parse_keys().key("a b"): wrong})
        with pytest.raises(LeafMismatchError, match="text:1: the tree in the parse cache .* delete the cache"):
            parse(text, tmp_path / "out", options, cache=cache)


def test_raw_text_is_cached_by_sentence_splitting(tmp_path, parse_log):
    text = write_text(tmp_path / "text", ["He sleeps. She reads."])
    for turn in range(2):
        for ssplit, sentences in (("none", 1), ("punct", 2)):
            options = ParserOptions(name="toy", tokenize="stanza", ssplit=ssplit)
            summary = parse(text, tmp_path / f"{turn}{ssplit}", options, cache=tmp_path / "cache")
            assert summary.sentences == sentences
    assert len(noted(parse_log)) == 2


def test_only_changed_text_is_parsed_again(text, tmp_path, parse_log):
    parse(text, tmp_path / "out", cache=tmp_path / "cache")
    parse_log.unlink()
    lines = text.read_text(encoding="utf-8").splitlines()
    write_text(text, ["a new line", *lines[1:]])
    summary = parse(text, tmp_path / "out", cache=tmp_path / "cache")
    assert noted(parse_log) == ["a new line"]
    assert content(summary).startswith(b"(S") and summary.lines == 95


def test_files_share_a_pool_whose_processes_load_their_models_once(text, tmp_path, monkeypatch):
    monkeypatch.setenv(LOADS_VARIABLE, str(tmp_path / "loads"))
    options = ParserOptions(name="loading", batch_size=3)
    with ProcessPool(2) as pool, ParseCache(tmp_path / "cache") as cache:
        for name in ("train", "valid", "test"):
            file = write_text(tmp_path / name, [f"{name} {line}" for line in toy_lines(60)])
            parse(file, tmp_path / f"{name}.out", options, pool=pool, cache=cache)
        assert len(noted(tmp_path / "loads")) == len(set(noted(tmp_path / "loads"))) == 2
        # The labels of the parser are cached, so its models are not loaded here.
        parser = LineParser(options)
        assert "VP" in parser.inventory(cache) and "T3" in parser.tags(cache)
        assert len(noted(tmp_path / "loads")) == 2
        # With other options, the same processes load the models of another parser.
        parse(text, tmp_path / "german", options.replace(lang="de"), pool=pool)
    loads = [line.split() for line in noted(tmp_path / "loads")]
    assert [lang for lang, _, _ in loads] == ["en", "en", "de", "de"]
    assert {pid for _, _, pid in loads[:2]} == {pid for _, _, pid in loads[2:]} and str(os.getpid()) not in {
        pid for _, _, pid in loads
    }


def test_models_are_not_loaded_for_their_labels_alone(text, tmp_path, monkeypatch):
    monkeypatch.setenv(LOADS_VARIABLE, str(tmp_path / "loads"))
    options = ParserOptions(name="loading")
    parse(text, tmp_path / "first", options, cache=tmp_path / "cache", workers=1)
    loads = noted(tmp_path / "loads")
    monkeypatch.setattr(LineParser, "needs_labels", lambda parser, cache: True)
    parse(text, tmp_path / "second", options, cache=tmp_path / "cache", workers=1)
    assert noted(tmp_path / "loads") == loads


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("batches", [0, 1, 3, 8])
def test_an_interrupted_run_is_continued(text, tmp_path, parse_log, monkeypatch, batches):
    expected = content(parse(text, tmp_path / "whole"))
    parse_log.unlink()
    put = ParseCache.put_many
    left = [batches]

    def failing(self, values, run=None):
        if not left[0]:
            raise Interrupted
        left[0] -= 1
        put(self, values, run)

    with monkeypatch.context() as patch:
        patch.setattr(ParseCache, "put_many", failing)
        with pytest.raises(Interrupted):
            parse(text, tmp_path / "out")
    assert content(parse(text, tmp_path / "out", workers=2)) == expected
    # Only the batch that was being stored is parsed twice.
    again = [sentence for sentence, count in Counter(noted(parse_log)).items() if count > 1]
    assert len(again) <= OPTIONS.batch_size


def test_an_interrupted_run_without_its_cache_starts_again(text, tmp_path):
    expected = content(parse(text, tmp_path / "whole"))
    parse(text, tmp_path / "out", cache=tmp_path / "cache").shards[3].unlink()
    (tmp_path / "cache" / "parses.sqlite").unlink()
    assert content(parse(text, tmp_path / "out", cache=tmp_path / "cache")) == expected


def test_failures_are_counted_and_not_tried_again(tmp_path, parse_log):
    lines = [f"w{index} x" for index in range(40)]
    lines[7] += " NONE"
    lines[23] = "a b . c RAISE . d"
    text = write_text(tmp_path / "text", lines)
    options = ParserOptions(name="faulty", batch_size=4, ssplit="punct", max_parse_failures=2)
    summary = parse(text, tmp_path / "out", options)
    assert summary.failed == [8, 24] and summary.lines == 40 and summary.sentences == 42
    assert content(summary).decode().split("\n")[7] == "(FRAG (XX w7) (XX x) (XX NONE))"
    # A continued run does not try failed sentences again; a new run does.
    parse_log.unlink()
    summary.shards[2].unlink()
    assert parse(text, tmp_path / "out", options).failed == [8, 24] and noted(parse_log) == []
    parse(text, tmp_path / "new", options, cache=tmp_path / "out" / "cache")
    assert noted(parse_log) == ["w7 x NONE"]


@pytest.mark.parametrize("ssplit", ["none", "punct"])
@pytest.mark.parametrize("limit", [1, 0, 0.02])
def test_too_many_failures_end_the_run_and_name_the_place(tmp_path, ssplit, limit):
    lines = [f"w{index} x" for index in range(40)]
    lines[7] = lines[30] = "a NONE"
    text = write_text(tmp_path / "text", lines)
    options = ParserOptions(name="faulty", max_parse_failures=limit, ssplit=ssplit)
    with pytest.raises(TooManyParseFailuresError, match=r"text: \d of 40 sentences.*Lines: 8"):
        parse(text, tmp_path / "out", options)
    # With a higher limit, existing shards are not parsed again.
    summary = parse(text, tmp_path / "out", options.replace(max_parse_failures=2))
    assert summary.failed == [8, 31]


def test_the_first_failure_ends_the_run_if_requested(tmp_path):
    text = write_text(tmp_path / "text", ["a b", "c NONE", "d"])
    with pytest.raises(LeafMismatchError, match=r"text:2: .*c NONE"):
        parse(text, tmp_path / "out", ParserOptions(name="faulty", on_parse_error="stop"))


@pytest.mark.parametrize("workers", [0, 2])
def test_existing_trees_are_read(tmp_path, workers, monkeypatch):
    monkeypatch.setattr(corpus, "_LINES_WORTH_PROCESSES", 0)
    lines = ["(S (NN a))", "", " (S (NN b))  (S (NN -LRB-)) "] * 10
    summary = parse(
        write_text(tmp_path / "text", lines), tmp_path / "out", ParserOptions(name="brackets"), workers=workers
    )
    assert content(summary).decode() == "(S (NN a))\n\n(S (NN b)) (S (NN -LRB-))\n" * 10
    assert summary.sentences == 30 and not (tmp_path / "out" / "cache").exists()


@pytest.mark.parametrize("workers", [0, 2])
def test_malformed_trees_end_the_run_and_name_the_place(tmp_path, workers, monkeypatch):
    monkeypatch.setattr(corpus, "_LINES_WORTH_PROCESSES", 0)
    text = write_text(tmp_path / "trees.txt", ["(S (NN a))"] * 24 + ["(S (NN a)"] + ["(S (NN b))"] * 9)
    with pytest.raises(TreeFormatError, match=r"trees.txt:25:1: "):
        parse(text, tmp_path / "out", ParserOptions(name="brackets"), workers=workers)
    flat = ParserOptions(name="brackets", on_parse_error="flat", max_parse_failures=0.1)
    summary = parse(text, tmp_path / "out", flat, workers=workers)
    assert summary.failed == [25] and content(summary).decode().split("\n")[24] == "(FRAG (XX a))"


@pytest.mark.parametrize("name", ["balanced", "random", "right-branching"])
def test_controls_need_no_cache(tmp_path, name, text):
    summary = parse(text, tmp_path / "out", ParserOptions(name=name, seed=4))
    assert not (tmp_path / "out" / "cache").exists() and summary.lines == 95 and summary.failed == []
    assert content(summary) == content(parse(text, tmp_path / "again", ParserOptions(name=name, seed=4), workers=2))


def test_the_message_names_a_malformed_line(tmp_path):
    text = tmp_path / "text"
    text.write_bytes("a\nb\u2028c\n".encode())
    with pytest.raises(LineBreakError, match="text:2:2"):
        parse(text, tmp_path / "out")


def test_a_file_may_be_empty(tmp_path):
    summary = parse(write_text(tmp_path / "text", []), tmp_path / "out")
    assert summary.lines == 0 and summary.shards == []


def test_raw_text_is_tokenised_and_parsed(tmp_path):
    text = write_text(tmp_path / "text", ["He sleeps. She reads.", "", "NONE, sorry.", "He sleeps. She reads."])
    options = ParserOptions(name="toy", tokenize="stanza", ssplit="punct", max_parse_failures=1)
    expected = "(S (NP (T2 He)) (VP (T6 sleeps) (T1 .))) (S (NP (T3 She)) (VP (T5 reads) (T1 .)))"
    for workers in (0, 2):
        summary = parse(text, tmp_path / str(workers), options, workers=workers)
        assert content(summary).decode() == f"{expected}\n\n(FRAG (XX NONE,) (XX sorry.))\n{expected}\n"
        assert summary.failed == [3] and summary.sentences == 5


def test_a_parser_that_asks_for_devices_gets_one_for_each_process(text, tmp_path, monkeypatch):
    monkeypatch.setenv(LOADS_VARIABLE, str(tmp_path / "loads"))
    monkeypatch.setenv(DEVICES_VARIABLE, "gpu:4 gpu:7")
    parse(text, tmp_path / "out", ParserOptions(name="loading-on-devices", batch_size=3), workers=1)
    assert sorted(line.split()[1] for line in noted(tmp_path / "loads")) == ["gpu:4", "gpu:7"]
    assert devices(ParserOptions(name="loading-on-devices", device="cpu"), 2) == ["cpu", "cpu"]
    # Other parsers get the CPU.
    assert devices(ParserOptions(name="loading"), 2) == ["cpu", "cpu"]
    assert devices(ParserOptions(name="brackets"), 2) == ["cpu", "cpu"]


def test_one_process_for_each_gpu(monkeypatch):
    from tree_fairseq.parsing import stanza_parser

    monkeypatch.setattr(stanza_parser, "visible_gpus", lambda: ["cuda:0", "cuda:1", "cuda:2"])
    assert devices(ParserOptions(), 8) == ["cuda:0", "cuda:1", "cuda:2"]
    assert devices(ParserOptions(device="cpu"), 2) == ["cpu", "cpu"]
    assert devices(ParserOptions(device="cuda:1"), 2) == ["cuda:1"]
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert devices(ParserOptions(), 8) == ["cuda:1"]
    monkeypatch.setenv("LOCAL_RANK", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "6")
    assert devices(ParserOptions(), 8) == ["cuda:1"]
    monkeypatch.setattr(stanza_parser, "visible_gpus", list)
    assert devices(ParserOptions(), 3) == ["cpu"] * 3
