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
        /*!50001 CREATE VIEW `names` AS SELECT
         1 AS `name`*/;
        DELIMITER ;;
        CREATE DEFINER=`root`@`localhost` PROCEDURE `p`(IN x INT)
        BEGIN
          CREATE TEMPORARY TABLE `other` (`id` int);
          IF x THEN SELECT 2; END IF;
        END ;;
        DELIMITER ;
        /*!50001 DROP VIEW IF EXISTS `names`*/;
        /*!50001 CREATE ALGORITHM=UNDEFINED */
        /*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */
        /*!50001 VIEW `names` AS select `city`.`name` AS `name` from `city` */;
    """,
    "postgres": r"""
        \restrict 5Yy8abc
        SET statement_timeout = 0;
        CREATE TYPE public.kinds AS ENUM ('town', 'city');
        CREATE TABLE public.city (
            id bigint DEFAULT nextval('city_id'::regclass) NOT NULL, name character varying(35) NOT NULL,
            kind public.kinds, CONSTRAINT named CHECK ((name <> ''::text))
        );
        ALTER TABLE ONLY public.city ADD CONSTRAINT city_key PRIMARY KEY (id);
        CREATE FUNCTION public.f() RETURNS TABLE(x integer) LANGUAGE sql AS $$ SELECT 1; $$;
        COPY public.city (id, name, kind) FROM stdin;
        1\tO'Hara; old\t\N
        \.
        CREATE INDEX name_idx ON public.city USING btree (name);
        CREATE MATERIALIZED VIEW public.names AS
         SELECT city.name FROM public.city
          WITH NO DATA;
        CREATE OR REPLACE VIEW public.names AS SELECT city.name FROM public.city;
        \unrestrict 5Yy8abc
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


def test_tables_and_views_of_a_dump_that_cannot_be_read_are_counted(tmp_path, caplog):
    path = tmp_path / "dump.sql"
    unread = """
        CREATE TABLE t1 PARTITION OF t FOR VALUES FROM ('2006-02-01') TO ('2006-03-01');
        CREATE VIEW years AS SELECT EXTRACT(year FROM d) AS year FROM t;
    """
    path.write_text(f"CREATE TABLE t (d date DEFAULT now(), id serial); -- rows\nINSERT INTO t VALUES (1);\n{unread}")
    assert Schema.load(path).tables == {"t": {"d": None, "id": "number"}}
    [warning] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "2 statements of tables and views cannot be read; the first: CREATE TABLE t1 PARTITION" in warning


def test_a_database_may_have_what_its_tables_do_not_need(tmp_path):
    path = tmp_path / "app.sqlite"
    with sqlite3.connect(path) as database:
        database.create_function("own", 1, abs, deterministic=True)
        database.executescript(
            "CREATE TABLE t (a INT, twice INT AS (2 * a)); CREATE INDEX i ON t (own(a));"
            "CREATE VIEW gone AS SELECT b FROM u; CREATE VIRTUAL TABLE texts USING fts5(body);"
        )
    database.close()
    schema = Schema.load(path)
    assert schema.tables["t"] == {"a": "number", "twice": "number"} and "gone" not in schema.tables
    assert schema.runs("SELECT twice FROM t") and schema.runs("SELECT body FROM texts WHERE texts MATCH 'x'")


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
