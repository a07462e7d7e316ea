"""Schemas of databases: which tables and columns there are, and whether a query runs on them.

A schema is an SQLite database without rows. SQLite itself says whether a query runs: whether all names are bound in
their scope, and functions have their arguments.
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from tree_fairseq.errors import NotationError
from tree_fairseq.source_code.sql import leave_out_schemas, quiet_sqlglot

logger = logging.getLogger(__name__)

_MAGIC = b"SQLite format 3\0"  # how the files of databases begin
# The types of numbers. SQLite also takes DATE, BOOLEAN and unknown ones for types of numbers, which often have texts.
_NUMBERS = re.compile(
    r"\b(U?(TINY|SMALL|MEDIUM|BIG)?INT(EGER)?\d*|(SMALL|BIG)?SERIAL|REAL|FLOAT\d*|DOUBLE|DEC(IMAL)?|NUMERIC|NUMBER)\b",
    re.I,
)


class Schema:
    """The tables of a database, by name: their columns, with ``number`` for those of numbers and None for others."""

    def __init__(self, statements: str):
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.executescript(statements)
        names = self._database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        self.tables = {name: self._columns(name) for (name,) in names.fetchall()}

    def _columns(self, table: str) -> dict[str, str | None]:
        rows = self._database.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
        return {name: "number" if _is_number(declared) else None for name, declared in rows}

    @classmethod
    def load(cls, path: str | os.PathLike) -> Schema:
        """Reads an SQLite file, or CREATE TABLE statements of SQLite, MySQL or PostgreSQL.

        Raises NotationError if there are no tables.
        """
        path = Path(path)
        try:
            with open(path, "rb") as file:
                is_database = file.read(len(_MAGIC)) == _MAGIC
            schema = cls(_statements(path)) if is_database else cls._of_text(path.read_text(encoding="utf-8"))
        except (sqlite3.Error, UnicodeDecodeError) as error:
            hint = "Give an SQLite file, or CREATE TABLE statements of SQLite, MySQL or PostgreSQL without rows."
            raise NotationError(f"not a schema: {error}", path, hint=hint) from None
        if not schema.tables:
            raise NotationError("the schema has no tables", path)
        return schema

    @classmethod
    def _of_text(cls, text: str) -> Schema:
        try:
            return cls(text)
        except sqlite3.Error:
            for dialect in ("mysql", "postgres"):
                if statements := list(_for_sqlite(text, dialect)):
                    schema = cls(";\n".join(statements))
                    logger.info("[trees] schema, read as %s: %s", dialect, ", ".join(schema.tables))
                    return schema
            raise

    def runs(self, query: str) -> bool:
        """Whether SQLite can run a query on these tables, with any values of its parameters."""
        return self.reason(query) is None

    def reason(self, query: str) -> str | None:
        """SQLite's message if it cannot run a query on these tables; None if it can, with any values of its parameters.

        SQLite takes a name in double quotes that is no column for a text. That stays, because queries of real data have
        such texts; PartialQuery refuses those that are none.
        """
        try:
            self._database.execute(f"EXPLAIN {query}").close()
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            # Parameters are bound when the query has been compiled.
            return None if "number of bindings" in str(error) else str(error)
        return None


def _is_number(declared: str) -> bool:
    return _NUMBERS.search(declared.partition("(")[0]) is not None


def _statements(path: Path) -> str:
    """The statements that make the tables of a database; its rows are not read."""
    # The path is quoted, because a question mark would begin the options.
    with sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True) as database:
        rows = database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
        statements = ";\n".join(sql for (sql,) in rows)
    database.close()
    return statements


def _for_sqlite(text: str, dialect: str) -> Iterator[str]:
    """Yields the tables and views of another database as SQLite has them, with the types of numbers and without keys.

    Yields nothing if the text is not of the dialect.
    """
    sqlglot = quiet_sqlglot("--schema")  # most statements of a dump are not read, and need not be
    exp = sqlglot.exp
    try:
        parsed = sqlglot.parse(text, read=dialect)
    except sqlglot.errors.SqlglotError:
        return
    for statement in parsed:
        if not isinstance(statement, exp.Create) or statement.kind not in ("TABLE", "VIEW"):
            continue
        leave_out_schemas(statement)
        if isinstance(statement.this, exp.Schema):
            columns = list(statement.this.find_all(exp.ColumnDef))
            for column in columns:
                is_number = column.kind is not None and _is_number(column.kind.sql())
                column.set("kind", exp.DataType.build("decimal") if is_number else None)
                column.set("constraints", None)
            statement.this.set("expressions", columns)
            statement.set("properties", None)
        yield statement.sql("sqlite")
