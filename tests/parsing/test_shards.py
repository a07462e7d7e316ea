"""Files that are whole or not there, and a folder that knows what it is made from."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from tree_fairseq.errors import CorruptFileError, DiskFullError
from tree_fairseq.parsing import shards
from tree_fairseq.parsing.shards import ShardFolder, atomic_file, cut, file_digest, join_shards, read_json, write_json


def test_a_file_gets_its_name_when_it_is_complete(tmp_path):
    path = tmp_path / "x"
    with atomic_file(path) as file:
        file.write(b"abc")
        assert not path.exists()
    assert path.read_bytes() == b"abc" and os.listdir(tmp_path) == ["x"]
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError):
        with atomic_file(path) as file:
            file.write(b"new")
            raise RuntimeError
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named(tmp_path, monkeypatch, code):
    def full(descriptor):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(shards.os, "fsync", full)
    with pytest.raises(DiskFullError, match=str(tmp_path / "x")):
        with atomic_file(tmp_path / "x") as file:
            file.write(b"abc")
    assert os.listdir(tmp_path) == []


def test_json_that_is_none_is_none(tmp_path):
    write_json(tmp_path / "a", {"b": ["é"]})
    assert read_json(tmp_path / "a") == {"b": ["é"]}
    (tmp_path / "a").write_bytes(b'{"b": [')
    assert read_json(tmp_path / "a") is None is read_json(tmp_path / "missing")


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
