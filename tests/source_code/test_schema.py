"""Schemas: tables of files of both kinds, and which queries run on them."""

from __future__ import annotations

import sqlite3

import pytest

from tree_fairseq.errors import NotationError
from tree_fairseq.source_code.schema import Schema

STATEMENTS = """
CREATE TABLE state (state_name TEXT, area DOUBLE, capital TEXT);
CREATE TABLE city (city_name TEXT, population INT, state_name TEXT REFERENCES state);
"""


@pytest.fixture(params=["text", "database"])
def schema(request, tmp_path) -> Schema:
    path = tmp_path / "what? #1"
    if request.param == "text":
        path.write_text(STATEMENTS)
    else:
        with sqlite3.connect(path) as database:
            database.executescript(STATEMENTS + "INSERT INTO state VALUES ('texas', 1, 'austin');")
        database.close()
    return Schema.load(path)


def test_tables_have_their_columns(schema):
    assert schema.tables == {
        "state": {"state_name": "text", "area": "number", "capital": "text"},
        "city": {"city_name": "text", "population": "number", "state_name": "text"},
    }


@pytest.mark.parametrize(
    ("query", "runs"),
    [
        ("SELECT area FROM state AS s WHERE capital IN (SELECT city_name FROM city WHERE population > s.area)", True),
        ("SELECT COUNT(*) FROM city GROUP BY state_name HAVING MAX(population) > 3", True),
        ("SELECT area FROM state WHERE capital = :name0 AND area > ?", True),
        ("SELECT s.population FROM state AS s", False),
        ("SELECT s.population FROM state AS s WHERE area > ?", False),
        ("SELECT t.area FROM state AS s", False),
        ("SELECT state_name FROM state, city", False),
        ("SELECT 1; SELECT 2", False),
    ],
)
def test_a_query_runs_if_its_names_are_bound(schema, query, runs):
    assert schema.runs(query) == runs


def test_a_file_without_tables_is_refused(tmp_path):
    path = tmp_path / "schema.sql"
    for text, message in (("", "no tables"), ("CREATE TABEL x", "not a schema.*TABEL"), ("SELECT 1", "no tables")):
        path.write_text(text)
        with pytest.raises(NotationError, match=message):
            Schema.load(path)
    path.write_bytes(b"SQLite format 3\0" + b"x" * 200)
    with pytest.raises(NotationError, match="not a schema"):
        Schema.load(path)
