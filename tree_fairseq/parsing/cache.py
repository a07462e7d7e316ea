"""Parses by content, in an sqlite file that several processes may use at once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tree_fairseq.errors import CorruptFileError, DataFolderError, DiskFullError

FILE_NAME = "parses.sqlite"

_BUSY_SECONDS = 120
_KEYS_PER_QUERY = 500
_TABLES = """
    CREATE TABLE IF NOT EXISTS parses (key BLOB PRIMARY KEY, value TEXT, failed_run TEXT) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
"""


class ParseKeys:
    """The keys under which a parser's trees are kept.

    Args:
        identity: all that decides what the parser does with a text; any change of it gives other keys, so nothing stale is ever found.
        kind: what sort of text is asked about.
    """

    def __init__(self, identity: Mapping[str, Any], kind: str):
        self.name = hashlib.sha256(
            json.dumps([kind, identity], sort_keys=True, ensure_ascii=False).encode()
        ).hexdigest()
        self._prefix = hashlib.sha256(bytes.fromhex(self.name))

    def key(self, text: str) -> bytes:
        """16 bytes of sha256 over the identity and the text."""
        digest = self._prefix.copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        return digest.digest()[:16]


class ParseCache:
    """An sqlite file of parses.

    The journal is sqlite's plain one: a write-ahead log would need memory shared by all processes, which file systems between machines do not give.
    Each call is one transaction: after a kill at any moment a batch is there as a whole or not at all.

    Args:
        folder: where the file is kept; made if missing.

    Raises:
        CorruptFileError: the file is damaged or no such file.
        DiskFullError: (from all writing calls) no room is left.
    """

    def __init__(self, folder: str | os.PathLike):
        self.path = Path(folder) / FILE_NAME
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
            # Losing the last batches to a power cut is harmless: they are parsed again.
            self._connection.execute("PRAGMA synchronous=NORMAL")
            present = {
                name for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
            if not {"parses", "facts"} <= present:
                self._connection.executescript(_TABLES)

    def get_many(self, keys: Iterable[bytes], run: str | None = None) -> dict[bytes, str | None]:
        """The values that are known.

        Args:
            keys: of `ParseKeys`.
            run: also find what failed in this run, as None; otherwise a failure is not known and will be tried again.
        """
        wanted = list(dict.fromkeys(keys))
        found: dict[bytes, str | None] = {}
        with self._explained():
            for start in range(0, len(wanted), _KEYS_PER_QUERY):
                chunk = wanted[start : start + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(chunk))
                rows = self._connection.execute(
                    f"SELECT key, value FROM parses WHERE key IN ({marks}) AND (value IS NOT NULL OR failed_run = ?)",
                    (*chunk, run),
                )
                found.update(rows)
        return found

    def put_many(self, values: Mapping[bytes, str | None], run: str | None = None) -> None:
        """Keep values, all or none of them; a None is remembered as a failure of ``run`` and does not replace a value."""
        rows = [
            (key, value, run if value is None else None)
            for key, value in values.items()
            if value is not None or run is not None
        ]
        if not rows:
            return
        with self._explained(), self._transaction():
            self._connection.executemany(
                "INSERT INTO parses VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value, failed_run = excluded.failed_run "
                "WHERE parses.value IS NULL",
                rows,
            )

    def get_fact(self, name: str) -> str | None:
        """What was noted under ``name``."""
        with self._explained():
            row = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def put_fact(self, name: str, value: str) -> None:
        """Note something small beside the parses, such as the labels that a model can give."""
        with self._explained(), self._transaction():
            self._connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __enter__(self) -> ParseCache:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        # IMMEDIATE takes the write lock at once, so that waiting for it cannot fail halfway.
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            # sqlite has rolled back by itself after some errors, a full disk among them.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """sqlite's errors in words that help."""
        try:
            yield
        except sqlite3.OperationalError as error:
            text = str(error)
            if "full" in text:
                raise DiskFullError(
                    f"no room left for the parse cache {self.path}; free some and give the same command again"
                ) from error
            raise DataFolderError(
                f"the parse cache {self.path} cannot be used: {text}; --parse-cache DIR puts it elsewhere"
            ) from error
        except sqlite3.DatabaseError as error:
            raise CorruptFileError(
                f"the parse cache {self.path} is damaged ({error}); delete it, its sentences will be parsed again"
            ) from error
        except OSError as error:
            raise DataFolderError(
                f"the folder of the parse cache {self.path} cannot be made: {error.strerror}"
            ) from error
