"""Runs that generate programs: right ones, those that parse, those that training has, and what queries return."""

from __future__ import annotations

import json
import sqlite3

import pytest

from tests.scoring.runs import common, score, scores, write_lines, write_outputs
from tree_fairseq.data_bin.manifest import FileRecord, Manifest
from tree_fairseq.data_bin.records import SymbolSideRecord
from tree_fairseq.scoring.__main__ import main
from tree_fairseq.scoring.program_measures import TreeF1
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.symbols import SymbolEncoding
from tree_fairseq.trees.tree import Tree

JAVA = ["int f(){return a+b;}", "void g(int x){x=1;}", "int h(){return 0;}", "int k() { broken"]
SAME = ["int f() {return a + b;}", "void g(int x){x=2;}", "int h(){return 0", JAVA[3]]
SQL = ["SELECT a FROM t WHERE b = 'name0'", "SELECT b FROM t ORDER BY a", "SELECT a FROM t WHERE a > 9"]
QUERIES = ["select  a from t where 'name0' = b", "SELECT b FROM t", "SELECT a FROM u"]


@pytest.fixture
def java(tmp_path):
    write_lines(tmp_path / "text" / "test.java", JAVA)
    write_outputs(tmp_path / "runs" / "tree", SAME)
    return tmp_path


@pytest.fixture
def sql(tmp_path):
    write_lines(tmp_path / "text" / "test.sql", SQL)
    write_lines(tmp_path / "text" / "test.variables", ['{"name0": "x"}', "{}", "{}"])
    write_outputs(tmp_path / "runs" / "tree", QUERIES)
    with sqlite3.connect(tmp_path / "data.sqlite") as database:
        database.execute("CREATE TABLE t (a INTEGER, b TEXT)")
        database.executemany("INSERT INTO t VALUES (?, ?)", [(2, "x"), (1, "y"), (2, "z")])
    database.close()
    return tmp_path


def judge(folder, *flags, notation="java"):
    name = "sql" if notation == "sql" else "code"
    given = ["--references", folder / "text", "--target-lang", notation, "--notation", notation]
    return score(name, folder, *given, *flags)


def test_programs_are_compared_as_trees_and_as_texts(java, capsys, caplog):
    assert judge(java, "--length-bounds", 10, "--depth-bounds", 1, "--result", java / "result.json") == 0
    found = scores(java)
    metrics = found["metrics"]
    assert [metrics[name] for name in ("exact_match", "exact_text", "parses")] == [25, 25, 50]
    assert 0 < metrics["codebleu"] < 100 and 0 < metrics["bleu"] < 100 and 0 < metrics["tree_f1"] < 100
    assert found["references_that_do_not_parse"] == {"test": 1} and found["outputs_that_do_not_parse"] == {"test": 2}
    assert "1 of 4 references are not java, and no output is right there; the first is 4" in caplog.text
    assert sum(row["sentences"] for row in found["by_size"]["test"]) == 4 and len(found["by_depth"]["test"]) == 2
    assert json.loads((java / "result.json").read_text())["metric"] == "exact_match"
    printed = capsys.readouterr().out
    assert "no output is right: 1" in printed and "CodeXGLUE" in printed and "nodes" in printed


def test_runs_are_compared_in_all_metrics(java):
    write_outputs(java / "runs" / "stock", JAVA[:2] + ["int", "int"])
    assert judge(java, "--against", java / "runs" / "stock") == 0
    rows = {row["metric"]: row for row in scores(java)["differences"]}
    assert {"exact_match", "exact_text", "parses", "bleu", "codebleu", "tree_f1", "ast_match"} <= set(rows)
    assert rows["exact_match"]["difference"] == -25
    assert 0 < rows["bleu"]["p_value"] <= 1 and "bootstrap of 4 groups" in rows["bleu"]["signature"]
    write_lines(java / "text" / "test.java", [JAVA[0]] * 3 + [JAVA[3]])  # three descriptions of one program
    assert judge(java, "--against", java / "runs" / "stock") == 0
    assert all("bootstrap of 2 groups" in row["signature"] for row in scores(java)["differences"])


