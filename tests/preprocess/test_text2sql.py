"""text2sql sets: which pair is in which split, and the values of variables beside it."""

from __future__ import annotations

import json

import pytest

from preprocess import text2sql
from preprocess.corpora import CorpusError
from tests.preprocess.files import lines


def entry(query: str, split: str, *questions: tuple[str, str]) -> dict:
    sentences = [{"text": text, "question-split": kind, "variables": {"x0": text[-1]}} for text, kind in questions]
    names = [{"name": "x0"}]
    return {"sql": [query, "SELECT another"], "query-split": split, "sentences": sentences, "variables": names}


@pytest.mark.parametrize(
    ("kind", "train", "valid", "test"),
    [("query", ["q a", "q b"], ["q c"], ["q d", "q e"]), ("question", ["q b", "q c"], ["q a"], ["q d"])],
)
def test_pairs_are_split_by_query_or_by_question(tmp_path, monkeypatch, kind, train, valid, test):
    entries = [
        entry("SELECT  1 ;", "train", ("q a", "8"), ("q  b", "train")),
        entry("SELECT 2 ;", "dev", ("q c", "0")),
        entry("SELECT 3 ;", "test", ("q d", "9"), ("q e", "exclude")),
    ]
    (tmp_path / "small.json").write_text(json.dumps(entries))
    options = ["small", "--data", str(tmp_path), "--output", str(tmp_path / "text"), "--split", kind]
    monkeypatch.setattr("sys.argv", ["text2sql", *options])
    assert text2sql.main() == 0
    queries = {"q a": "SELECT 1 ;", "q b": "SELECT 1 ;", "q c": "SELECT 2 ;", "q d": "SELECT 3 ;", "q e": "SELECT 3 ;"}
    for split, questions in (("train", train), ("valid", valid), ("test", test)):
        assert lines(tmp_path / "text" / f"{split}.en") == questions
        assert lines(tmp_path / "text" / f"{split}.sql") == [queries[question] for question in questions]
        values = [json.loads(line) for line in lines(tmp_path / "text" / f"{split}.variables")]
        assert values == [{"x0": question[-1]} for question in questions]


@pytest.mark.parametrize("kind", ["query", "question"])
def test_without_a_test_split_dev_is_the_test_and_a_tenth_of_training_validates(tmp_path, kind):
    queries = [(f"SELECT {number} ;", "dev" if number % 4 == 0 else "train") for number in range(40)]
    entries = [entry(query, split, (f"q {query}", split), (f"r {query}", split)) for query, split in queries]
    (tmp_path / "small.json").write_text(json.dumps(entries))
    counts = text2sql.prepare(tmp_path / "small.json", tmp_path / "text", kind)
    assert counts == {"train": 54, "valid": 6, "test": 20}
    column = "sql" if kind == "query" else "en"
    train, valid, test = (set(lines(tmp_path / "text" / f"{split}.{column}")) for split in counts)
    assert not train & valid and not train & test and not valid & test


def test_variables_without_quotes_become_parameters_and_the_schema_statements(tmp_path):
    query = """SELECT Talias0.A FROM T AS Talias0 WHERE A = x0 AND B = "x0" AND C LIKE '%x0%' AND x01 = 2"""
    (tmp_path / "small.json").write_text(json.dumps([entry(query, "test", ("q a", "9"))]))
    columns = ["T, A, int(11), YES", "T, B, varchar(3), NO", "-, -, -, -", "U, ORDER, float(3,2), NO"]
    header = "Table Name, Field Name, Type, Is Foreign Key"
    (tmp_path / "small-schema.csv").write_text("\n".join([header, *columns]) + "\n")
    text2sql.prepare(tmp_path / "small.json", tmp_path / "text", "query")
    assert lines(tmp_path / "text" / "test.sql") == [query.replace("A = x0", "A = :x0")]
    assert lines(tmp_path / "text" / "schema.sql") == [
        'CREATE TABLE "T" ("A" int, "B" varchar);',
        'CREATE TABLE "U" ("ORDER" float);',
    ]
    (tmp_path / "small-schema.csv").write_text("table, column\nT, A\n")
    with pytest.raises(CorpusError, match=r"small-schema\.csv: a row without Table Name"):
        text2sql.prepare(tmp_path / "small.json", tmp_path / "text", "query")


def test_a_set_without_a_split_is_refused(tmp_path, monkeypatch, capsys):
    """WikiSQL has splits by question alone."""
    (tmp_path / "wiki.json").write_text(json.dumps([entry("SELECT 1 ;", "N/A", ("q a", "train"))]))
    monkeypatch.setattr("sys.argv", ["text2sql", "wiki", "--data", str(tmp_path), "--output", str(tmp_path / "text")])
    assert text2sql.main() == 1
    assert "wiki.json: the query split of a pair is 'N/A'; give another --split" in capsys.readouterr().err
    assert not (tmp_path / "text").exists()
