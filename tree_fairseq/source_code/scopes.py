"""Which names a query may still use: whether a partial SQL query can become one that a schema can run.

The symbols of a query are generated in preorder. Its columns come before its tables, so a column of a table that is not
yet there is *pending*: one of the missing tables must have it. SQLite has the last word on complete queries; what is
refused here is refused by SQLite too, however the query ends. Comparisons of a number with a text are the exception:
SQLite runs them, and they hold for no row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tree_fairseq.source_code.language import Language
from tree_fairseq.source_code.productions import parse_label
from tree_fairseq.source_code.schema import Schema
from tree_fairseq.trees.symbols import HOLE
from tree_fairseq.trees.tree import Tree

_SETS = ("Union", "Except", "Intersect")
_SOURCES = ("from_", "joins", "laterals")
_COMPARISONS = ("EQ", "NEQ", "GT", "GTE", "LT", "LTE")
_AGGREGATES = ("Count", "Sum", "Avg")  # MAX and MIN of several arguments are none
_CONCERNED = ("Column", "Table", *_AGGREGATES, "Max", "Min")
_WITHOUT_AGGREGATES = ("where", "joins", "group")
_ROW_NUMBERS = ("rowid", "oid", "_rowid_")  # columns that every table has


class _Unbound(Exception):
    """A name that nothing can bind."""


class _Name(NamedTuple):
    """A name in lower case, or what is there of it."""

    text: str
    is_whole: bool

    def fits(self, other: str) -> bool:
        return other == self.text if self.is_whole else other.startswith(self.text)


_ANY = _Name("", False)


class _Column(NamedTuple):
    name: _Name
    table: _Name | None  # None if the column has no qualifier


@dataclass
class _Source:
    """A table of FROM; ``columns`` have their affinities, and are None if they are not known."""

    name: _Name
    columns: dict[str, str | None] | None

    @property
    def is_known(self) -> bool:
        return self.name.is_whole and self.columns is not None

    def has(self, column: _Column) -> bool:
        if column.table is not None and not (column.table.fits(self.name.text) if self.name.is_whole else True):
            return False
        return self.columns is None or any(map(column.name.fits, self.columns))


@dataclass
class _Scope:
    """The names of one SELECT; ``missing`` tables are still to come, None if it is not known how many."""

    parent: _Scope | None
    tables: dict[str, dict[str, str | None] | None]
    missing: int | None = 0
    sources: list[_Source] = field(default_factory=list)
    pending: list[_Column] = field(default_factory=list)
    outputs: dict[str, str | None] | None = field(default_factory=dict)
    merges_columns: bool = False  # by NATURAL JOIN or USING

    def find(self, column: _Column, *, with_outputs: bool = False) -> str | None:
        """The affinity of a column, None if it has none. Raises _Unbound if nothing can bind it."""
        found = [source for source in self.sources if source.has(column)]
        if found:
            is_whole = column.name.is_whole and (column.table is None or column.table.is_whole)
            if is_whole and not self.merges_columns and sum(source.is_known for source in found) > 1:
                raise _Unbound  # the name is ambiguous
            columns = found[0].columns
            return columns.get(column.name.text) if columns and column.name.is_whole else None
        if with_outputs and column.table is None and (self.outputs is None or any(map(column.name.fits, self.outputs))):
            return None
        if self.missing != 0:
            self.pending.append(column)
            self.require_room()
            return None
        if self.parent is None:
            raise _Unbound
        return self.parent.find(column, with_outputs=True)

    def add(self, source: _Source) -> None:
        """Adds the next table, which may be incomplete."""
        self.sources.append(source)
        if self.missing is None:
            return
        self.missing -= 1
        self.require_room(source)
        if self.missing == 0 and source.name.is_whole:
            pending, self.pending = self.pending, []
            for column in pending:
                self.find(column)

    def require_room(self, last: _Source | None = None) -> None:
        """Raises _Unbound if the missing tables, and the last one, cannot have all pending columns."""
        if self.missing is None:
            return
        needs: dict[str, list[_Column]] = {}
        for column in self.pending:
            if column.table is not None and column.table.is_whole and not self._binds_elsewhere(column, last):
                needs.setdefault(column.table.text, []).append(column)
        if last is None:
            if len(needs) > self.missing:
                raise _Unbound
            return
        unqualified = [column for column in self.pending if column.table is None]
        if self.missing == 0 and not all(
            last.has(column) or self._binds_elsewhere(column, last) for column in unqualified
        ):
            raise _Unbound
        named = [name for name in needs if last.name.fits(name)]
        served = [name for name in named if all(map(last.has, needs[name]))]
        if last.name.is_whole and named and not served:
            raise _Unbound  # the table lacks a column
        if len(needs) - bool(served) > self.missing:
            raise _Unbound

    def _binds_elsewhere(self, column: _Column, last: _Source | None) -> bool:
        """Whether a table that is complete, here or outside, may have a column."""
        here = [source for source in self.sources if source is not last]
        if any(source.has(column) for source in here):
            return True
        outer = self.parent
        while outer is not None:
            if outer.missing != 0 or any(source.has(column) for source in outer.sources):
                return True
            outer = outer.parent
        return False


class Scopes:
    """Binds the names of partial queries to the tables and columns of a schema."""

    def __init__(self, schema: Schema):
        self._tables: dict[str, dict[str, str | None] | None] = {
            table.lower(): {**dict.fromkeys(_ROW_NUMBERS), **{name.lower(): kind for name, kind in columns.items()}}
            for table, columns in schema.tables.items()
        }

    @staticmethod
    def concern(label: str) -> bool:
        """Whether a node of this label can make a query impossible: one with a name, a table or an aggregate."""
        production = parse_label(label)
        return production.text is not None or any(link.type in _CONCERNED for link in production.links)

    def allows(self, tree: Tree) -> bool:
        """Whether a query, whose missing subtrees are leaves HOLE, may become one that runs."""
        try:
            self._query(Language.whole(tree), None, self._tables)
        except _Unbound:
            return False
        except RecursionError:
            return True
        return True

    def _query(self, node: Tree, parent: _Scope | None, tables: dict) -> dict[str, str | None] | None:
        """The columns of a query's result, None if they are not known."""
        kind = parse_label(node.label).type
        if kind == "Select":
            return self._select(node, parent, tables)
        if kind in (*_SETS, "Subquery"):
            parts = {name: child for name, child in _fields(node) if name in ("this", "expression")}
            results = [self._query(child, parent, tables) for child in parts.values()]
            return results[0] if results else None
        return None

    def _select(self, node: Tree, parent: _Scope | None, tables: dict) -> dict[str, str | None] | None:
        children = list(_fields(node))
        scope = _Scope(parent, dict(tables))
        scope.missing = sum(name in _SOURCES for name, _ in children)
        if any("..." in name for name, _ in children):
            scope.missing = None
        for name, child in children:
            if child.label == HOLE:
                return None
            if name == "with_":
                self._common_tables(child, scope)
            elif name in _SOURCES:
                self._source(child, scope)
            else:
                self._expression(child, scope, name not in _WITHOUT_AGGREGATES, is_output=name == "expressions")
            if name == "expressions" and scope.outputs is not None:
                scope.outputs = _with_output(scope.outputs, child)
        return scope.outputs

    def _common_tables(self, node: Tree, scope: _Scope) -> None:
        for table in node.children:
            parts = dict(_fields(table))
            name = _identifier(parts.get("alias"))
            scope.tables[name.text] = None
            if "this" in parts:
                self._query(parts["this"], None, scope.tables)

    def _source(self, node: Tree, scope: _Scope) -> None:
        if "using" in node.label or "NATURAL" in node.label:
            scope.merges_columns = True
        for name, child in _fields(node):
            if name == "this":
                scope.add(self._table(child, scope))
            elif child.label != HOLE:
                self._expression(child, scope, False)

    def _table(self, node: Tree, scope: _Scope) -> _Source:
        parts = dict(_fields(node))
        kind = parse_label(node.label).type
        alias = _identifier(parts["alias"]) if "alias" in parts else None
        if kind == "Subquery":
            columns = self._query(node, scope.parent, scope.tables)
            return _Source(alias or _ANY, None if _has_hole(node) and alias in (None, _ANY) else columns)
        if kind != "Table" or "db" in parts:
            return _Source(alias or _ANY, None)
        name = _identifier(parts.get("this"))
        found = [table for table in scope.tables if name.fits(table)]
        if not found:
            raise _Unbound
        return _Source(alias or name, scope.tables[name.text] if name.is_whole else None)

    def _expression(self, node: Tree, scope: _Scope, may_aggregate: bool, is_output: bool = False) -> str | None:
        kind = parse_label(node.label).type
        if node.label == HOLE:
            return None
        if kind == "Column":
            return self._column(node, scope, is_output)
        if kind in ("Select", *_SETS):
            self._query(node, scope, scope.tables)
            return None
        is_aggregate = kind in _AGGREGATES or (kind in ("Max", "Min") and len(node.children) == 1)
        if is_aggregate and not may_aggregate:
            raise _Unbound
        may_aggregate = (may_aggregate and not is_aggregate) or kind == "Window"
        affinities = [self._expression(child, scope, may_aggregate, is_output) for child in node.children]
        if kind in _COMPARISONS and None not in affinities and len(set(affinities)) > 1:
            raise _Unbound
        return None

    @staticmethod
    def _column(node: Tree, scope: _Scope, is_output: bool) -> str | None:
        parts = dict(_fields(node))
        this, table = parts.get("this"), parts.get("table")
        if this is None or "db" in parts:
            return None
        if table is None and "+quoted" in this.label:
            return None  # SQLite takes a quoted name that is no column for a text
        is_name = parse_label(this.label).type == "Identifier"
        name = _identifier(this) if is_name else _ANY
        return scope.find(_Column(name, None if table is None else _identifier(table)), with_outputs=not is_output)


def _fields(node: Tree) -> Iterator[tuple[str, Tree]]:
    """The name of the field of each child, and the child."""
    for name, child in zip(parse_label(node.label).fields, node.children):
        yield name.rpartition(".")[2] if not name.endswith("...") else name, child


def _identifier(node: Tree | None) -> _Name:
    """The name that is somewhere below a node such as TableAlias."""
    while node is not None and node.label != HOLE:
        text = parse_label(node.label).text
        if text is not None:
            text, is_hole, _ = text.lower().partition(HOLE)
            return _Name(text, not is_hole)
        node = node.children[0] if node.children else None
    return _ANY


def _has_hole(node: Tree) -> bool:
    return any(HOLE in below.label for below in node.preorder())


def _with_output(outputs: dict[str, str | None], node: Tree) -> dict[str, str | None] | None:
    """The columns of a result and that of one more expression; None if the expression stands for several."""
    kind = parse_label(node.label).type
    if kind == "Star" or (kind == "Column" and parse_label(node.children[0].label).type == "Star"):
        return None
    if kind not in ("Alias", "Column"):
        return outputs
    name = _identifier(dict(_fields(node)).get("alias" if kind == "Alias" else "this"))
    return {**outputs, name.text: None} if name.is_whole else outputs
