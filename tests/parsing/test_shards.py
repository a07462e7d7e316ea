"""Files that are whole or not there, and a folder that knows what it is made from."""

from __future__ import annotations

import os

import pytest

from tree_fairseq.errors import CorruptFileError
from tree_fairseq.parsing.shards import ShardFolder, cut, file_digest, join_shards


def test_a_damaged_report_means_that_the_shard_is_missing(tmp_path):
    folder = opened(tmp_path, count=1)
    folder.write(0, ["(X a)"], 1, [], 0)
    folder.path(0).with_suffix(".json").write_bytes(b'{"lines": [')
    assert folder.missing() == [0]
    folder.path(0).with_suffix(".json").unlink()
    assert folder.missing() == [0]


def opened(tmp_path, source=1, count=2, known=None, rank=0):
    folder = ShardFolder(tmp_path / "shards", {"input": source}, count)
    folder.open(rank, known)
    folder.begin()
    return folder


def test_shards_are_taken_up_again(tmp_path):
    folder = opened(tmp_path)
    assert folder.missing() == [0, 1]
    folder.write(1, ["(X a)", ""], 1, [3], 1)
    again = opened(tmp_path)
    assert again.missing() == [0] and again.run == folder.run
    report = again.report(1)
    assert (report.lines, report.sentences, report.failed_lines, report.failed_sentences) == (2, 1, [3], 1)
    assert again.path(1).read_bytes() == b"(X a)\n\n"


def test_shards_of_another_source_are_removed(tmp_path):
    folder = opened(tmp_path)
    folder.write(0, ["(X a)"], 1, [], 0)
    (folder.folder / "notes.txt").write_text("the user's")
    (folder.folder / ".000001.brackets.abc.tmp").write_text("half")
    other = opened(tmp_path, source=2)
    assert other.missing() == [0, 1] and other.run != folder.run
    assert sorted(os.listdir(folder.folder)) == ["corpus.json", "notes.txt"]


def test_a_run_that_the_cache_does_not_know_is_not_continued(tmp_path):
    folder = opened(tmp_path)
    folder.write(0, ["(X a)"], 1, [], 0)
    assert opened(tmp_path, known=lambda run: run == folder.run).missing() == [1]
    assert opened(tmp_path, known=lambda run: False).missing() == [0, 1]


def test_a_finished_run_needs_no_cache(tmp_path):
    folder = opened(tmp_path, count=1)
    folder.write(0, ["(X a)"], 1, [], 0)
    assert opened(tmp_path, count=1, known=lambda run: False).missing() == []


def test_joining_checks_what_it_joins(tmp_path):
    folder = opened(tmp_path)
    folder.write(0, ["(X a)"], 1, [], 0)
    folder.write(1, ["(X b)", "(X c)"], 2, [], 0)
    paths = [folder.path(0), folder.path(1)]
    join_shards(paths, tmp_path / "joined")
    assert (tmp_path / "joined").read_text() == "(X a)\n(X b)\n(X c)\n"
    paths[1].write_text("(X b)\n")
    with pytest.raises(CorruptFileError, match="000001.brackets"):
        join_shards(paths, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_cutting_and_digests(tmp_path):
    assert list(cut("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(cut("ab", 2)) == [["a", "b"]] and list(cut("", 2)) == []
    (tmp_path / "x").write_bytes(b"abc")
    assert file_digest(tmp_path / "x").startswith("ba7816bf")
