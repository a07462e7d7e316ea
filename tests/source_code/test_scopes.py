"""Scopes of partial queries against SQLite, which judges the queries that they become."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.source_code.programs import SHARED, real_lines
from tree_fairseq.source_code.schema import Schema
from tree_fairseq.source_code.scopes import Scopes
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.symbols import HOLE
from tree_fairseq.trees.tree import Tree, tree_from_preorder

SCHEMA = Schema(
    "CREATE TABLE state (name TEXT, area DOUBLE, capital TEXT); CREATE TABLE city (name TEXT, people INT, state TEXT)"
)
SQL = notation_named("sql")

columns = st.sampled_from(
    ["name", "area", "people", "s.name", "s.area", "c.people", "C.Name", "state.capital", "x", '"y"']
)
tables = st.sampled_from(["state", "city", "state AS s", "City AS c", "city AS s", "nowhere"])


@st.composite
def queries(draw, depth: int = 2) -> str:
    """Queries whose names are often bound, and often not."""
    values = draw(st.sampled_from([columns, st.builds("{}({})".format, st.sampled_from(["MAX", "COUNT"]), columns)]))
    outputs = draw(st.lists(values | st.builds("{} AS x".format, values) | st.just("*"), min_size=1, max_size=2))
    sources = draw(st.lists(tables | (st.builds("({}) AS d".format, queries(0)) if depth else tables), max_size=2))
    where = draw(st.none() | st.builds("{} = {}".format, columns, columns | st.just("1")))
    if depth and draw(st.booleans()):
        where = f"{draw(columns)} IN ({draw(queries(depth - 1))})"
    order = draw(st.none() | values)
    text = f"SELECT {', '.join(outputs)}" + (f" FROM {', '.join(sources)}" if sources else "")
    return text + (f" WHERE {where}" if where else "") + (f" ORDER BY {order}" if order else "")


def prefixes(tree: Tree) -> list[Tree]:
    """The trees of the first one, two, ... symbols of a query; the last one is whole."""
    labels, arities = zip(*((node.label, len(node.children)) for node in tree.preorder()))
    found = []
    for end in range(1, len(labels) + 1):
        missing = 1 + sum(arities[:end]) - end
        found.append(tree_from_preorder([*labels[:end], *[HOLE] * missing], [*arities[:end], *[0] * missing]))
    return found


@settings(max_examples=120, deadline=None)
@given(queries())
def test_what_is_refused_does_not_run_and_what_runs_was_never_refused(query):
    *parts, whole = prefixes(SQL.read(query))
    scopes = Scopes(SCHEMA)
    if scopes.allows(whole) and SCHEMA.runs(query):
        assert all(map(scopes.allows, parts))
    elif SCHEMA.runs(query):
        assert scopes.allows(SQL.read(query.replace(" = ", " || "))), "only comparisons are refused that SQLite runs"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s.people FROM state AS s",
        "SELECT t.area FROM state AS s, city AS c",
        "SELECT name FROM state AS s, city AS c",
        "SELECT s.area, c.people FROM state AS s",
        "SELECT area FROM city",
        "SELECT s.name FROM state AS s, city AS s",
        "SELECT 1 FROM state AS s, city AS s WHERE s.name = 1",
        "SELECT name FROM state WHERE COUNT(*) > 1",
        "SELECT MAX(COUNT(*)) FROM state",
        "SELECT d.area FROM (SELECT name FROM state) AS d",
        "SELECT name FROM state WHERE EXISTS (SELECT people FROM city WHERE state.people = 1)",
        "SELECT name FROM state WHERE area = capital",
    ],
)
def test_a_query_is_refused_as_soon_as_its_names_cannot_be_bound(query):
    scopes = Scopes(SCHEMA)
    allowed = [scopes.allows(part) for part in prefixes(SQL.read(query))]
    assert allowed[0] and not allowed[-1]
    assert allowed == sorted(allowed, reverse=True), "what is refused once stays refused"


def test_names_are_refused_within_their_pieces():
    column = Tree("Column this table", [Tree('Identifier "', [Tree('"ar'), Tree(HOLE)]), Tree('Identifier "s')])
    source = Tree("From this | Table this alias", [Tree('Identifier "city'), Tree('TableAlias this | Identifier "s')])
    scopes = Scopes(SCHEMA)
    assert scopes.allows(Tree("Select expressions[] from_", [column, Tree(HOLE)]))
    assert not scopes.allows(Tree("Select expressions[] from_", [column, source]))


def test_all_prefixes_of_real_queries_that_run_are_allowed():
    queries = set(real_lines("text2sql"))  # first, because it skips the test without the data
    schema = Schema.load(SHARED / "text2sql" / "geography-db.added-in-2020.sqlite")
    lines = sorted(filter(schema.runs, queries))
    scopes = Scopes(schema)
    assert len(lines) >= 240
    for line in lines:
        assert all(map(scopes.allows, prefixes(SQL.read(line)))), line
