"""Schemas of databases: which tables and columns there are, and whether a query runs on them.

A schema is an SQLite database, whose rows are not read. SQLite itself says whether a query runs: whether all names are
bound in their scope, and functions have their arguments.
"""

from __future__ import annotations

import functools
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
# The statements of a dump that make tables and views, which begin a line; mysqldump has those of views in comments.
_CREATE = re.compile(
    r"^[ \t]*(?:/\*!\d+ )?(CREATE\s(?!\s*TEMP)[^;(*]*?\b(?:TABLE|VIEW)\b.*?)(?:\s+WITH NO DATA|\*/)?\s*(?:;[ \t]*$|\Z)",
    re.I | re.M | re.S,
)


class Schema:
    """A database that CREATE statements of SQLite make, or that is in a file."""

    def __init__(self, statements: str = "", file: str = ":memory:"):
        self._database = sqlite3.connect(file, uri=True, check_same_thread=False)
        self._database.executescript(statements)

    @functools.cached_property
    def tables(self) -> dict[str, dict[str, str | None]]:
        """The columns of each table, with ``number`` for those of numbers and None for others."""
        names = self._database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        found = ((name, self._columns(name)) for (name,) in names.fetchall())
        return {name: columns for name, columns in found if columns}

    def _columns(self, table: str) -> dict[str, str | None]:
        """The columns of a table, those that are computed included; none of a view whose tables are gone."""
        try:
            rows = self._database.execute("SELECT name, type FROM pragma_table_xinfo(?)", (table,)).fetchall()
        except sqlite3.OperationalError:
            return {}
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
            # The path is quoted, because a question mark would begin the options.
            in_file = f"{path.absolute().as_uri()}?mode=ro"
            schema = cls(file=in_file) if is_database else cls._of_text(path.read_text(encoding="utf-8"))
            has_tables = bool(schema.tables)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            hint = "Give an SQLite file, or CREATE TABLE statements of SQLite, MySQL or PostgreSQL."
            raise NotationError(f"not a schema: {error}", path, hint=hint) from None
        if not has_tables:
            raise NotationError("the schema has no tables", path)
        return schema

    @classmethod
    def _of_text(cls, text: str) -> Schema:
        try:
            return cls(text)
        except sqlite3.Error:
            read = ((dialect, *cls._of_dump(text, dialect)) for dialect in ("mysql", "postgres"))
            dialect, schema, left_out = max(read, key=lambda found: len(found[1].tables))
            if not schema.tables:
                raise
        logger.info("[trees] schema, read as %s: %s", dialect, ", ".join(schema.tables))
        if left_out:
            message = "[trees] schema: %d statements of tables and views cannot be read; the first: %s"
            logger.warning(message, len(left_out), left_out[0])
        return schema

    @classmethod
    def _of_dump(cls, text: str, dialect: str) -> tuple[Schema, list[str]]:
        """The schema of a dump of another database, and the beginnings of statements that cannot be read."""
        schema, left_out = cls(), list[str]()
        for found in _CREATE.finditer(text):
            try:
                schema._database.executescript(";\n".join(_for_sqlite(found[1], dialect)))
            except (sqlite3.Error, ValueError) as error:
                if "already exists" not in str(error):  # a view that replaces one of the same columns
                    left_out.append(" ".join(found[1].partition("(")[0].split())[:60])
        return schema, left_out

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


def _for_sqlite(text: str, dialect: str) -> Iterator[str]:
    """Yields tables and views of another database as SQLite has them, with the types of numbers and without keys.

    Raises ValueError if sqlglot does not read them in the dialect.
    """
    sqlglot = quiet_sqlglot("--schema")
    exp = sqlglot.exp
    try:
        statements = sqlglot.parse(text, read=dialect)
    except sqlglot.errors.SqlglotError as error:
        raise ValueError(str(error)) from None
    for statement in statements:
        if isinstance(statement, exp.Command):  # what sqlglot does not read
            raise ValueError(text)
        if not isinstance(statement, exp.Create) or statement.kind not in ("TABLE", "VIEW"):
            continue
        leave_out_schemas(statement)
        statement.set("properties", None)
        statement.set("replace", None)
        if isinstance(statement.this, exp.Schema):
            columns = list(statement.this.find_all(exp.ColumnDef))
            for column in columns:
                is_number = column.kind is not None and _is_number(column.kind.sql())
                column.set("kind", exp.DataType.build("decimal") if is_number else None)
                column.set("constraints", None)
            statement.this.set("expressions", columns)
        yield statement.sql("sqlite")
