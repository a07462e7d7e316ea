"""Scores runs of all kinds, from files to files: what every kind shares."""

from __future__ import annotations

import json

import pytest
import torch

from tests.scoring.runs import outcomes, score, scores, write_lines, write_outputs
from tree_fairseq.scoring.__main__ import SCORERS, main
from tree_fairseq.scoring.runs import parameter_count

ROWS = ["good film\t1", "so bad\t0", "it is fine\t1", "no\t0", "a long one that is dreadful\t0"]
PREDICTED = ["1", "0", "0", "0", "1"]


@pytest.fixture
def classes(tmp_path):
    write_lines(tmp_path / "text" / "test.tsv", ROWS)
    write_outputs(tmp_path / "runs" / "tree", PREDICTED)
    return tmp_path


def classify(folder, *flags, run="tree", references="text"):
    return score("classification", folder, "--references", folder / references, *flags, run=run)


def test_the_result_has_all_metrics_of_classes(classes, capsys):
    flags = ["--describe", "arch=a", "--result", classes / "result.json", "--length-bounds", 2, 3]
    assert classify(classes, *flags) == 0
    result = json.loads((classes / "result.json").read_text())
    assert result["metric"] == "accuracy" and result["score"] == result["accuracy"] == 60
    one, zero = 1 / 2, 2 / 3  # F1: precision and recall of each are equal
    assert result["macro_f1"] == pytest.approx(100 * (one + zero) / 2)
    assert result["confusion"]["test"] == {"classes": ["0", "1"], "counts": [[2, 1], [1, 1]]}
    assert [(row["from"], row["to"], row["sentences"], row["accuracy"]) for row in result["by_length"]["test"]] == [
        (0, 2, 3, 100),
        (3, 3, 1, 0),
        (4, None, 1, 0),
    ]
    assert result["sentences"] == {"test": 5} and result["runs"][0]["arch"] == "a"
    printed = capsys.readouterr().out
    assert "accuracy  60.00" in printed and "rows are right, columns predicted" in printed
    assert outcomes(classes) == {"test": {"accuracy": "11010"}}


def test_classes_of_trees_are_those_of_their_roots(tmp_path):
    write_lines(tmp_path / "text" / "test.trees", ["(3 (2 a) (4 film))", "(0 dreadful)"])
    write_outputs(tmp_path / "runs" / "tree", ["3", "4"])
    assert classify(tmp_path, "--length-bounds", 1) == 0
    found = scores(tmp_path)
    assert found["metrics"]["accuracy"] == 50 and found["confusion"]["test"]["classes"] == ["0", "3", "4"]
    assert [(row["sentences"], row["accuracy"]) for row in found["by_length"]["test"]] == [(1, 0), (1, 100)]


def test_groups_are_read_beside_the_references(classes, capsys):
    groups = ["attractors_0", "attractors_1", "attractors_1", "", "attractors_0 long"]
    write_lines(classes / "text" / "test.groups", groups)
    assert classify(classes) == 0
    found = scores(classes)
    assert {name: (row["sentences"], row["accuracy"]) for name, row in found["groups"]["test"].items()} == {
        "attractors_0": (2, 50), "attractors_1": (2, 50), "long": (1, 0),
    }  # fmt: skip
    assert (found["metrics"]["accuracy_attractors_1"], found["metrics"]["accuracy_long"]) == (50, 0)
    assert "attractors_0" in capsys.readouterr().out


def test_classes_are_compared_with_those_of_another_run(classes):
    write_outputs(classes / "runs" / "stock", ["0", "1", "0", "0", "2"])
    assert classify(classes, "--against", classes / "runs" / "stock") == 0
    row = scores(classes)["differences"][0]
    assert (row["metric"], row["baseline"], row["difference"]) == ("accuracy", "stock", 40)
    assert 0 < row["p_value"] < 1 and row["interval"][0] <= 0 < row["interval"][1] and "bootstrap" in row["signature"]


def test_labels_of_sets_end_the_names_of_metrics(classes):
    write_lines(classes / "text" / "test1.tsv", ["x\t1"])
    write_outputs(classes / "runs" / "tree", ["1"], "test1")
    assert classify(classes, "--sets", "test=", "test1=new") == 0
    metrics = scores(classes)["metrics"]
    assert (metrics["accuracy"], metrics["accuracy_new"], metrics["macro_f1_new"]) == (60, 100, 100)