def test_programs_that_training_has_are_a_group(java):
    write_lines(java / "train.java", ["int f(){return a   +b;}", "int f(", JAVA[3]])
    write_lines(java / "text" / "test.groups", ["one", "one", "", "two"])
    assert judge(java, "--training", java / "train.java") == 0
    groups = scores(java)["groups"]["test"]
    found = {name: (row["sentences"], row["exact_match"]) for name, row in groups.items()}
    assert found == {"seen": (2, 50), "unseen": (2, 0), "one": (2, 50), "two": (1, 0)}
    assert scores(java)["metrics"]["exact_match_seen"] == 50


def test_f1_of_trees_counts_nodes_with_their_children():
    language = notation_named("java")

    def shapes(tree):
        return [(node.label, [child.label for child in node.children]) for node in language.whole(tree).preorder()]

    trees, others = ([language.read(text) for text in side] for side in (JAVA[:3], [*SAME[:2], "int h(){return 0+0;}"]))
    pairs = [(shapes(tree), shapes(other)) for tree, other in zip(trees, others)]
    expected = 200 * sum(common(*pair) for pair in pairs) / sum(len(one) + len(other) for one, other in pairs)
    assert TreeF1(trees, others).metrics(range(3))["tree_f1"] == pytest.approx(expected)
    assert TreeF1(trees, [None] * 3).metrics([0])["tree_f1"] == 0
    assert TreeF1([None], [None]).metrics([0])["tree_f1"] == 0
    assert TreeF1([Tree("x")], [Tree("x")]).metrics([0])["tree_f1"] == 100


def test_outputs_of_a_stock_model_are_symbols_or_subwords(java):
    """Symbols of trees under fairseq's task, and joined subwords in the D- lines."""
    encoding = SymbolEncoding("dfs", "none")
    record = SymbolSideRecord("target", "tree", "java", "dfs", "none", "^", 16)
    (java / "data").mkdir()
    files = {f"dict.{language}.txt": FileRecord(0, "") for language in ("cs", "java")}
    Manifest("cs", "java", files=files, symbols={"java": record}).save(java / "data")
    language = notation_named("java")
    symbols = [" ".join(encoding.encode(language.read(text))) for text in JAVA[:3]]
    given = ["--references", java / "text", "--data", java / "data"]
    for outputs in ([*symbols, "broken^2"], SAME):
        write_outputs(java / "runs" / "tree", outputs)
        assert score("code", java, *given, "--symbols") == 0
        metrics = scores(java)["metrics"]
        assert (metrics["exact_match"], metrics["parses"]) == ((75, 75) if outputs != SAME else (25, 50))
    rows = [f"H-{n}\t-1\t{text.replace('e', 'e@@ ')}\nD-{n}\t-1\t{text}" for n, text in enumerate(JAVA)]
    write_lines(java / "runs" / "tree" / "generate-test.txt", rows)
    assert score("code", java, *given) == 0 and scores(java)["metrics"]["exact_text"] == 100


def test_programs_that_generation_did_not_finish_are_wrong(java):
    rows = [f"H-{n}\t-1\t{text}\nI-{n}\t3{' partial invalid' * (n == 0)}" for n, text in enumerate(JAVA)]
    write_lines(java / "runs" / "tree" / "generate-test.txt", rows)
    assert judge(java) == 0
    assert scores(java)["metrics"]["exact_match"] == 50 and scores(java)["metrics"]["parses"] == 50


