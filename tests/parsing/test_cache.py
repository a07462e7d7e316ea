"""The cache of sentences: keys follow content, several processes write at once, and a kill leaves it intact."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

import pytest

from tree_fairseq.errors import DataFolderError, DiskFullError
from tree_fairseq.parsing.batches import FILE_NAME, ParseCache


def opened(folder, parser="toy"):
    return ParseCache(folder, parser)


def test_answers_are_found_by_text_and_parser(tmp_path):
    opened(tmp_path / "deep").put({"a": "(X a)", "b": "(X b)"})
    cache = opened(tmp_path / "deep")
    assert cache.get(["a", "c", "a"]) == {"a": "(X a)"} and cache.get([]) == {}
    assert opened(tmp_path / "deep", "other").get(["a"]) == {}
    assert cache.get(["a ", "A", "e\u0301"]) == {}
    cache.put({"a": "(Y a)"})
    assert cache.get(["a"]) == {"a": "(X a)"}


@pytest.mark.parametrize("content", [b"not a database, but long enough to be one", b"SQLite format 3\0" + bytes(200)])
def test_the_message_names_a_file_or_folder_that_cannot_be_used(tmp_path, content):
    (tmp_path / FILE_NAME).write_bytes(content)
    for folder in (tmp_path, tmp_path / FILE_NAME):
        with pytest.raises(DataFolderError, match="delete it .*--parse-cache DIR"):
            opened(folder)


def test_a_full_disk_is_reported_and_leaves_no_partial_batch(tmp_path):
    cache = opened(tmp_path)
    cache.put({"a": "(X a)"})
    # sqlite's own limit has the same effect as a full disk.
    pages = cache._connection.execute("PRAGMA page_count").fetchone()[0]
    cache._connection.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(DiskFullError, match="Make room"):
        cache.put({str(number): "x" * 1000 for number in range(100)})
    cache._connection.execute("PRAGMA max_page_count=100000")
    assert cache.get(["0", "a"]) == {"a": "(X a)"}
    cache.put({"0": "(X 0)"})


def _write(folder, first, barrier):
    barrier.wait()
    cache = opened(folder)
    for number in range(first, first + 60):
        cache.put({f"{number}.{part}": f"(X {number})" for part in range(3)})


def test_processes_write_at_the_same_time(tmp_path):
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(4)
    writers = [context.Process(target=_write, args=(tmp_path, 40 * index, barrier)) for index in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    assert len(opened(tmp_path).get(f"{number}.{part}" for number in range(180) for part in range(3))) == 540


def _write_forever(folder):
    cache = opened(folder)
    number = 0
    while True:
        cache.put({f"{number}.{part}": "x" * 200 for part in range(20)})
        number += 1


@pytest.mark.parametrize("moment", [0.01, 0.03, 0.1])
def test_a_killed_writer_leaves_complete_batches(tmp_path, moment):
    opened(tmp_path)
    writer = multiprocessing.get_context("fork").Process(target=_write_forever, args=(tmp_path,))
    writer.start()
    time.sleep(moment)
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    cache = opened(tmp_path)
    assert cache._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    found = [len(cache.get(f"{number}.{part}" for part in range(20))) for number in range(400)]
    assert set(found) <= {0, 20} and found == sorted(found, reverse=True)
