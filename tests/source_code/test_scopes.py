"""Partial queries against SQLite, which judges the queries that they become."""

from __future__ import annotations

from types import SimpleNamespace
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.source_code.programs import SHARED, real_lines
from tree_fairseq.source_code.partial_query import PartialQuery
from tree_fairseq.source_code.schema import Schema
from tree_fairseq.source_code.scopes import Unbound
from tree_fairseq.tree_positional import checked_search
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

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
    source = tables | (st.builds("({}) AS d".format, queries(0)) if depth else tables)
    # SQLite takes two tables of one name, and other databases do not; such queries are refused.
    sources = draw(st.lists(source, max_size=2, unique_by=lambda table: table.split()[-1].lower()))
    where = draw(st.none() | st.builds("{} = {}".format, columns, columns | st.just("1")))
    if depth and draw(st.booleans()):
        where = f"{draw(columns)} IN ({draw(queries(depth - 1))})"
    order = draw(st.none() | values)
    text = f"SELECT {', '.join(outputs)}" + (f" FROM {', '.join(sources)}" if sources else "")
    return text + (f" WHERE {where}" if where else "") + (f" ORDER BY {order}" if order else "")


def allowed(query: Tree, schema: Schema = SCHEMA) -> list[bool]:
    """Whether the first one, two, ... symbols of a query may become one that runs."""
    state, found = PartialQuery(schema), list[bool]()
    for node in query.preorder():
        try:
            state = state.then(node.label, len(node.children))
        except Unbound:
            break
        found.append(True)
    return found + [False] * (len(list(query.preorder())) - len(found))


@settings(max_examples=120, deadline=None)
@given(queries())
def test_what_is_refused_does_not_run_and_what_runs_was_never_refused(query):
    if SCHEMA.runs(query) and not all(allowed(SQL.read(query))):
        assert all(allowed(SQL.read(query.replace(" = ", " || ")))), "only comparisons are refused that SQLite runs"


@settings(max_examples=30, deadline=None)
@given(queries(), st.sampled_from([1, 10_000]))
def test_a_check_answers_the_same_in_any_order_whichever_states_it_keeps(query, most):
    symbols = [(node.label, len(node.children)) for node in SQL.read(query).preorder()]
    encoding = SimpleNamespace(traversal="dfs", parts=lambda symbol: symbol)
    check = checked_search.ProgramCheck(SimpleNamespace(encoding=encoding, symbols=symbols), SQL, SCHEMA)
    ends = range(len(symbols), 0, -1)
    with mock.patch.object(checked_search, "MOST_STATES", most):
        assert [check.is_possible(range(end)) for end in ends] == allowed(SQL.read(query))[::-1]
        assert [check.is_possible(range(end)) for end in ends] == allowed(SQL.read(query))[::-1]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s.people FROM state AS s",
        "SELECT t.area FROM state AS s, city AS c",
        "SELECT name FROM state AS s, city AS c",
        "SELECT s.area, c.people FROM state AS s",
        "SELECT s.area FROM state AS s, city AS c ORDER BY name",
        "SELECT * FROM state AS s, city AS c WHERE name = 1",
        "SELECT area FROM city",
        "SELECT s.name FROM state AS s, city AS s",
        "SELECT 1 FROM state AS s, city AS s WHERE s.name = 1",
        "SELECT name FROM state WHERE COUNT(*) > 1",
        "SELECT MAX(COUNT(*)) FROM state",
        "SELECT name, COUNT(DISTINCT name, area) FROM state",
        "SELECT name, COUNT(name, area) FROM state",
        "SELECT d.area FROM (SELECT name FROM state) AS d",
        "SELECT name FROM state WHERE EXISTS (SELECT people FROM city WHERE state.people = 1)",
        "SELECT name FROM state WHERE area = capital",
    ],
)
def test_a_query_is_refused_as_soon_as_it_cannot_run(query):
    steps = allowed(SQL.read(query))
    assert steps[0] and not steps[-1]
    assert not SCHEMA.runs(query) or query.endswith("area = capital")  # a comparison that holds for no row


@pytest.mark.parametrize(
    "query",
    [
        "WITH s AS (SELECT 1 AS one) SELECT one FROM s UNION SELECT name FROM city",
        "WITH RECURSIVE n AS (SELECT 1 AS x UNION SELECT x + 1 FROM n) SELECT x FROM n",
        "SELECT value FROM state, JSON_EACH(capital)",
        "SELECT DISTINCT COUNT(DISTINCT name), COUNT(*), MAX(name, area), MIN(DISTINCT name, area) FROM state",
        "SELECT * FROM state, city ORDER BY name",
        "SELECT s.name AS name FROM state AS s, city AS c ORDER BY name",
        f"SELECT {', '.join(['area'] * 20)} FROM state",
        f"SELECT 1 FROM state WHERE area IN ({', '.join(['area'] * 20)})",
        f"SELECT s0.name FROM {', '.join(f'state AS s{place}' for place in range(20))} WHERE s19.area = 1",
    ],
)
def test_common_tables_functions_and_long_lists_are_allowed(query):
    assert SCHEMA.runs(query) and all(allowed(SQL.read(query)))


def test_long_lists_lack_tables_once_the_last_one_is_there():
    assert not allowed(SQL.read(f"SELECT {', '.join(['area'] * 20)} FROM city"))[-1]


def test_names_are_refused_within_their_pieces():
    state = PartialQuery(SCHEMA)
    for label, arity in [
        ("Select expressions[] from_ where", 3),
        ('Column this | Identifier "capital', 0),
        ('From this | Table this | Identifier "state', 0),
        ("Where this | Column this", 1),
        ('Identifier "', 2),
        ('"ar', 0),
    ]:
        state = state.then(label, arity)
    state.then('"ea', 0)
    with pytest.raises(Unbound):
        state.then('"row', 0)


def test_all_prefixes_of_real_queries_that_run_are_allowed():
    queries = set(real_lines("text2sql"))  # first, because it skips the test without the data
    schema = Schema.load(SHARED / "text2sql" / "geography-db.added-in-2020.sqlite")
    lines = sorted(filter(schema.runs, queries))
    assert len(lines) >= 240
    for line in lines:
        assert all(allowed(SQL.read(line), schema)), line
