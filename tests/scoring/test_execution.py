"""Queries of models: which rows are equal, and that no query does harm or runs on."""

from __future__ import annotations

import random
import sqlite3
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scoring.runs import write_lines
from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring import execution
from tree_fairseq.scoring.execution import Database, Execution, filled, is_ordered
from tree_fairseq.scoring.query_sandbox import comparable
from tree_fairseq.trees.notations import notation_named

ROWS = [(number % 3, f"name {number % 4}", number / 2, None if number % 5 else b"\0\xff") for number in range(12)]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("database") / "some file?.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (a INTEGER, b TEXT, c REAL, d BLOB)")
        database.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", ROWS)
    database.close()
    return path


@pytest.fixture
def database(path, monkeypatch):
    monkeypatch.setattr(execution, "SECONDS", 1)
    found = Database(path)
    yield found
    found.close()


def right(path, reference, *outputs):
    folder = path.parent / "nowhere" / "test.sql"
    return [Execution(path, [reference], folder).outcomes([output])["execution"][0] for output in outputs]


def test_names_of_columns_do_not_count_but_their_order_does(path):
    down = "SELECT b FROM t ORDER BY c DESC"
    assert right(path, down, down.lower(), "SELECT t.b AS x FROM t ORDER BY -c") == [True, True]
    assert right(path, "SELECT a, b FROM t", "SELECT b, a FROM t") == [False]
    assert right(path, "SELECT b -- names§FROM t§ORDER BY c DESC", down, "SELECT b FROM t") == [True, False]


def test_lines_break_as_in_the_dialect(path):
    found = Execution(path, ["SELECT b # it's§FROM t§WHERE b = 'name 1'"], path, notation_named("sql:mysql"))
    assert [answer.rows for answer in found.answers] == [3]


def test_equal_numbers_are_equal_and_texts_are_no_numbers(path):
    outputs = ["SELECT 2.0", "SELECT '2'", "SELECT 6 / 3", "SELECT 2.0000000000000004", "SELECT x'32'", "SELECT 2.1"]
    assert right(path, "SELECT 2", *outputs) == [True, False, True, True, False, False]
    assert right(path, "SELECT NULL", "SELECT ''", "SELECT NULL", "SELECT 0") == [False, True, False]


def test_results_are_those_of_sqlite_itself(path):
    """The twin: rows of the file, compared in Python."""
    chance = random.Random(1)
    queries = []
    for _ in range(60):
        columns = ", ".join(chance.choices("abcd", k=chance.randint(1, 2)))
        where = chance.choice(["", "WHERE a < 2", "WHERE a = 7", "WHERE b > 'name 1'", "WHERE d IS NULL"])
        order = chance.choice(["", "", f"ORDER BY {chance.choice('abc')}, c"])
        queries.append(f"SELECT {chance.choice(['', 'DISTINCT'])} {columns} FROM t {where} {order}")
    with sqlite3.connect(path) as direct:
        rows = {query: direct.execute(query).fetchall() for query in queries}
    direct.close()
    wrong = "SELECT nothing FROM t"
    for reference in queries:
        same = (lambda x, y: x == y) if "ORDER" in reference else (lambda x, y: Counter(x) == Counter(y))
        outputs = chance.choices(queries, k=10)
        found = Execution(path, [reference] * 11, path).outcomes([*outputs, wrong])
        assert found["execution"] == [*(same(rows[reference], rows[output]) for output in outputs), False]
        assert found["runs"] == [True] * 10 + [False]


@given(st.one_of(st.integers(), st.floats(), st.text(), st.binary(), st.none()))
def test_values_stand_for_themselves_up_to_the_last_digits(value):
    found = comparable(value)
    assert found == pytest.approx(value, rel=1e-11, nan_ok=True) if isinstance(value, float) else found == value


HARMFUL = [
    "ATTACH DATABASE '{folder}/new' AS x",
    "VACUUM INTO '{folder}/new'",
    "SELECT load_extension('{folder}/new')",
    "PRAGMA query_only = OFF",
    "SELECT * FROM pragma_table_info('t')",
    "SELECT fts3_tokenizer('simple')",
    "DELETE FROM t",
    "UPDATE t SET a = 1",
    "INSERT INTO t SELECT * FROM t",
    "DROP TABLE t",
    "CREATE TEMP TABLE x (a)",
    "BEGIN IMMEDIATE",
    "REINDEX",
    "SELECT 1; DROP TABLE t",
    "SELECT writefile('{folder}/new', 'x')",
    "",
    "-- nothing",
    "SELECT 'a",
    "SELECT '\0'",
    "SELECT '\ud800'",
    f"SELECT {'(' * 3000}1{')' * 3000}",
]
TOO_MUCH = [
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
    f"SELECT group_concat(t0.b) FROM {', '.join(f't AS t{number}' for number in range(9))}",
    "SELECT printf('%.*c', 900000000, 'x')",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n FROM t",
    "SELECT randomblob(900000000)",
    "SELECT hex(randomblob(400000000))",
    "SELECT zeroblob(2000000000)",
    "SELECT replace(hex(zeroblob(10000000)), '0', hex(zeroblob(1000)))",
    "SELECT randomblob(20000000) AS x FROM t, t AS u ORDER BY x",
]


