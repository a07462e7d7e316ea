"""Runs queries that nobody has checked: the program of a child process, which imports the standard library alone.

    python -I query_sandbox.py DATABASE SECONDS MEGABYTES ROWS SHOWN

The database is copied into memory and its file closed; then the first line is written, ``{}`` or an ``error``. Each
line of the input is a query as a JSON string. For each, a JSON object is written with the number of ``rows`` and two
digests of them, ``ordered`` and ``unordered``, or with an ``error``. If SHOWN is not 0, it also has the names of the
``columns``, and so many rows as texts, ``shown``.

Queries can read the copy, and nothing else: SQLite asks :func:`authorize` before each action. The operating system
bounds memory and processor time, and lets no file be written.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import resource
import sqlite3
import sys
import time
from pathlib import Path

ALLOWED = frozenset([
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    getattr(sqlite3, "SQLITE_RECURSIVE", 33),  # Python 3.9 lacks the name
])  # fmt: skip
REFUSED_FUNCTIONS = frozenset(["load_extension", "fts3_tokenizer"])
OUT_OF_MEMORY = "out of memory"
_COLUMNS, _CHARACTERS = 20, 200  # of a row that is shown
_STEPS = 1000  # instructions of SQLite between two looks at the clock
_DIGITS = ".12g"  # of floating-point numbers, whose last digits depend on the order of additions


class LimitError(Exception):
    """A query needs more than it may have."""


def authorize(action: int, first: str | None, second: str | None, *place: str | None) -> int:
    """SQLite's question whether a statement may do something; only reading is allowed."""
    is_refused = action == sqlite3.SQLITE_FUNCTION and str(second).lower() in REFUSED_FUNCTIONS
    return sqlite3.SQLITE_OK if action in ALLOWED and not is_refused else sqlite3.SQLITE_DENY


def copy_in_memory(path: str) -> sqlite3.Connection:
    """Copies a database into memory, where it can only be read. Raises sqlite3.Error if the file is not a database."""
    # The newest rows may be in a log beside the file, which SQLite leaves alone where the file is said not to change.
    options = "mode=ro" if Path(f"{path}-wal").exists() else "mode=ro&immutable=1"
    file = sqlite3.connect(f"{Path(path).resolve().as_uri()}?{options}", uri=True)
    copy = sqlite3.connect(":memory:")
    file.backup(copy)
    file.close()
    copy.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    copy.execute("PRAGMA temp_store = MEMORY")
    copy.execute("PRAGMA query_only = ON")
    with contextlib.suppress(sqlite3.OperationalError):  # SQLite before 3.38 may lack these tables
        copy.execute("SELECT * FROM json_each('[]'), json_tree('[]')")  # makes them, which queries may not
    return copy


def limit_memory(database: sqlite3.Connection, megabytes: int) -> None:
    """Allows so much more memory than is in use now, and no file to be written."""
    (size,) = database.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()
    database.execute(f"PRAGMA hard_heap_limit = {size + megabytes * 2**20}")
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:  # not Linux
        return
    most = pages * resource.getpagesize() + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def limit_time(database: sqlite3.Connection, seconds: int) -> None:
    """Ends the next query after so many seconds, and the process if one instruction of SQLite takes longer."""
    end = time.monotonic() + seconds
    database.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime) + seconds + 2
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def answer(database: sqlite3.Connection, query: str, most_rows: int, shown: int = 0) -> dict:
    """Runs a query; returns the number and the digests of its rows, and so many of them as texts.

    Raises LimitError, MemoryError, or an error of sqlite3.
    """
    cursor = database.execute(query)
    if cursor.description is None:
        raise LimitError("not a query")
    digests: list[bytes] = []
    texts: list[list[str]] = []
    for row in cursor:
        if len(digests) == most_rows:
            raise LimitError(f"more than {most_rows} rows")
        if len(texts) < shown:
            texts.append([text_of(value) for value in row[:_COLUMNS]])
        digests.append(hashlib.sha256(repr(tuple(map(comparable, row))).encode("utf-8", "surrogateescape")).digest())
    ordered, unordered = (hashlib.sha256(b"".join(rows)).hexdigest() for rows in (digests, sorted(digests)))
    found = {"rows": len(digests), "ordered": ordered, "unordered": unordered}
    if shown:
        found |= {"columns": [text_of(column[0]) for column in cursor.description[:_COLUMNS]], "shown": texts}
    return found


def comparable(value: object) -> object:
    """The value that stands for all equal ones: 2 and 2.0 are equal, as are sums in another order."""
    if not isinstance(value, float):
        return value
    rounded = value if value.is_integer() else float(format(value, _DIGITS))
    return int(rounded) if rounded.is_integer() else rounded


def text_of(value: object) -> str:
    """A value as people read it, cut if it is long."""
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)[:_CHARACTERS]
    return text.encode("utf-8", "replace").decode()


def say(found: dict) -> None:
    """Writes a line of the output."""
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


def main(path: str, seconds: str, megabytes: str, most_rows: str, shown: str) -> None:
    """Answers the queries of the input; ends after a query that ran out of memory."""
    try:
        database = copy_in_memory(path)
    except sqlite3.Error as error:
        return say({"error": str(error)})
    limit_memory(database, int(megabytes))
    database.set_authorizer(authorize)
    say({})
    for line in sys.stdin:
        limit_time(database, int(seconds))
        try:
            say(answer(database, json.loads(line), int(most_rows), int(shown)))
        except MemoryError:
            return say({"error": OUT_OF_MEMORY})
        except Exception as error:  # also those of surrogates, null characters, and numbers beyond 64 bits
            say({"error": f"more than {seconds} seconds" if str(error) == "interrupted" else str(error)[:200]})


if __name__ == "__main__":
    main(*sys.argv[1:])
