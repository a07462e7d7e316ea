"""A cache of parses, by text and parser, in an sqlite file that several processes may use, and sets of its keys."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from tree_fairseq.errors import CorruptFileError, DataFolderError, DiskFullError
from tree_fairseq.support.files import require_plain_file

FILE_NAME = "parses.sqlite"

_BUSY_SECONDS = 120
_KEYS_PER_QUERY = 500
_ALWAYS_FINE = 64 << 20  # characters of the values of some keys
_TABLES = """
    CREATE TABLE IF NOT EXISTS parses (key BLOB PRIMARY KEY, value TEXT, failed_run TEXT) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
"""


class ParseKeys:
    """The keys of the trees of a parser and kind of request; any change of the parser's identity gives other keys."""

    def __init__(self, identity: Mapping[str, Any], kind: str):
        described = json.dumps([kind, identity], sort_keys=True, ensure_ascii=False)
        self.name = hashlib.sha256(described.encode()).hexdigest()
        self._prefix = hashlib.sha256(bytes.fromhex(self.name))

    def key(self, text: str) -> bytes:
        """Returns 16 bytes of sha256 over the identity and the text."""
        digest = self._prefix.copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        return digest.digest()[:16]


class ParseCache:
    """An sqlite file of parses. Each call is one transaction: a kill at any moment keeps a batch as a whole or not.

    The journal is sqlite's plain one: a write-ahead log would need memory that all processes share, which network file
    systems do not offer. CorruptFileError means that the file is damaged, or is not a cache.
    """

    def __init__(self, folder: str | os.PathLike):
        self.path = Path(folder) / FILE_NAME
        require_plain_file(self.path)
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
            # Losing the last batches to a power cut is harmless: they are parsed again.
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute("PRAGMA trusted_schema=OFF")
            if not self._has_tables():
                self._connection.executescript(_TABLES)
                self._has_tables()

    def _has_tables(self) -> bool:
        """Whether the file has both tables; a file that has anything else, such as a trigger, is not ours."""
        found = self._connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        written = {" ".join(str(sql).split()) for (sql,) in found}
        expected = {" ".join(line.replace("IF NOT EXISTS ", "").split()) for line in _TABLES.split(";")} - {""}
        if not written <= expected:
            raise sqlite3.DatabaseError("it has tables, views or triggers that are not those of a parse cache")
        return written == expected

    def get_many(self, keys: Iterable[bytes], run: str | None = None) -> dict[bytes, str | None]:
        """Returns the known values, None for texts that failed in this run; other failures will be tried again."""
        wanted = iter(dict.fromkeys(keys))
        found: dict[bytes, str | None] = {}
        with self._explained():
            size = 0
            while chunk := list(islice(wanted, _KEYS_PER_QUERY)):
                marks = ",".join("?" * len(chunk))
                known = f"key IN ({marks}) AND (value IS NOT NULL OR failed_run = ?)"
                rows = self._connection.execute(f"SELECT key, value FROM parses WHERE {known}", (*chunk, run))
                for key, value in rows:
                    text = self._text(value)
                    size += len(text or "")
                    if size > _ALWAYS_FINE and size > self.path.stat().st_size:
                        raise sqlite3.DatabaseError("its values are longer than the file")
                    found[key] = text
        return found

    def put_many(self, values: Mapping[bytes, str | None], run: str | None = None) -> None:
        """Keeps values, all or none of them. None counts as a failure of ``run`` and does not replace a value."""
        rows = [(key, value, run if value is None else None) for key, value in values.items()]
        if rows := [row for row in rows if row[1:] != (None, None)]:
            change = (
                "INSERT INTO parses VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE "
                "SET value = excluded.value, failed_run = excluded.failed_run WHERE parses.value IS NULL"
            )
            self._change(change, rows)

    def get_fact(self, name: str) -> str | None:
        """Returns the value that :meth:`put_fact` kept under a name, or None."""
        with self._explained():
            row = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
            return self._text(row[0]) if row else None

    @staticmethod
    def _text(value: object) -> str | None:
        """Refuses values of other types, which sqlite reads from some damaged files."""
        if value is None or isinstance(value, str):
            return value
        raise sqlite3.DatabaseError("a value is not text")

    def put_fact(self, name: str, value: str) -> None:
        """Keeps something small beside the parses, such as the labels that a model can give."""
        self._change("INSERT OR REPLACE INTO facts VALUES (?, ?)", [(name, value)])

    def state(self) -> tuple[int, int]:
        """Returns what changes when any process keeps something: the size and the time of the file."""
        status = os.stat(self.path)
        return status.st_size, status.st_mtime_ns

    def __enter__(self) -> ParseCache:
        return self

    def __exit__(self, *exception: object) -> None:
        self._connection.close()

    def _change(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        with self._explained(), self._connection:
            # IMMEDIATE takes the write lock at once, so that waiting for it cannot fail halfway.
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(statement, rows)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Replaces errors of sqlite by errors that name the file and the way out."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "full" in str(error):
                message = f"no room left for the parse cache {self.path}; free some and give the same command again"
                raise DiskFullError(message) from error
            if "disk I/O" in str(error):
                raise DiskFullError(
                    f"the parse cache {self.path} cannot be written ({error}), perhaps for lack of room; make some and "
                    "give the same command again, or put the cache elsewhere with --parse-cache DIR"
                ) from error
            message = f"the parse cache {self.path} cannot be used: {error}; --parse-cache DIR puts it elsewhere"
            raise DataFolderError(message) from error
        # sqlite quotes the file in some messages, also where it is not text.
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            message = f"the parse cache {self.path} is damaged ({error}); delete it, its sentences will be parsed again"
            raise CorruptFileError(message) from error
        except OSError as error:
            message = f"the folder of the parse cache {self.path} cannot be made: {error.strerror}"
            raise DataFolderError(message) from error


class SeenKeys:
    """A set of keys that a run has met: a corpus has more of them than fit into memory.

    A temporary file holds them, some 25 bytes a key. It has no name and ends with this process. The set takes as much
    memory as sqlite's page cache, two megabytes.
    """

    def __init__(self) -> None:
        # sqlite makes a file for the database without a name when its page cache is full, and unlinks it at once.
        self._connection = sqlite3.connect("", isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=OFF")
        self._connection.execute("CREATE TABLE seen (key BLOB PRIMARY KEY) WITHOUT ROWID")

    def add(self, keys: Sequence[bytes]) -> set[bytes]:
        """Adds keys and returns those that are new; raises DiskFullError if the disk is full."""
        new = set(keys)
        # Neighbours share pages.
        ordered = sorted(new)
        try:
            for first in range(0, len(ordered), _KEYS_PER_QUERY):
                some = ordered[first : first + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(some))
                new.difference_update(
                    key for (key,) in self._connection.execute(f"SELECT key FROM seen WHERE key IN ({marks})", some)
                )
            self._connection.execute("BEGIN")
            self._connection.executemany("INSERT INTO seen VALUES (?)", ((key,) for key in ordered if key in new))
            self._connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            message = f"no room left for a temporary file ({error}); the environment variable TMPDIR names its folder"
            raise DiskFullError(message) from error
        return new

    def close(self) -> None:
        """Frees the disk."""
        self._connection.close()
