"""Shards are complete or absent, and their folder records its source."""

from __future__ import annotations

import os

import pytest

from tests.parsing.conftest import write_text
from tree_fairseq.errors import CorruptFileError
from tree_fairseq.parsing.cache import ParseCache
from tree_fairseq.parsing.corpus_run import CorpusJob
from tree_fairseq.parsing.line_parser import ParsedLine
from tree_fairseq.parsing.shards import ShardFolder, join_shards


def opened(tmp_path, source=1, count=2, cache=None):
    folder = ShardFolder(tmp_path / "shards", {"input": source}, count)
    folder.open("text", cache=cache)
    return folder


def write(folder, shard, *lines, first_line=1):
    """Writes a shard of lines with a sentence each; trees labelled FRAG count as failures."""
    folder.write(shard, first_line, [ParsedLine(line, int(bool(line)), int("FRAG" in line)) for line in lines])


def test_a_damaged_report_means_that_the_shard_is_missing(tmp_path):
    folder = opened(tmp_path, count=1)
    write(folder, 0, "(X a)")
    folder.path(0).with_suffix(".json").write_bytes(b'{"lines": [')
    assert folder.missing() == [0]
    folder.path(0).with_suffix(".json").unlink()
    assert folder.missing() == [0]


def test_existing_shards_are_used_again(tmp_path):
    folder = opened(tmp_path)
    assert folder.missing() == [0, 1]
    write(folder, 1, "(FRAG a)", "", first_line=3)
    again = opened(tmp_path)
    assert again.missing() == [0] and again.run == folder.run
    (report,) = again.reports()
    assert (report.lines, report.sentences, report.failed_lines, report.failed_sentences) == (2, 1, [3], 1)
    assert again.path(1).read_bytes() == b"(FRAG a)\n\n"


def test_shards_of_another_source_are_removed(tmp_path):
    folder = opened(tmp_path)
    write(folder, 0, "(X a)")
    (folder.folder / "notes.txt").write_text("the user's")
    (folder.folder / ".000001.brackets.abc.tmp").write_text("half")
    other = opened(tmp_path, source=2)
    assert other.missing() == [0, 1] and other.run != folder.run
    assert sorted(os.listdir(folder.folder)) == ["corpus.json", "notes.txt"]


def test_a_run_without_its_cache_is_not_continued(tmp_path):
    with ParseCache(tmp_path / "known") as known, ParseCache(tmp_path / "other") as other:
        folder = opened(tmp_path, cache=known)
        write(folder, 0, "(X a)")
        assert opened(tmp_path, cache=known).missing() == [1]
        assert opened(tmp_path, cache=other).missing() == [0, 1]


def test_a_finished_run_needs_no_cache(tmp_path):
    with ParseCache(tmp_path / "known") as known, ParseCache(tmp_path / "other") as other:
        write(opened(tmp_path, count=1, cache=known), 0, "(X a)")
        assert opened(tmp_path, count=1, cache=other).missing() == []


def test_joining_checks_the_shards(tmp_path):
    folder = opened(tmp_path)
    write(folder, 0, "(X a)")
    write(folder, 1, "(X b)", "(X c)")
    paths = [folder.path(0), folder.path(1)]
    join_shards(paths, tmp_path / "joined")
    assert (tmp_path / "joined").read_text() == "(X a)\n(X b)\n(X c)\n"
    paths[1].write_text("(X b)\n")
    with pytest.raises(CorruptFileError, match="000001.brackets"):
        join_shards(paths, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_text_is_cut_into_shards(tmp_path):
    text = write_text(tmp_path / "text", list("abcde"))
    assert list(CorpusJob(text, 5, 2).blocks()) == [(0, 1, ["a", "b"]), (1, 3, ["c", "d"]), (2, 5, ["e"])]
    assert list(CorpusJob(text, 5, 5).blocks()) == [(0, 1, list("abcde"))]
    assert list(CorpusJob(write_text(tmp_path / "empty", []), 0, 2).blocks()) == []
    assert [CorpusJob(text, 5, 2, rank, 2).own_lines() for rank in (0, 1)] == [3, 2]
