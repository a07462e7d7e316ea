"""A cache of parsed sentences, for texts that share sentences: an sqlite file that several processes may use."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from tree_fairseq.errors import CorruptFileError, DataFolderError, DiskFullError

FILE_NAME = "parses.sqlite"

_BUSY_SECONDS = 120
_KEYS_PER_QUERY = 500
_TABLE = "CREATE TABLE IF NOT EXISTS parses (key BLOB PRIMARY KEY, value TEXT) WITHOUT ROWID"


class ParseCache:
    """The answers of one parser to texts, in a folder of caches of any number of parsers.

    Each call is one transaction, so a process that is killed leaves a batch as a whole or nothing of it. The journal is
    sqlite's plain one: a write-ahead log needs memory that all processes share, which network file systems lack.

    Args:
        parser: a name for all that decides the parser's answers; answers of other parsers are not found

    Raises:
        CorruptFileError: the file is damaged.
        DiskFullError: the disk is full.
        DataFolderError: the folder cannot be made or written.
    """

    def __init__(self, folder: str | os.PathLike, parser: str):
        self.path = Path(folder) / FILE_NAME
        self._prefix = hashlib.sha256(parser.encode())
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
            # A power cut may lose the last batches, which are parsed again.
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute(_TABLE)

    def get(self, texts: Iterable[str]) -> dict[str, str]:
        """Returns the known answers by text."""
        keys = {self._key(text): text for text in texts}
        wanted, found = iter(keys), {}
        with self._explained():
            while some := list(islice(wanted, _KEYS_PER_QUERY)):
                marks = ",".join("?" * len(some))
                rows = self._connection.execute(f"SELECT key, value FROM parses WHERE key IN ({marks})", some)
                found.update({keys[key]: value for key, value in rows})
        return found

    def put(self, answers: Mapping[str, str]) -> None:
        """Keeps answers by text, all or none of them; a known answer is not replaced."""
        rows = [(self._key(text), answer) for text, answer in answers.items()]
        with self._explained(), self._connection:
            # IMMEDIATE takes the write lock at once, so that waiting for it cannot fail halfway.
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR IGNORE INTO parses VALUES (?, ?)", rows)

    def close(self) -> None:
        self._connection.close()

    def _key(self, text: str) -> bytes:
        digest = self._prefix.copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        return digest.digest()[:16]

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Replaces errors of sqlite by errors that name the file and the way out."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "full" in str(error) or "disk I/O" in str(error):
                message = f"no room left for the parse cache {self.path} ({error})"
                raise DiskFullError(f"{message}; make room and give the same command again") from error
            message = f"the parse cache {self.path} cannot be used: {error}; --parse-cache DIR puts it elsewhere"
            raise DataFolderError(message) from error
        except sqlite3.DatabaseError as error:
            message = f"the parse cache {self.path} is damaged ({error}); delete it, its sentences are parsed again"
            raise CorruptFileError(message) from error
        except OSError as error:
            message = f"the folder of the parse cache {self.path} cannot be made: {error.strerror}"
            raise DataFolderError(message) from error
