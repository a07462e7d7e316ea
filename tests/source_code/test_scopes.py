"""Partial queries against SQLite, which judges the queries that they become."""

from __future__ import annotations

import sqlite3
from types import SimpleNamespace
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preprocess.text2sql import prepare
from tests.source_code.programs import SHARED, real_lines
from tree_fairseq.source_code.complete_programs import is_bound, is_program
from tree_fairseq.source_code.partial_query import PartialQuery
from tree_fairseq.source_code.schema import Schema
from tree_fairseq.source_code.scopes import Unbound
from tree_fairseq.tree_positional import checked_search
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.text import read_lines
from tree_fairseq.trees.tree import Tree

SCHEMA = Schema(
    "CREATE TABLE state (name TEXT, area DOUBLE, capital TEXT); CREATE TABLE city (name TEXT, people INT, state TEXT)"
)
SQL = notation_named("sql")

columns = st.sampled_from(
    ["name", "area", "people", "s.name", "s.area", "c.people", "C.Name", "state.capital", "x", '"y"', '"area"']
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
    where = draw(st.none() | st.builds("{} = {}".format, columns, columns | st.sampled_from(["1", "'1'", "'z'"])))
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
    # Without quotes, SQLite does not take a name for a text.
    if SCHEMA.runs(query.replace('"', "")) and not all(allowed(SQL.read(query))):
        assert "'z'" in query and all(allowed(SQL.read(query.replace("'z'", "'1'")))), "only these comparisons"


@settings(max_examples=60, deadline=None)
@given(queries())
def test_a_symbol_that_is_refused_is_one_that_searches_ask_about(query):
    tree = SQL.read(query)
    refused = [node.label for node, is_allowed in zip(tree.preorder(), allowed(tree)) if not is_allowed]
    assert not refused or PartialQuery.concern(refused[0])


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
    ],
)
def test_a_query_is_refused_as_soon_as_it_cannot_run(query):
    steps = allowed(SQL.read(query))
    assert steps[0] and not steps[-1]
    assert not SCHEMA.runs(query)


VALUES = {
    "INTEGER": [3, -1],
    "DECIMAL(5, 2)": [3, 0.5],
    "DOUBLE PRECISION": [1e3, 3.0],
    "UNSIGNED BIG INT": [3, 7],
    "TEXT": ["3", "abc"],
    "VARCHAR(9)": ["3", "2020-01-02"],
    "DATE": ["2020-01-02", "abc"],
    "TIMESTAMP": ["2020-01-02", 3],
    "INTERVAL": ["3", "abc"],
    "BOOLEAN": ["abc", 1],
    "": ["abc", 3],
}


@pytest.mark.parametrize("operator", ["=", "<>", "<", ">="])
@pytest.mark.parametrize("declared", VALUES)
def test_comparisons_are_refused_that_say_the_same_of_every_row(declared, operator):
    tables = f"CREATE TABLE t (x {declared}); CREATE TABLE u (y TEXT)"
    schema, database = Schema(tables), sqlite3.connect(":memory:")
    database.executescript(tables)
    database.executemany("INSERT INTO t VALUES (?)", [(value,) for value in VALUES[declared]])
    is_number = not any(isinstance(value, str) for value in VALUES[declared])
    for text in ("abc", "3", " 3.", "+.5e1", "", "2020-01-02", "0x3", "3 a"):
        for one, other in (("x", f"'{text}'"), (f"('{text}')", "t.x")):
            is_refused = not allowed(SQL.read(f"SELECT 1 FROM t WHERE {one} {operator} {other}"), schema)[-1]
            if is_refused:
                answers = database.execute(f"SELECT DISTINCT {one} {operator} {other} FROM t").fetchall()
                assert is_number and len(answers) == 1
            assert is_refused == (is_number and text not in ("3", " 3.", "+.5e1"))
    assert allowed(SQL.read(f"SELECT 1 FROM t, u WHERE x {operator} y AND x {operator} 3 AND y {operator} 3"), schema)[
        -1
    ]


def test_columns_are_compared_with_any_others_because_sqlite_converts_their_values():
    tables = "CREATE TABLE course (id INTEGER, day DATE); CREATE TABLE reg (course_id TEXT, day TEXT)"
    database = sqlite3.connect(":memory:")
    database.executescript(
        f"{tables}; INSERT INTO course VALUES (3, '2020-01-02'); INSERT INTO reg SELECT * FROM course"
    )
    for condition in ("c.id = r.course_id", "c.day = r.day", "c.day = '2020-01-02'"):
        query = f"SELECT * FROM course AS c JOIN reg AS r ON {condition}"
        assert database.execute(query).fetchall() == [(3, "2020-01-02", "3", "2020-01-02")]
        assert all(allowed(SQL.read(query), Schema(tables)))


@pytest.mark.parametrize(
    "query",
    [
        'SELECT "nowhere" FROM state',
        'SELECT ("nowhere") AS n FROM state',
        'SELECT DISTINCT "nowhere", name FROM state',
        'SELECT MAX("nowhere") FROM state',
        'SELECT COUNT(DISTINCT "nowhere") FROM state',
        'SELECT "area" + "nowhere" FROM state',
        'SELECT name FROM state GROUP BY name, "nowhere"',
        'SELECT name FROM state ORDER BY "nowhere" DESC',
        'SELECT name FROM state WHERE "nowhere"',
        'SELECT name FROM state WHERE area > 1 AND "nowhere"',
        'SELECT name FROM state WHERE "nowhere" < 3',
        "SELECT name FROM state WHERE 'x' = (\"nowhere\")",
        'SELECT name FROM state WHERE "nowhere" IS NULL',
        'SELECT name FROM state WHERE "nowhere" BETWEEN -1 AND ?',
        "SELECT name FROM state WHERE \"nowhere\" LIKE 'x%'",
        'SELECT name FROM state WHERE "nowhere" = "nothing"',
        'SELECT "nowhere" < 3 FROM state',
    ],
)
def test_an_invented_column_in_quotes_is_refused_although_sqlite_takes_it_for_a_text(query):
    assert SCHEMA.runs(query) and not allowed(SQL.read(query))[-1]
    assert not (is_bound(SQL.read(query), SCHEMA) and is_program(SQL.read(query), SQL, SCHEMA))
    known = SQL.read(query.replace("nowhere", "capital"))
    assert is_bound(known, SCHEMA) and is_program(known, SQL, SCHEMA)


