"""The keys that a run has met, on the disk: a corpus has more of them than fit into memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from tree_fairseq.errors import DiskFullError

_KEYS_PER_QUERY = 500


class SeenKeys:
    """A set of keys of the parse cache, in a temporary file that has no name and ends with this process.

    It takes some 25 bytes a key there. Its memory is that of sqlite's page cache, two megabytes.
    """

    def __init__(self) -> None:
        # sqlite makes a file for the database without a name when its page cache is full, and unlinks it at once.
        self._connection = sqlite3.connect("", isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=OFF")
        self._connection.execute("CREATE TABLE seen (key BLOB PRIMARY KEY) WITHOUT ROWID")

    def add(self, keys: Sequence[bytes]) -> set[bytes]:
        """Adds keys and returns those that are new; raises DiskFullError if there is no room for them."""
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