def test_harmful_queries_are_refused_and_change_nothing(database, path):
    before = path.read_bytes()
    for query in HARMFUL:
        assert database.answer(query.replace("{folder}", str(path.parent))).error, query
    assert database.answer("SELECT * FROM t") == database.answer("SELECT * FROM t AS u")
    assert database.answer("SELECT count(*) FROM t").rows == 1
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def test_newest_rows_are_read_from_the_log_beside_the_file(tmp_path):
    with sqlite3.connect(tmp_path / "used.sqlite") as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE t (a)")
        database.execute("INSERT INTO t VALUES (1)")
        database.commit()
        assert Database(tmp_path / "used.sqlite").answer("SELECT a FROM t").rows == 1
    database.close()


def test_values_of_json_can_be_read_as_a_table(database):
    assert database.answer("SELECT value FROM json_each('[1, 2]')").rows == 2


@pytest.mark.parametrize("query", TOO_MUCH)
def test_queries_that_need_too_much_end_and_the_next_one_runs(database, query):
    start = time.monotonic()
    error = database.answer(query).error
    assert any(word in error for word in ("seconds", "memory", "too big", "rows", "ended")), error
    assert time.monotonic() - start < 10
    assert not database.answer(f"SELECT a FROM t -- after {query[:9]}").error


def test_a_query_that_failed_is_not_right_even_if_the_reference_fails(path, caplog):
    found = Execution(path, ["SELECT x FROM t", "SELECT a FROM t WHERE a > 9"], path)
    assert found.failed == [0] and found.empty == 1
    assert "1 of 2 references do not run" in caplog.text and "no such column: x" in caplog.text
    outputs = ["SELECT x FROM t", "SELECT b FROM t WHERE a > 10"]
    assert found.outcomes(outputs) == {"execution": [False, True], "runs": [False, True]}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT a FROM t order  by b", True),
        ("SELECT a FROM (SELECT a FROM t ORDER BY f(b)) LIMIT 1", False),
        ("SELECT a FROM t WHERE b = ' order by ' AND c = \"(\"", False),
        ("SELECT rank() OVER (ORDER BY a) FROM t -- order by", False),
        ("SELECT 'it''s (' FROM t UNION SELECT b FROM u ORDER BY 1", True),
    ],
)
def test_an_order_of_subqueries_and_windows_is_none_of_the_query(query, expected):
    assert is_ordered(query) is expected


def test_values_are_put_in_the_places_of_names(path):
    values = {"name0": "x", "name01": "it's", "name1": 'a"b'}
    query = 'SELECT \'name01\', "name0", "name1", name10, name0'
    assert filled(query, values) == 'SELECT \'it\'\'s\', "x", "a""b", name10, x'
    assert filled("a LIKE '%name01 :name0%'", values) == "a LIKE '%it''s :x%'"
    assert filled("a = :name1 AND b > :year0", {"name1": "it's", "year0": "1999"}) == "a = 'it''s' AND b > 1999"
    references = ["SELECT a FROM t WHERE b = 'name0'"] * 2
    write_lines(path.parent / "filled" / "test.variables", ['{"name0": "name 1"}', "{}"])
    found = Execution(path, references, path.parent / "filled" / "test.sql")
    assert [answer.rows for answer in found.answers] == [3, 0] and found.empty == 1


@pytest.mark.parametrize(("lines", "message"), [(["{}", "{}"], "has 2 lines"), (["[1]"], ":1: not a JSON object")])
def test_values_that_do_not_fit_are_named(path, tmp_path, lines, message):
    write_lines(tmp_path / "test.variables", lines)
    with pytest.raises(ScoringError, match=message):
        Execution(path, ["SELECT 1"], tmp_path / "test.sql")


def test_what_is_no_database_is_named(tmp_path):
    with pytest.raises(ScoringError, match="is missing"):
        Database(tmp_path / "none.sqlite")
    write_lines(tmp_path / "text.sqlite", ["no database, but long enough to be read as a header of one" * 99])
    with pytest.raises(ScoringError, match="cannot be read as a SQLite database"):
        Database(tmp_path / "text.sqlite")
