"""Whether a partial SQL query can become one that a schema can run.

The symbols of a query are generated in preorder. Each of them makes a new state of a few open nodes and their scopes
from the state before, so a search pays for one symbol, however long the query is. SQLite has the last word on complete
queries; what is refused here is refused by SQLite too, however the query ends, with three exceptions:

* Two tables of a query share a name.
* A column of numbers is compared with a text that is no number, ``area = 'texas'``: that says the same of every row.
  Columns are compared with any others, because SQLite converts a text that is a number, and keeps dates as texts.
* A name in double quotes is that of no column. SQLite takes it for a text, and queries of real data rely on that
  (``name = "texas"``). So it may be an operand of a comparison or an argument of a function. It must be a column in the
  result, in aggregates, under AND or ``+``, in GROUP BY, in ORDER BY, and beside a constant (``"nowhere" < 3``).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tree_fairseq.source_code.productions import REST, Link, is_piece, parse_label
from tree_fairseq.source_code.schema import Schema
from tree_fairseq.source_code.scopes import ANY_NAME, Column, Name, Scope, Scopes, Source, Unbound

_SETS = ("Union", "Except", "Intersect")
_SOURCES = ("from_", "joins", "laterals")
_COMPARISONS = ("EQ", "NEQ", "GT", "GTE", "LT", "LTE")
_PREDICATES = (*_COMPARISONS, "Is", "Like", "Between")
_AGGREGATES = ("Count", "Sum", "Avg")  # MAX and MIN of several arguments are no aggregates
_CONCERNED = ("Column", "Table", "Distinct", *_AGGREGATES, "Max", "Min", "Null", "Boolean", "Placeholder")
_WITHOUT_AGGREGATES = ("where", "joins", "group")
# Where a text says nothing, so a quoted name is a column.
_WITHOUT_TEXTS = (
    *("Select", "Alias", "Distinct", "Group", "Order", "Ordered", *_AGGREGATES, "Max", "Min"),
    *("Where", "Having", "Join", "And", "Or", "Not", "Add", "Sub", "Mul", "Div", "Mod", "Neg"),
)
_QUOTED = "Quoted identifier"  # the kind of an identifier in quotation marks, and of a column that may be a text
_STRING = "String"  # the kind of a literal that is a text
_CONSTANTS = (_QUOTED, _STRING, "Literal", "Placeholder", "Parameter", "Null", "Boolean")
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*")  # texts that SQLite converts
_NAMES = ("Identifier", _QUOTED)
# The role of a node's children by the role of the node and by their field; other fields have the role under "".
_ROLES = {
    "select": {"with_": "other", **dict.fromkeys(_SOURCES, "source"), "": "expression"},
    "query": {"this": "query", "expression": "query", "": "other"},
    "source": {"this": "table", "": "expression"},
    "table": {"this": "name", "alias": "name", "": "other"},
    "derived table": {"this": "query", "expression": "query", "alias": "name", "": "other"},
    "column": {"": "name"},
}
_ROW_NUMBERS = ("rowid", "oid", "_rowid_")  # columns that every table has


class _Place(NamedTuple):
    """Where a node stands: its role, and the scope whose names it can use."""

    role: str
    scope: int
    is_correlated: bool = False  # whether a query can use the columns of that scope, or only those around it
    may_aggregate: bool = False
    is_output: bool = False
    is_order: bool = False  # in ORDER BY


class _Value(NamedTuple):
    """A complete node, as far as names are concerned."""

    kind: str
    name: Name | None = None  # of an identifier, of an alias, and of a column
    type: str | None = None  # "number" of a column of numbers, "text" of a literal that is no number
    columns: dict[str, str | None] | None = None  # of a query; None if they are not known


class _Node(NamedTuple):
    """A node of which children are missing; ``text`` is what there is of a leaf that is spelled."""

    above: _Node | None
    kind: str
    place: _Place
    missing: tuple[str, ...]  # the fields of these children
    values: dict[str, _Value]
    text: str | None

    def has(self, name: str) -> bool:
        return name in self.values or name in self.missing

    def name(self, field: str) -> Name | None:
        """The name in a field: None if the node has no such field, ANY_NAME if the name is still to come."""
        value = self.values.get(field)
        return (value and value.name or ANY_NAME) if self.has(field) else None


class PartialQuery:
    """The state after some symbols of a query, at first after none; it does not change."""

    def __init__(self, schema: Schema):
        tables: dict[str, dict[str, str | None] | None] = {
            table.lower(): {**dict.fromkeys(_ROW_NUMBERS), **{name.lower(): kind for name, kind in columns.items()}}
            for table, columns in schema.tables.items()
        }
        self._scopes = Scopes([Scope(None, tables)])
        self._open: _Node | None = None

    @staticmethod
    def concern(label: str) -> bool:
        """Whether a node of this label can make a query impossible: one with a name, a table or an aggregate."""
        production = parse_label(label)
        return production.text is not None or any(link.type in _CONCERNED for link in production.links)

    def then(self, label: str, arity: int) -> PartialQuery:
        """The query with one more symbol. Raises Unbound if no end of it makes a query that runs."""
        query = PartialQuery.__new__(PartialQuery)  # copy.copy takes several times as long
        query._scopes, query._open = Scopes(self._scopes), self._open
        query._add(label, arity)
        query._close_complete()
        query._test_names()
        return query

    def _add(self, label: str, arity: int) -> None:
        node, (links, text) = self._open, parse_label(label)
        if node is not None and node.text is not None:  # a piece of a leaf
            is_rest = label == REST
            pieces = ("",) * arity if is_rest else ()
            spelled = node.text if is_rest else node.text + (label[1:] if is_piece(label) else label).lower()
            self._open = node._replace(missing=pieces + node.missing[1:], text=spelled)
            return
        if node is not None and links[0].type == node.missing[0]:  # the rest of a long list
            self._open = node._replace(missing=_fields(links[0]))
            if node.place.role == "select":
                self._scopes.expect(node.place.scope, _tables(self._open.missing))
            links = links[1:]
        for link in links:
            is_spelled = link is links[-1] and text is not None
            self._enter(link, ("",) * arity if is_spelled else _fields(link), text if is_spelled else None)

    def _enter(self, link: Link, missing: tuple[str, ...], text: str | None) -> None:
        kind = _QUOTED if "+quoted" in link.words else _STRING if "+is_string" in link.words else link.type
        place = self._next_place()
        in_aggregate = self._open is not None and self._open.kind in _AGGREGATES
        if len(missing) > 1 and (kind in _AGGREGATES or (kind == "Distinct" and in_aggregate)):
            raise Unbound  # an aggregate has one argument, and so has the DISTINCT in it
        if place.role == "expression" and kind in ("Select", *_SETS):
            place = _Place("query", place.scope, is_correlated=True)
        elif place.role == "expression":
            is_aggregate = kind in _AGGREGATES or (kind in ("Max", "Min") and len(missing) == 1)
            if is_aggregate and not place.may_aggregate:
                raise Unbound
            role = "column" if kind == "Column" else "expression"
            is_windowed = self._open is not None and self._open.kind in ("Window", "Filter")  # SUM(SUM(x)) OVER ()
            may_aggregate = (place.may_aggregate and (is_windowed or not is_aggregate)) or kind == "Window"
            place = place._replace(role=role, may_aggregate=may_aggregate)
        elif place.role == "table" and kind != "Table":
            place = place._replace(role="derived table")
        elif place.role == "source" and any("using" in word or "NATURAL" in word for word in link.words):
            self._scopes.change(place.scope, merges_columns=True)
        if place.role == "query" and (kind == "Select" or "with_" in missing):
            outer = self._scopes[place.scope]
            parent = place.scope if place.is_correlated else outer.parent
            tables = None if "with_" in missing else outer.tables  # SQLite alone knows those of WITH
            self._scopes.append(Scope(parent, tables, _tables(missing) if kind == "Select" else 0))
            place = _Place("select" if kind == "Select" else "query", len(self._scopes) - 1)
        self._open = _Node(self._open, kind, place, missing, {}, text and text.lower())

    def _next_place(self) -> _Place:
        """The place of the next node."""
        if self._open is None:
            return _Place("query", 0)
        field, place = self._open.missing[0], self._open.place
        if place.role not in _ROLES:
            return place
        roles = _ROLES[place.role]
        role = roles.get(field, roles[""])
        if place.role == "select" and role == "expression":
            return _Place(
                role,
                place.scope,
                may_aggregate=field not in _WITHOUT_AGGREGATES,
                is_output=field == "expressions",
                is_order=field == "order",
            )
        return place if role == place.role else _Place(role, place.scope)

    def _close_complete(self) -> None:
        while self._open is not None and not self._open.missing:
            value = self._value(self._open, self._scopes)
            above = self._open = self._open.above
            if above is None:
                return
            field = above.missing[0]
            self._open = above._replace(missing=above.missing[1:], values={**above.values, field: value})
            if above.place.role == "select" and field == "expressions":
                self._scopes.output(above.place.scope, value.kind, value.name)

    def _value(self, node: _Node, scopes: Scopes) -> _Value:
        """Does what a complete node does to the scopes."""
        kind, place = node.kind, node.place
        values = list(node.values.values())
        if node.text is not None:
            is_text = kind == _STRING and not _NUMBER.fullmatch(node.text)
            return _Value(kind, Name(node.text, True), "text" if is_text else None)
        if place.role == "select":
            scope = scopes.pop()
            return _Value(kind, columns=None if scope.has_star else scope.outputs)
        if place.role == "query":
            if node.has("with_"):
                scopes.pop()
            return _Value(kind, columns=node.values["this"].columns if "this" in node.values else None)
        if place.role in ("table", "derived table"):
            scopes.add(place.scope, _source(node, scopes[place.scope].tables))
        elif place.role == "column":
            return _column(node, scopes)
        elif place.role == "expression" and kind in ("Neg", "Paren") and values[0].kind in _CONSTANTS:
            return values[0] if kind == "Paren" else values[0]._replace(type=None)
        elif place.role == "expression" and kind in _PREDICATES:
            if kind in _COMPARISONS and {value.type for value in values} == {"number", "text"}:
                raise Unbound
            if all(value.kind in _CONSTANTS for value in values):
                _require_column([value.name for value in values if value.kind == _QUOTED and value.name], place, scopes)
        name = node.values.get("alias") if kind == "Alias" else values[0] if values and place.role == "name" else None
        return _Value(kind, name and name.name)

    def _test_names(self) -> None:
        """Raises Unbound if no end of an incomplete name, or of an incomplete table or column, is bound."""
        node, value = self._open, None
        if node is not None and node.text is not None:
            value = _Value(node.kind, Name(node.text, False))
            node = node.above
        while node is not None:
            if value is not None:
                node = node._replace(values={**node.values, node.missing[0]: value})
            if node.place.role != "name":
                break
            node, value = node.above, _Value(node.kind, value.name if value else ANY_NAME)
        if node is not None and node.place.role in ("column", "table", "derived table"):
            self._value(node, Scopes(self._scopes))


def _column(node: _Node, scopes: Scopes) -> _Value:
    this, table = node.values.get("this"), node.name("table")
    name = node.name("this") if this is None or this.kind in _NAMES else ANY_NAME
    if name is None:
        return _Value("Column", name)
    if table is None and this is not None and this.kind == _QUOTED and _may_be_text(node):
        return _Value(_QUOTED, name)
    is_star = this is not None and this.kind == "Star"
    return _Value("Star" if is_star else "Column", name, _type(Column(name, table), node.place, scopes))


def _type(column: Column, place: _Place, scopes: Scopes) -> str | None:
    return scopes.find(place.scope, column, with_outputs=not place.is_output, outputs_first=place.is_order)


def _may_be_text(node: _Node) -> bool:
    """Whether a column stands where a text says something."""
    above = node.above
    while above is not None and above.kind == "Paren":
        above = above.above
    return above is not None and above.kind not in _WITHOUT_TEXTS


def _require_column(names: list[Name], place: _Place, scopes: Scopes) -> None:
    """Raises Unbound if none of the quoted names that are compared with constants can be a column."""
    for number, name in enumerate(names, start=1):
        try:
            # A name that a missing table must have is noted if no other one can be the column.
            _type(Column(name, None), place, scopes if len(names) == 1 else Scopes(scopes))
            return
        except Unbound:
            if number == len(names):
                raise


def _source(node: _Node, tables: dict[str, dict[str, str | None] | None] | None) -> Source:
    alias, this = node.name("alias"), node.values.get("this")
    if node.kind == "Subquery":
        return Source(alias or ANY_NAME, None if this is None or alias is ANY_NAME else this.columns)
    is_table = node.kind == "Table" and (this is None or this.kind in _NAMES)
    if not is_table or tables is None:
        return Source(alias or ANY_NAME, None)
    name = node.name("this")
    if not any(map(name.fits, tables)):
        raise Unbound
    return Source(alias or name, tables[name.text] if name.is_whole else None)


def _fields(link: Link) -> tuple[str, ...]:
    """The name of the field of each child of a node."""
    return tuple(name if name.endswith(REST) else name.rpartition(".")[2] for name in link.fields)


def _tables(fields: tuple[str, ...]) -> int | None:
    """The number of tables in these fields, None if the rest of a list may have more."""
    return None if any(name.endswith(REST) for name in fields) else sum(name in _SOURCES for name in fields)
