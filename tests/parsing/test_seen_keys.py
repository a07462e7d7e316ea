"""Keys that a run has met are known again, however many there are, and their memory does not grow."""

from __future__ import annotations

import contextlib
import hashlib
import random
import sqlite3

import pytest

from tree_fairseq.errors import DiskFullError
from tree_fairseq.parsing import cache
from tree_fairseq.parsing.cache import SeenKeys


def key(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()[:16]


@pytest.mark.parametrize("keys_per_query", [1, 7, 500])
def test_only_new_keys_are_returned(monkeypatch, keys_per_query):
    monkeypatch.setattr(cache, "_KEYS_PER_QUERY", keys_per_query)
    generator, known = random.Random(1), set()
    with contextlib.closing(SeenKeys()) as seen:
        for size in (0, 1, 30, 600, 600):
            keys = [key(generator.randrange(900)) for _ in range(size)]
            assert seen.add(keys) == set(keys) - known
            known.update(keys)


def test_keys_with_zeros_at_the_end_are_different():
    with contextlib.closing(SeenKeys()) as seen:
        assert seen.add([b"a"]) == {b"a"}
        assert seen.add([b"a\0", b"a"]) == {b"a\0"}


def test_a_full_disk_is_named(monkeypatch):
    with contextlib.closing(SeenKeys()) as seen:
        seen._connection.execute("PRAGMA max_page_count=3")
        with pytest.raises(DiskFullError, match="TMPDIR") as caught:
            seen.add([key(number) for number in range(2000)])
        assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
