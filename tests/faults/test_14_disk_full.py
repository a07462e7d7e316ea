"""Fault 14: the disk is full. Nothing half-written has a final name, and the message says how many bytes are needed."""

from __future__ import annotations

import errno
import os
import re
import resource
import signal

import pytest

from tests.data_bin.corpora import folder_bytes, in_child, prefixes, run_preprocess, write_corpus
from tree_fairseq.commands import annotate
from tree_fairseq.commands.check import check_folder


def limit_file_size(size: int) -> None:
    """From here on the system refuses to let any file of this process grow beyond a size, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


BRACKETS = ("--tree-parser", "brackets")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"), train=300, valid=10)


def test_at_any_size(corpus, tmp_path):
    command = [*prefixes(corpus / "mixed", "train", "valid"), *BRACKETS]
    run_preprocess(*command, "--destdir", tmp_path / "unbroken")
    largest = max(path.stat().st_size for path in (tmp_path / "unbroken").iterdir())
    for number, size in enumerate([0, 300, 1000, 2000, 4000, 10_000, largest - 1]):
        destination = tmp_path / f"{number}"
        message = in_child(lambda: run_preprocess(*command, "--destdir", destination), lambda: limit_file_size(size))
        assert str(message).startswith("DiskFullError: "), (size, message)
        needed = int(re.search(r"about (\d+) bytes are needed", message)[1])
        assert needed > largest
        assert not destination.exists(), size
        run_preprocess(*command, "--destdir", destination)
        assert folder_bytes(destination) == folder_bytes(tmp_path / "unbroken")
        assert not (tmp_path / f"{number}.building").exists()


def test_in_a_worker_process(corpus, tmp_path):
    command = [*prefixes(corpus / "mixed", "train"), *BRACKETS, "--destdir", tmp_path / "bin"]
    message = in_child(lambda: run_preprocess(*command, "--workers", 3), lambda: limit_file_size(2000))
    assert str(message).startswith("DiskFullError: "), message
    assert not (tmp_path / "bin").exists() and not list(tmp_path.rglob("*.pt*"))


def test_when_a_file_is_synchronised(corpus, tmp_path, monkeypatch):
    """Some file systems find out only then."""

    def fail(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    command = [*prefixes(corpus / "mixed", "train"), *BRACKETS, "--destdir", tmp_path / "bin"]

    def action():
        monkeypatch.setattr("tree_fairseq.data_bin.tree_store.os.fsync", fail)
        run_preprocess(*command)

    assert str(in_child(action)).startswith("DiskFullError: no room left")
    assert not (tmp_path / "bin").exists()
    run_preprocess(*command)
    assert check_folder(tmp_path / "bin") == []


def test_adding_trees_leaves_the_folder_as_it_was(corpus, tmp_path):
    run_preprocess(*prefixes(corpus / "leaves", "train"), "--destdir", tmp_path / "bin")
    before = folder_bytes(tmp_path / "bin")
    command = [str(tmp_path / "bin"), "--tree-parser", "balanced"]

    def action():
        annotate.main.__wrapped__(command)

    assert re.search(r"about \d+ bytes are needed", in_child(action, lambda: limit_file_size(10_000)))
    assert folder_bytes(tmp_path / "bin") == before
    assert in_child(action) == 0
    assert check_folder(tmp_path / "bin") == []
