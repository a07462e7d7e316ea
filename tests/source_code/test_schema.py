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
        "state": {"state_name": None, "area": "number", "capital": None},
        "city": {"city_name": None, "population": "number", "state_name": None},
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


DUMPS = {
    "mysql": """
        DROP TABLE IF EXISTS `city`;
        /*!40101 SET character_set_client = utf8 */;
        CREATE TABLE `city` (
          `id` int(11) unsigned NOT NULL AUTO_INCREMENT, `name` char(35) NOT NULL DEFAULT '',
          `kind` enum('town','city') DEFAULT NULL COMMENT 'one; or both', PRIMARY KEY (`id`), KEY `name_idx` (`name`)
        ) ENGINE=InnoDB DEFAULT CHARSET=latin1;
        LOCK TABLES `city` WRITE;
        INSERT INTO `city` VALUES (1,'Kabul; old','city');
        CREATE VIEW `names` AS SELECT `name` FROM `city`;
    """,
    "postgres": """
        SET statement_timeout = 0;
        CREATE TYPE public.kinds AS ENUM ('town', 'city');
        CREATE TABLE public.city (
            id bigint DEFAULT nextval('city_id'::regclass) NOT NULL, name character varying(35) NOT NULL,
            kind public.kinds, CONSTRAINT named CHECK ((name <> ''::text))
        );
        ALTER TABLE ONLY public.city ADD CONSTRAINT city_key PRIMARY KEY (id);
        CREATE INDEX name_idx ON public.city USING btree (name);
        CREATE VIEW public.names AS SELECT city.name FROM public.city;
    """,
}


@pytest.mark.parametrize("dump", DUMPS)
def test_statements_of_other_databases_make_the_same_tables(tmp_path, dump, caplog):
    path = tmp_path / "dump.sql"
    path.write_text(DUMPS[dump])
    caplog.set_level("INFO")
    schema = Schema.load(path)
    assert schema.tables == {"city": {"id": "number", "name": None, "kind": None}, "names": {"name": None}}
    assert schema.runs("SELECT kind FROM city WHERE name IN (SELECT name FROM names)")
    assert not schema.runs("SELECT name_idx FROM city")
    assert [record.getMessage() for record in caplog.records] == [f"[trees] schema, read as {dump}: city, names"]


def test_a_file_without_tables_is_refused(tmp_path):
    path = tmp_path / "schema.sql"
    for text, message in (
        ("", "no tables"),
        ("CREATE TABLE t (a, b); CREATE INDEX i on", "incomplete"),
        ("CREATE TABEL x", "not a schema.*TABEL"),
        ("SELECT 1", "no tables"),
    ):
        path.write_text(text)
        with pytest.raises(NotationError, match=message):
            Schema.load(path)
    path.write_bytes(b"SQLite format 3\0" + b"x" * 200)
    with pytest.raises(NotationError, match="not a schema"):
        Schema.load(path)