def test_references_may_be_one_file(classes, caplog):
    assert classify(classes, references="text/test.tsv") == 0
    assert scores(classes)["metrics"]["accuracy"] == 60
    assert classify(classes, "--sets", "test=", "test1=x", references="text/test.tsv") == 1
    assert "one file for 2 sets" in caplog.text


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda w: (w / "runs/tree/generate-test.txt").unlink(), "generate with that run first"),
        (lambda w: write_outputs(w / "runs/tree", PREDICTED[:4]), "sentence 4 was not translated"),
        (lambda w: write_lines(w / "runs/tree/generate-test.txt", ["H-1\t-1\t0"]), "sentence 0 was not translated"),
        (lambda w: (w / "text/test.tsv").unlink(), "test.tsv: there is no such file"),
        (lambda w: (w / "text/test.tsv").write_text(""), "is empty"),
        (lambda w: write_lines(w / "text/test.tsv", [*ROWS[:4], "no class"]), "test.tsv:5: the line has no class"),
        (lambda w: write_lines(w / "text/test.tsv", [*ROWS[:4], "no class\t"]), "test.tsv:5: the line has no class"),
        (lambda w: write_lines(w / "text/test.groups", ["a"]), "has 1 lines"),
    ],
)
def test_files_that_do_not_fit_are_named(classes, caplog, break_it, message):
    break_it(classes)
    assert classify(classes) == 1
    assert message in caplog.text
    assert not (classes / "runs/tree/score.json").exists()


def test_a_baseline_has_outputs(classes, caplog):
    assert classify(classes, "--against", classes / "runs" / "stock") == 1
    assert "stock/generate-test.txt is missing: generate with that run first" in caplog.text


def test_the_result_collects_all_runs(classes):
    write_outputs(classes / "runs" / "stock", ["0", "1", "0", "0", "1"])
    flags = ["--result", classes / "result.json"]
    assert classify(classes, *flags, run="stock") == classify(classes, *flags) == 0
    result = json.loads((classes / "result.json").read_text())
    assert result["description"]["run"] == "tree" and [run["run"] for run in result["runs"]] == ["stock", "tree"]
    assert result["runs"][0]["metrics"]["accuracy"] < result["score"]


def test_an_unknown_primary_metric_is_refused(classes, caplog):
    assert classify(classes, "--primary", "meteor", "--result", classes / "result.json") == 1
    assert "the primary metric meteor was not measured" in caplog.text


def test_tied_matrices_count_once():
    table = torch.arange(12.0).reshape(4, 3)
    model = {
        "encoder.embed.weight": table,
        "decoder.out.weight": table.clone(),  # as saved from a GPU
        "a.bias": torch.zeros(3),
        "b.bias": torch.zeros(3),
        "encoder.version": torch.ones(1),
        "decoder.embed_positions._float_tensor": torch.ones(1),
    }
    assert parameter_count(model) == 12 + 3 + 3


NUMBERS = ["a b\tc\t0", "d\te\t1", "f\tg\t2", "h\ti\t5.000"]


@pytest.fixture
def numbers(tmp_path):
    write_lines(tmp_path / "text" / "test.tsv", NUMBERS)
    write_outputs(tmp_path / "runs" / "tree", ["0", "2", "1", "9"])
    write_outputs(tmp_path / "runs" / "stock", ["5", "2", "1", "0"])
    return tmp_path


def test_numbers_are_compared_by_a_bootstrap(numbers, capsys):
    flags = ["--references", numbers / "text"]
    assert score("regression", numbers, *flags, run="stock") == 0
    assert score("regression", numbers, *flags, "--against", numbers / "runs" / "stock") == 0
    found, stock = scores(numbers), scores(numbers, "stock")["metrics"]
    assert found["metrics"] == {
        "pearson": pytest.approx(100 * 25 / 700**0.5), "spearman": pytest.approx(80), "mean_squared_error": 4.5,
    }  # fmt: skip
    rows = {row["metric"]: row for row in found["differences"]}
    assert {name: row["difference"] for name, row in rows.items()} == {
        name: pytest.approx(found["metrics"][name] - stock[name]) for name in stock
    }
    assert 0 < rows["pearson"]["p_value"] < 1 and "p_value" not in rows["spearman"]
    assert "p_value" in rows["mean_squared_error"] and "interval" in rows["pearson"]
    assert "stock" in capsys.readouterr().out and found["sentences"] == {"test": 4}


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda w: write_outputs(w / "runs/tree", ["pos", "2", "1", "9"]), "hypothesis 1: 'pos' is not a number"),
        (lambda w: write_lines(w / "text/test.tsv", [*NUMBERS[:3], "a\tb\tc"]), "test.tsv:4: the last column is not"),
    ],
)
def test_what_is_not_a_number_is_named(numbers, caplog, break_it, message):
    break_it(numbers)
    assert score("regression", numbers, "--references", numbers / "text") == 1
    assert message in caplog.text


def test_scorers_are_listed_and_have_options(capsys):
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in SCORERS)
    assert main(["blue"]) == 2
    assert "Did you mean bleu?" in capsys.readouterr().err
    for name in SCORERS:
        assert main([name, "--help"]) == 0 and "usage" in capsys.readouterr().out
