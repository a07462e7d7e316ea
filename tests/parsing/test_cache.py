"""The cache of parses: keys follow content, several processes write at once, and a kill leaves it intact."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sqlite3
import time

import pytest

from tree_fairseq.errors import CorruptFileError, DataFolderError, DiskFullError
from tree_fairseq.parsing.cache import FILE_NAME, ParseCache, ParseKeys

KEYS = ParseKeys({"name": "toy", "version": 1}, "words")


def test_stored_values_are_found(tmp_path):
    with ParseCache(tmp_path / "deep" / "folder") as cache:
        cache.put_many({KEYS.key("a"): "(X a)", KEYS.key("b"): "(X b)"})
        assert cache.get_many([KEYS.key("a"), KEYS.key("c"), KEYS.key("a")]) == {KEYS.key("a"): "(X a)"}
    with ParseCache(tmp_path / "deep" / "folder") as cache:
        assert cache.get_many([KEYS.key("b")]) == {KEYS.key("b"): "(X b)"}


def test_many_keys_are_read_at_once(tmp_path):
    values = {KEYS.key(str(number)): f"(X {number})" for number in range(2345)}
    with ParseCache(tmp_path) as cache:
        cache.put_many(values)
        assert cache.get_many([*values, KEYS.key("other")]) == values
        assert cache.get_many([]) == {}


def test_keys_depend_on_everything_that_determines_a_tree():
    others = [
        ParseKeys({"name": "toy", "version": 2}, "words"),
        ParseKeys({"name": "other", "version": 1}, "words"),
        ParseKeys({"name": "toy", "version": 1, "lang": "de"}, "words"),
        ParseKeys({"name": "toy", "version": 1}, "text"),
    ]
    keys = {keys.key("a b") for keys in (KEYS, *others)} | {
        KEYS.key("a  b"),
        KEYS.key("A b"),
        KEYS.key("é"),
        KEYS.key("e\u0301"),
    }
    assert len(keys) == 9
    assert ParseKeys({"version": 1, "name": "toy"}, "words").key("a b") == KEYS.key("a b")


def test_failures_are_stored_for_their_run_only(tmp_path):
    key = KEYS.key("a")
    with ParseCache(tmp_path) as cache:
        cache.put_many({key: None})
        cache.put_many({key: None}, run="first")
        assert cache.get_many([key]) == {} == cache.get_many([key], run="second")
        assert cache.get_many([key], run="first") == {key: None}
        cache.put_many({key: "(X a)"})
        assert cache.get_many([key]) == {key: "(X a)"} == cache.get_many([key], run="first")
        # A later failure does not replace a tree.
        cache.put_many({key: None}, run="third")
        assert cache.get_many([key], run="third") == {key: "(X a)"}


def test_a_known_value_is_not_replaced(tmp_path):
    with ParseCache(tmp_path) as cache:
        cache.put_many({KEYS.key("a"): "first"})
        cache.put_many({KEYS.key("a"): "second"})
        assert cache.get_many([KEYS.key("a")]) == {KEYS.key("a"): "first"}


def test_facts_are_stored(tmp_path):
    with ParseCache(tmp_path) as cache:
        assert cache.get_fact("x") is None
        cache.put_fact("x", "1")
        cache.put_fact("x", "2")
        assert cache.get_fact("x") == "2"


@pytest.mark.parametrize(
    "content", [b"this is not a database, but it is long enough", b"SQLite format 3\x00" + bytes(200)]
)
def test_the_message_names_a_damaged_file(tmp_path, content):
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(CorruptFileError, match="delete it"):
        ParseCache(tmp_path)


def test_the_message_names_a_folder_that_is_not_writable(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataFolderError, match="--parse-cache|folder"):
        ParseCache(tmp_path / "file" / "cache")


def test_a_full_disk_is_reported_and_leaves_no_partial_batch(tmp_path):
    with ParseCache(tmp_path) as cache:
        cache.put_many({KEYS.key("a"): "(X a)"})
        # sqlite's own limit has the same effect as a full disk.
        pages = cache._connection.execute("PRAGMA page_count").fetchone()[0]
        cache._connection.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(DiskFullError, match="no room"):
            cache.put_many({KEYS.key(str(number)): "x" * 1000 for number in range(100)})
        cache._connection.execute("PRAGMA max_page_count=100000")
        assert cache.get_many([KEYS.key("0"), KEYS.key("a")]) == {KEYS.key("a"): "(X a)"}
        cache.put_many({KEYS.key("0"): "(X 0)"})


def _write(folder, first, barrier):
    barrier.wait()
    with ParseCache(folder) as cache:
        for number in range(first, first + 60):
            cache.put_many({KEYS.key(f"{number}.{part}"): f"(X {number})" for part in range(3)})


def test_processes_write_at_the_same_time(tmp_path):
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(4)
    writers = [context.Process(target=_write, args=(tmp_path, 40 * index, barrier)) for index in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    with ParseCache(tmp_path) as cache:
        assert len(cache.get_many(KEYS.key(f"{number}.{part}") for number in range(180) for part in range(3))) == 540


def _write_forever(folder):
    with ParseCache(folder) as cache:
        number = 0
        while True:
            cache.put_many({KEYS.key(f"{number}.{part}"): "x" * 200 for part in range(20)})
            number += 1


@pytest.mark.parametrize("moment", [0.01, 0.03, 0.08, 0.2])
def test_a_killed_writer_leaves_complete_batches(tmp_path, moment):
    context = multiprocessing.get_context("fork")
    with ParseCache(tmp_path):
        pass
    writer = context.Process(target=_write_forever, args=(tmp_path,))
    writer.start()
    time.sleep(moment)
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    with ParseCache(tmp_path) as cache:
        assert cache._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        found = [len(cache.get_many(KEYS.key(f"{number}.{part}") for part in range(20))) for number in range(400)]
    assert set(found) <= {0, 20} and found == sorted(found, reverse=True)


def test_the_file_is_an_ordinary_database(tmp_path):
    with ParseCache(tmp_path) as cache:
        cache.put_many({KEYS.key("a"): "(X a)"})
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        assert json.dumps(connection.execute("SELECT value FROM parses").fetchall()) == '[["(X a)"]]'
