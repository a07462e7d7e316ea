"""Scores runs of predicted classes, from files to files."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tree_fairseq.scoring.predictions import ClassificationRuns, ClassJudgement

ROWS = ["good film\t1", "so bad\t0", "it is fine\t1", "no\t0", "a long one that is dreadful\t0"]
PREDICTED = ["1", "0", "0", "0", "1"]


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def write_outputs(folder, names, subset="test"):
    """Writes the output of fairseq-generate: in batch order, with the probabilities of all classes."""
    rows = []
    for number, name in reversed(list(enumerate(names))):
        other = "0" if name == "1" else "1"
        rows += [
            f"S-{number}\tx",
            f"T-{number}\t1",
            f"H-{number}\t-0.1\t{name}",
            f"P-{number}\t-0.1",
            f"C-{number}\t{name} 0.9\t{other} 0.1",
        ]
    write_lines(folder / f"generate-{subset}.txt", [*rows, "Generate test with beam=5: accuracy 1"])


def score(folder, *flags, run="tree", references="text"):
    return ClassificationRuns.main(
        ["--run", str(folder / "runs" / run), "--references", str(folder / references), *flags]
    )


def scores(folder, run="tree"):
    return json.loads((folder / "runs" / run / "score.json").read_text())


@pytest.fixture
def workspace(tmp_path):
    write_lines(tmp_path / "text" / "test.tsv", ROWS)
    write_outputs(tmp_path / "runs" / "tree", PREDICTED)
    return tmp_path


def test_metrics_and_the_result(workspace, capsys):
    assert (
        score(
            workspace, "--describe", "arch=a", "--result", str(workspace / "result.json"), "--length-bounds", "2", "3"
        )
        == 0
    )
    result = json.loads((workspace / "result.json").read_text())
    assert result["metric"] == "accuracy" and result["score"] == result["accuracy"] == 60
    one, zero = 1 / 2, 2 / 3  # F1: precision and recall of each are equal
    assert result["macro_f1"] == pytest.approx(100 * (one + zero) / 2)
    assert result["confusion"]["test"] == {"classes": ["0", "1"], "counts": [[2, 1], [1, 1]]}
    assert result["by_class"]["test"]["1"] == {"sentences": 2, "precision": 50, "recall": 50, "f1": 50}
    assert [(row["from"], row["to"], row["sentences"], row["accuracy"]) for row in result["by_length"]["test"]] == [
        (0, 2, 3, 100),
        (3, 3, 1, 0),
        (4, None, 1, 0),
    ]
    assert result["sentences"] == {"test": 5} and result["runs"][0]["arch"] == "a"
    printed = capsys.readouterr().out
    assert "accuracy = 60.00" in printed and "confusion of test" in printed
    assert json.loads((workspace / "runs/tree/outcomes.json").read_text()) == {"test": {"accuracy": "11010"}}


def test_classes_of_trees_are_their_roots(tmp_path):
    write_lines(tmp_path / "text" / "test.trees", ["(3 (2 a) (4 film))", "(0 dreadful)"])
    write_outputs(tmp_path / "runs" / "tree", ["3", "4"])
    assert score(tmp_path, "--length-bounds", "1") == 0
    found = scores(tmp_path)
    assert found["metrics"]["accuracy"] == 50 and found["confusion"]["test"]["classes"] == ["0", "3", "4"]
    assert [(row["sentences"], row["accuracy"]) for row in found["by_length"]["test"]] == [(1, 0), (1, 100)]


def test_groups_are_read_beside_the_references(workspace, capsys):
    write_lines(
        workspace / "text" / "test.groups", ["attractors_0", "attractors_1", "attractors_1", "", "attractors_0 long"]
    )
    assert score(workspace, "--group-metrics", "attractors_1", "absent") == 0
    found = scores(workspace)
    assert {name: (row["sentences"], row["accuracy"]) for name, row in found["groups"]["test"].items()} == {
        "attractors_0": (2, 50), "attractors_1": (2, 50), "long": (1, 0),
    }  # fmt: skip
    assert found["metrics"]["accuracy_attractors_1"] == 50 and "accuracy_long" not in found["metrics"]
    assert "accuracy of test, long: 0.00 (1)" in capsys.readouterr().out


def test_differences_from_another_run(workspace):
    write_outputs(workspace / "runs" / "stock", ["0", "1", "0", "0", "1"])
    assert score(workspace, run="stock") == 0
    assert score(workspace, "--against", str(workspace / "runs" / "stock")) == 0
    (row,) = scores(workspace)["differences"]
    assert (row["metric"], row["baseline"], row["difference"], row["only_system"], row["only_baseline"]) == (
        "accuracy",
        "stock",
        40,
        2,
        0,
    )
    assert row["p_value"] == 0.5 and "McNemar" in row["signature"]


def test_labels_of_sets_end_the_names_of_metrics(workspace):
    write_lines(workspace / "text" / "test1.tsv", ["x\t1"])
    write_outputs(workspace / "runs" / "tree", ["1"], "test1")
    assert score(workspace, "--sets", "test=", "test1=new") == 0
    metrics = scores(workspace)["metrics"]
    assert (metrics["accuracy"], metrics["accuracy_new"], metrics["macro_f1_new"]) == (60, 100, 100)


def test_references_may_be_one_file(workspace, caplog):
    assert score(workspace, references="text/test.tsv") == 0
    assert scores(workspace)["metrics"]["accuracy"] == 60
    assert score(workspace, "--sets", "test=", "test1=x", references="text/test.tsv") == 1
    assert "one file for 2 sets" in caplog.text


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda w: (w / "runs/tree/generate-test.txt").unlink(), "generate with that run first"),
        (lambda w: write_outputs(w / "runs/tree", PREDICTED[:4]), "has 4 predictions, the references are 5"),
        (lambda w: write_lines(w / "runs/tree/generate-test.txt", ["H-1\t-1\t0"]), "sentence 0 has no hypothesis"),
        (lambda w: (w / "text/test.tsv").unlink(), "test.tsv (or .trees) is missing"),
        (lambda w: (w / "text/test.tsv").write_text(""), "is empty"),
        (lambda w: write_lines(w / "text/test.tsv", [*ROWS[:4], "no class"]), "test.tsv:5: the line has no class"),
        (lambda w: write_lines(w / "text/test.tsv", [*ROWS[:4], "no class\t"]), "test.tsv:5: the line has no class"),
        (lambda w: write_lines(w / "text/test.groups", ["a"]), "has 1 lines"),
    ],
)
def test_messages_about_files_that_do_not_fit(workspace, caplog, break_it, message):
    break_it(workspace)
    assert score(workspace) == 1
    assert message in caplog.text
    assert not (workspace / "runs/tree/score.json").exists()


def test_a_baseline_must_be_scored_first(workspace, caplog):
    assert score(workspace, "--against", str(workspace / "runs" / "stock")) == 1
    assert "outcomes.json is missing: score that run first" in caplog.text


def f1(pairs, name):
    """Computes the harmonic mean of precision and recall; 0 if no prediction is right."""
    right = sum(ours == theirs == name for ours, theirs in pairs)
    predicted, there = sum(ours == name for ours, _ in pairs), sum(theirs == name for _, theirs in pairs)
    return 2 * (right / predicted) * (right / there) / (right / predicted + right / there) if right else 0.0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abcd")), min_size=1, max_size=40), st.data())
def test_metrics_equal_their_definitions(pairs, data):
    judgement = ClassJudgement([ours for ours, _ in pairs], [theirs for _, theirs in pairs])
    some = data.draw(st.lists(st.integers(0, len(pairs) - 1), min_size=1, unique=True))
    for indices, chosen in ((None, pairs), (some, [pairs[index] for index in some])):
        names = sorted({name for pair in chosen for name in pair})
        metrics = judgement.metrics(indices)
        assert metrics["accuracy"] == pytest.approx(100 * sum(ours == theirs for ours, theirs in chosen) / len(chosen))
        assert metrics["macro_f1"] == pytest.approx(100 * sum(f1(chosen, name) for name in names) / len(names))
    counts = Counter((theirs, ours) for ours, theirs in pairs)
    names = judgement.confusion()["classes"]
    assert judgement.confusion()["counts"] == [[counts[right, ours] for ours in names] for right in names]
    for name, row in judgement.by_class().items():
        assert row["f1"] == pytest.approx(100 * f1(pairs, name)) and row["sentences"] == sum(
            theirs == name for _, theirs in pairs
        )