def test_queries_are_scored_by_what_they_return(sql, capsys):
    flags = ["--database", sql / "data.sqlite", "--training", sql / "text" / "test.sql"]
    assert judge(sql, *flags, notation="sql") == 0
    found = scores(sql)
    third = pytest.approx(100 / 3)
    assert found["metrics"]["exact_match"] == 0 and found["metrics"]["parses"] == 100
    assert found["metrics"]["execution"] == third and found["metrics"]["runs"] == pytest.approx(200 / 3)
    assert found["outputs_that_do_not_run"] == {"test": 1} and found["references_that_do_not_run"] == {"test": 0}
    assert found["references_without_rows"] == {"test": 1} and found["groups"]["test"]["seen"]["execution"] == third
    printed = capsys.readouterr().out
    assert "outputs that do not run: 1" in printed and "any query without rows is right: 1" in printed
    write_outputs(sql / "runs" / "stock", SQL)
    assert judge(sql, *flags[:2], "--against", sql / "runs" / "stock", notation="sql") == 0
    rows = {row["metric"]: row for row in scores(sql)["differences"]}
    assert set(rows) == {"exact_match", "exact_text", "parses", "execution", "runs", "tree_f1"}
    assert rows["execution"]["difference"] < 0 < rows["execution"]["p_value"]


def test_queries_in_another_dialect_are_translated_for_the_database(sql):
    write_lines(sql / "text" / "test.sql", ["SELECT LEN(b) FROM t", "SELECT TOP 1 b FROM t", "SELECT b FROM t"])
    write_outputs(sql / "runs" / "tree", ["SELECT LEN(b) AS n FROM t", "SELECT TOP 1 [b] FROM t", "SELECT TOP x FROM"])
    given = ("--references", sql / "text", "--target-lang", "sql", "--notation", "sql:tsql")
    assert score("sql", sql, *given, "--database", sql / "data.sqlite") == 0
    found = scores(sql)
    assert found["references_that_do_not_run"] == {"test": 0} and found["outputs_that_do_not_run"] == {"test": 1}
    assert found["metrics"]["execution"] == pytest.approx(200 / 3)


def test_sql_needs_neither_a_database_nor_a_notation(sql):
    assert score("sql", sql, "--references", sql / "text" / "test.sql") == 0
    assert "execution" not in scores(sql)["metrics"] and scores(sql)["metrics"]["parses"] == 100


def test_files_of_hypotheses_and_of_seeds_have_the_same_metrics(sql, tmp_path, capsys):
    write_lines(tmp_path / "ours", SQL)
    write_lines(tmp_path / "theirs", QUERIES)
    given = ["--references", sql / "text/test.sql", "--metrics", "code", "execution", "--notation", "sql"]
    given += ["--database", sql / "data.sqlite", "--samples", 20, "--output", tmp_path / "scores.json"]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    assert main(list(map(str, [ours, "--baseline", theirs, *given]))) == 0
    found = json.loads((tmp_path / "scores.json").read_text())
    assert found["metrics"]["execution"] == found["metrics"]["exact_match"] == 100
    assert found["baselines"][str(theirs)]["runs"] == pytest.approx(200 / 3)
    assert main(list(map(str, ["seeds", ours, ours, "--baseline", theirs, ours, *given]))) == 0
    rows = json.loads((tmp_path / "scores.json").read_text())["metrics"]
    assert rows["execution"]["difference"] == pytest.approx(100 / 3) and "p_value" in rows["tree_f1"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--notation", "funql"], "not a programming language"),
        (["--notation", "cobol"], "no notation 'cobol'"),
        (["--training", "nowhere"], "nowhere is missing: --training takes"),
    ],
)
def test_options_that_do_not_fit_are_named(java, caplog, flags, message):
    assert judge(java, *flags) == 1
    assert message in caplog.text


def test_a_metric_of_queries_needs_a_database(sql, caplog):
    given = [sql / "text/test.sql", "--references", sql / "text/test.sql", "--metrics", "execution"]
    assert main(list(map(str, given))) == 1
    assert "--database is missing" in caplog.text
