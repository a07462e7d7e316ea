"""The scopes of an SQL query: which of its names a table, complete or still to come, can bind.

The columns of a query come before its tables, so a column of a table that is not yet there is *pending*: one of the
missing tables must have it.
"""

from __future__ import annotations

from typing import NamedTuple


class Unbound(Exception):
    """A name that nothing can bind."""


class Name(NamedTuple):
    """A name in lower case, or what is there of it."""

    text: str
    is_whole: bool

    def fits(self, other: str) -> bool:
        """Whether this is, or can become, another name."""
        return other == self.text if self.is_whole else other.startswith(self.text)


ANY_NAME = Name("", False)


class Column(NamedTuple):
    """A column that an expression names."""

    name: Name
    table: Name | None  # None if the column has no qualifier


class Source(NamedTuple):
    """A table of FROM; ``columns`` have their types, and are None if they are not known."""

    name: Name
    columns: dict[str, str | None] | None

    @property
    def is_known(self) -> bool:
        """Whether its name is complete, and its columns are known."""
        return self.name.is_whole and self.columns is not None

    def has(self, column: Column) -> bool:
        """Whether it has the column, or may have it."""
        if column.table is not None and self.name.is_whole and not column.table.fits(self.name.text):
            return False
        return self.columns is None or any(map(column.name.fits, self.columns))


class Scope(NamedTuple):
    """The names of one SELECT; ``missing`` tables are still to come, None if it is not known how many."""

    parent: int | None  # the place of the scope around it
    tables: dict[str, dict[str, str | None] | None] | None
    missing: int | None = 0
    sources: tuple[Source, ...] = ()
    pending: tuple[Column, ...] = ()
    outputs: dict[str, str | None] = {}
    has_star: bool = False  # among the outputs
    merges_columns: bool = False  # by NATURAL JOIN or USING


class Scopes(list[Scope]):
    """The scopes of a query, the outermost first."""

    def change(self, place: int, **changes) -> None:
        """Replaces attributes of the scope at a place."""
        self[place] = self[place]._replace(**changes)

    def find(
        self, place: int, column: Column, *, with_outputs: bool = False, outputs_first: bool = False
    ) -> str | None:
        """The type of a column, None if it is not one of numbers. Raises Unbound if nothing can bind it.

        With ``outputs_first``, a column of the result hides those of the tables.
        """
        while True:
            scope = self[place]
            is_output = column.table is None and any(map(column.name.fits, scope.outputs))
            found = [source for source in scope.sources if source.has(column)]
            if found:
                is_whole = column.name.is_whole and (column.table is None or column.table.is_whole)
                is_hidden = outputs_first and column.table is None and (is_output or scope.has_star)
                is_one = is_hidden or scope.merges_columns or sum(source.is_known for source in found) < 2
                if is_whole and not is_one:
                    raise Unbound  # the name is ambiguous
                columns = found[0].columns
                return columns.get(column.name.text) if columns and column.name.is_whole else None
            if with_outputs and is_output:
                return None
            if scope.missing != 0:
                self.change(place, pending=(*scope.pending, column))
                self._require_room(place)
                return None
            if scope.parent is None:
                raise Unbound
            place, with_outputs, outputs_first = scope.parent, True, False

    def add(self, place: int, source: Source) -> None:
        """Adds the next table, which may be incomplete."""
        missing = self[place].missing
        missing = None if missing is None else missing - 1
        self.change(place, sources=(*self[place].sources, source), missing=missing)
        self._require_room(place, source)
        if missing == 0 and source.name.is_whole:
            self._bind_pending(place)

    def expect(self, place: int, missing: int | None) -> None:
        """Says how many tables are still to come, where that was not known."""
        self.change(place, missing=missing)
        self._bind_pending(place) if missing == 0 else self._require_room(place)

    def _bind_pending(self, place: int) -> None:
        pending = self[place].pending
        self.change(place, pending=())
        for column in pending:
            self.find(place, column)

    def output(self, place: int, kind: str, name: Name | None) -> None:
        """Adds an expression to the columns of the result."""
        if kind == "Star":
            self.change(place, has_star=True)
        elif kind in ("Alias", "Column") and name is not None and name.is_whole:
            self.change(place, outputs={**self[place].outputs, name.text: None})

    def _require_room(self, place: int, last: Source | None = None) -> None:
        """Raises Unbound if the missing tables, and the last one, cannot have all pending columns."""
        scope = self[place]
        if scope.missing is None:
            return
        needs: dict[str, list[Column]] = {}
        for column in scope.pending:
            if column.table is not None and column.table.is_whole and not self._binds_elsewhere(scope, column, last):
                needs.setdefault(column.table.text, []).append(column)
        if last is None:
            if len(needs) > scope.missing:
                raise Unbound
            return
        if scope.missing == 0 and not all(
            column.table is not None or last.has(column) or self._binds_elsewhere(scope, column, last)
            for column in scope.pending
        ):
            raise Unbound
        named = [name for name in needs if last.name.fits(name)]
        served = [name for name in named if all(map(last.has, needs[name]))]
        if last.name.is_whole and named and not served:
            raise Unbound  # the table lacks a column, and no other one has its name
        if len(needs) - bool(served) > scope.missing:
            raise Unbound

    def _binds_elsewhere(self, scope: Scope, column: Column, last: Source | None) -> bool:
        """Whether a table that is complete, here or outside, may have a column."""
        if any(source.has(column) for source in scope.sources if source is not last):
            return True
        while scope.parent is not None:
            scope = self[scope.parent]
            if scope.missing != 0 or any(source.has(column) for source in scope.sources):
                return True
        return False
