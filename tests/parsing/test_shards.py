"""Shards: any number of them, made in any order and by anybody, joins to the same bytes."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsing.conftest import content, toy_lines, write_text
from tests.parsing.fake_parsers import noted
from tree_fairseq.errors import CorruptFileError, DataFolderError, LeafMismatchError, TextFormatError, TreeFormatError
from tree_fairseq.parsing import corpus
from tree_fairseq.parsing.corpus import count_lines_before, parse_shard_alone, shards_of
from tree_fairseq.parsing.joining import finished_shards, join_shards
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions

# The trees of this parser depend on the sentences of the batch.
OPTIONS = ParserOptions(name="toy-batch", batch_size=4, ssplit="punct")


@pytest.fixture
def text(tmp_path, small_blocks):
    return write_text(tmp_path / "text.en", toy_lines(95))


def make(text, folder, index, count, options=OPTIONS):
    return parse_shard_alone(shards_of(text, folder, count)[index], LineParser(options))


def joined(folder):
    join_shards(finished_shards(folder), folder / "joined")
    return (folder / "joined").read_bytes()


@pytest.mark.parametrize("size", [0, 1, 100, 16 << 10, 10**6, 10**9])
def test_by_default_a_shard_is_a_block(tmp_path, size):
    with open(tmp_path / "text", "wb") as file:
        file.truncate(size)
    parts = shards_of(tmp_path / "text", tmp_path)
    starts = [shard.starts() for shard in parts]
    assert [ends[0] for ends in starts] == list(range(0, max(size, 1), parts[0].width))
    assert starts[-1][-1] == size and 16 << 10 <= parts[0].width <= 256 << 10


@settings(deadline=None, max_examples=60)
@given(
    lines=st.lists(st.integers(0, 40), max_size=40),
    ends=st.sampled_from([b"\n", b"\r\n"]),
    count=st.integers(1, 9),
    width=st.integers(1, 60),
)
def test_every_line_is_in_one_shard(tmp_path_factory, lines, ends, count, width):
    path = tmp_path_factory.mktemp("text") / "text"
    whole = [b"x" * length + ends for length in lines]
    path.write_bytes(b"".join(whole)[: -len(ends)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "_SMALLEST", width)
        patch.setattr(corpus, "_LARGEST", width)
        parts = shards_of(path, path.parent, count)
        found = [[line for block in shard.blocks() for line in block] for shard in parts]
        before = count_lines_before(path, [shard.starts()[0] for shard in parts])
    assert b"".join(line for part in found for line in part) == path.read_bytes()
    assert before == [sum(map(len, found[:index])) for index in range(count)]


def test_any_number_of_shards_in_any_order_joins_to_the_same_bytes(text, tmp_path):
    expected = None
    for count in (1, 2, 5, 40):
        folder, order = tmp_path / str(count), list(range(count))
        random.Random(count).shuffle(order)
        # Some are made twice.
        for index in order + order[:3]:
            make(text, folder, index, count)
        expected = expected or joined(folder)
        assert joined(folder) == expected
    assert expected.count(b"\n") == 95


def changed_text(text, folder):
    lines = text.read_bytes().split(b"\n")
    text.write_bytes(b"\n".join([*lines[:-3], lines[-3][::-1], *lines[-2:]]))


def damaged_trees(text, folder):
    path = folder / "2-of-3.trees"
    path.write_bytes(path.read_bytes().replace(b"(S", b"(T", 1))


def torn_marker(text, folder):
    path = folder / "2-of-3.json"
    path.write_bytes(path.read_bytes()[:50])


def lost_trees(text, folder):
    (folder / "2-of-3.trees").unlink()


@pytest.mark.parametrize("damage", [changed_text, damaged_trees, torn_marker, lost_trees])
def test_other_lines_and_damaged_files_are_parsed_again(text, tmp_path, parse_log, damage):
    write_text(text, [f"{line} end" for line in toy_lines(95)])
    for index in range(3):
        make(text, tmp_path / "out", index, 3)
    damage(text, tmp_path / "out")
    parse_log.unlink()
    make(text, tmp_path / "out", 0, 3)
    assert not parse_log.exists()
    make(text, tmp_path / "out", 2, 3)
    assert noted(parse_log)
    for index in range(3):
        make(text, tmp_path / "new", index, 3)
    assert joined(tmp_path / "out") == joined(tmp_path / "new")


def test_another_parser_makes_its_own(text, tmp_path):
    make(text, tmp_path / "out", 0, 1)
    other = make(text, tmp_path / "out", 0, 1, OPTIONS.replace(ssplit="none"))
    assert content(finished_shards(tmp_path / "out")).count(b"(S") == other.sentences


def test_missing_shards_are_listed(text, tmp_path):
    with pytest.raises(DataFolderError, match="has no finished shards.*--shard I/N"):
        finished_shards(tmp_path / "out")
    for index in (0, 3, 4):
        make(text, tmp_path / "out", index, 6)
    (tmp_path / "out" / "3-of-6.trees").unlink()
    with pytest.raises(DataFolderError, match=r"lacks shards: 1/6, 2/6, 3/6, 5/6\. Make them with --shard"):
        finished_shards(tmp_path / "out")
    make(text, tmp_path / "out", 0, 1)
    assert [path.name for path, _ in finished_shards(tmp_path / "out")] == ["0-of-1.trees"]


def test_shards_that_do_not_belong_together_are_not_joined(text, tmp_path):
    make(text, tmp_path / "out", 0, 2)
    make(text, tmp_path / "out", 1, 2, OPTIONS.replace(ssplit="none"))
    with pytest.raises(DataFolderError, match="not of one text and one parser"):
        finished_shards(tmp_path / "out")


def test_a_shard_that_was_changed_is_not_joined(text, tmp_path):
    for index in range(3):
        make(text, tmp_path / "out", index, 3)
    damaged_trees(text, tmp_path / "out")
    with pytest.raises(CorruptFileError, match=r"2-of-3.trees is not what was written"):
        joined(tmp_path / "out")
    assert not (tmp_path / "out" / "joined").exists()


def test_errors_and_reports_count_lines(tmp_path, small_blocks):
    lines = [f"(S (NN w{number}))" for number in range(60)]
    lines[50] = "(S (NN a)"
    text = write_text(tmp_path / "text", lines)
    with pytest.raises(TreeFormatError, match="text:51:1: "):
        make(text, tmp_path / "out", 3, 4, ParserOptions(name="brackets"))
    report = make(text, tmp_path / "out", 3, 4, ParserOptions(name="brackets", on_parse_error="flat"))
    before = count_lines_before(text, shards_of(text, tmp_path, 4)[3].starts()[:1])[0]
    assert report.failures == [(51 - before, "1 bracket is never closed, the first of them opened here")]
    assert before + report.lines == 60
    assert json.loads((tmp_path / "out" / "3-of-4.json").read_text())["lines"] == report.lines
    text.write_bytes(text.read_bytes().replace(b"w40", b"w\xff0"))
    with pytest.raises(TextFormatError, match="text:41:9"):
        make(text, tmp_path / "out", 2, 4, ParserOptions(name="brackets"))
    words = write_text(tmp_path / "words", [f"w{number} of it" for number in range(50)] + ["a NONE", "b"])
    with pytest.raises(LeafMismatchError, match="words:51: "):
        make(words, tmp_path / "words.out", 3, 4, ParserOptions(name="faulty", on_parse_error="stop"))