@pytest.mark.parametrize(
    "query",
    [
        'SELECT name FROM state WHERE name = "texas" AND "new york" <> capital AND capital LIKE ("%x%")',
        'SELECT name FROM state WHERE name IN ("texas", "ohio") OR name BETWEEN "a" AND "c"',
        'SELECT name FROM state WHERE LOWER(name) = LOWER("Texas") AND "austin" IN (SELECT capital FROM state)',
        'SELECT CASE WHEN area > 1 THEN "large" ELSE "small" END, name || ", " || capital FROM state',
        'SELECT "x" = "name" FROM state WHERE "name" = "x" GROUP BY "capital" ORDER BY "area"',
        'SELECT area AS "the area" FROM state ORDER BY "the area"',
        'SELECT d."the area" FROM (SELECT area AS "the area" FROM state) AS d WHERE "the area" < 3',
    ],
)
def test_a_text_in_double_quotes_is_allowed_where_a_value_stands(query):
    assert is_bound(SQL.read(query), SCHEMA) and is_program(SQL.read(query), SQL, SCHEMA)


@pytest.mark.parametrize(
    "query",
    [
        "WITH s AS (SELECT 1 AS one) SELECT one FROM s UNION SELECT name FROM city",
        "WITH RECURSIVE n AS (SELECT 1 AS x UNION SELECT x + 1 FROM n) SELECT x FROM n",
        "SELECT value FROM state, JSON_EACH(capital)",
        "SELECT DISTINCT COUNT(DISTINCT name), COUNT(*), MAX(name, area), MIN(DISTINCT name, area) FROM state",
        "SELECT MAX(COUNT(*)) OVER (), SUM(SUM(area)) FILTER (WHERE name > 'a') OVER () FROM state GROUP BY name",
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


@pytest.mark.parametrize(
    ("dialect", "query"),
    [
        ("postgres", "SELECT public.city.name FROM public.city WHERE EXISTS (SELECT * FROM shop.public.names)"),
        ("tsql", "SELECT TOP 5 [c].[name] FROM [dbo].[city] AS [c] ORDER BY [c].[id] DESC"),
        ("bigquery", "SELECT name FROM `project.data.city` UNION ALL SELECT name FROM data.names"),
    ],
)
def test_schemas_before_tables_are_left_out(dialect, query):
    language = notation_named(f"sql:{dialect}")
    schema = Schema("CREATE TABLE city (id INT, name); CREATE TABLE names (name)")
    for line, runs in ((query, True), (query.replace("city", "town"), False)):
        assert schema.runs(language.translated(line)) == allowed(language.read(line), schema)[-1] == runs


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


@pytest.mark.parametrize("name", ["geography", "atis", "advising"])
def test_no_real_query_that_runs_is_refused(name, tmp_path):
    assert real_lines("text2sql")  # skips the test without the data
    prepare(SHARED / "text2sql" / f"{name}.json", tmp_path, "query")
    lines = {line for split in ("train", "valid", "test") for line in read_lines(tmp_path / f"{split}.sql")}
    schema, mysql = Schema.load(tmp_path / "schema.sql"), notation_named("sql:mysql")
    running = sorted(filter(schema.runs, lines))[:: 1 + len(lines) // 120]
    assert len(running) >= 80  # some of them, so that the suite stays fast
    for line in running:  # MySQL reads a text where the others read a name in quotes
        assert allowed(SQL.read(line), schema)[-1] and allowed(mysql.read(line), schema)[-1], line


def test_all_prefixes_of_real_queries_that_run_are_allowed():
    queries = set(real_lines("text2sql"))  # first, because it skips the test without the data
    schema = Schema.load(SHARED / "text2sql" / "geography-db.added-in-2020.sqlite")
    lines = sorted(filter(schema.runs, queries))
    assert len(lines) >= 240
    for line in lines:
        assert all(allowed(SQL.read(line), schema)), line


@pytest.mark.parametrize(
    ("dialect", "query"),
    [
        ("postgres", "SELECT NAME FROM CITY WHERE NAME ILIKE 'a%'"),
        ("postgres", "SELECT STRING_AGG(NAME, ',') FROM CITY"),
        ("mysql", "SELECT CONCAT(`NAME`, 'a') FROM CITY LIMIT 5, 10"),
        ("tsql", "SELECT TOP 5 [NAME] FROM CITY"),
    ],
)
def test_sqlite_runs_the_translation_of_a_query_in_another_dialect(dialect, query):
    language = notation_named(f"sql:{dialect}")
    tree = language.read(query)
    assert not SCHEMA.runs(language.write(tree)) and is_program(tree, language, SCHEMA)
    other = language.read(query.replace("NAME", "NOWHERE"))
    assert not (is_bound(other, SCHEMA) and is_program(other, language, SCHEMA))
    assert not is_program(Tree(tree.label, []), language, SCHEMA)  # sqlglot cannot write it
