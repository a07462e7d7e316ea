"""Scores runs of predicted numbers, from files to files, and ``--scoring regression``."""

from __future__ import annotations

import json

import pytest
from fairseq.data import Dictionary
from fairseq.scoring import build_scorer

import tree_fairseq  # noqa: F401  (registers the scorer)
from tree_fairseq.scoring.regression import RegressionRuns

ROWS = ["a b\tc\t0", "d\te\t1", "f\tg\t2", "h\ti\t5.000"]
PREDICTED = ["0", "2", "1", "9"]
# Means 2 and 3; deviations -2 -1 0 3 and -3 -1 -2 6 give 25 / (14 * 50) ** 0.5. Ranks 0 1 2 3 and 0 2 1 3.
PEARSON, SPEARMAN, ERROR = 100 * 25 / 700**0.5, 80, 18 / 4


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def write_run(folder, predicted):
    rows = [
        row
        for n, text in enumerate(predicted)
        for row in (f"S-{n}\tx", f"T-{n}\t1", f"H-{n}\t0.0\t{text}", f"P-{n}\t0.0")
    ]
    write_lines(folder / "generate-test.txt", [*reversed(rows), "Generate test with beam=5: Pearson"])


@pytest.fixture
def workspace(tmp_path):
    write_lines(tmp_path / "text" / "test.tsv", ROWS)
    write_run(tmp_path / "runs" / "tree", PREDICTED)
    return tmp_path


def score(folder, *flags, run="tree"):
    return RegressionRuns.main(["--run", str(folder / "runs" / run), "--references", str(folder / "text"), *flags])


def test_metrics_and_the_result(workspace, capsys):
    write_run(workspace / "runs" / "stock", ["5", "2", "1", "0"])
    assert score(workspace, run="stock") == 0
    assert (
        score(workspace, "--against", str(workspace / "runs" / "stock"), "--result", str(workspace / "result.json"))
        == 0
    )
    result = json.loads((workspace / "result.json").read_text())
    assert result["metric"] == "pearson" and result["score"] == result["pearson"] == pytest.approx(PEARSON)
    assert (result["spearman"], result["mean_squared_error"]) == (pytest.approx(SPEARMAN), ERROR)
    stock = json.loads((workspace / "runs/stock/score.json").read_text())["metrics"]
    rows = {row["metric"]: row for row in result["differences"]}
    assert {name: row["difference"] for name, row in rows.items()} == {
        name: pytest.approx(result[name] - stock[name]) for name in stock
    }
    assert 0 < rows["pearson"]["p_value"] < 1 and "p_value" not in rows["spearman"]
    assert "p_value" in rows["mean_squared_error"] and "interval" in rows["pearson"]
    assert "over stock" in capsys.readouterr().out and result["sentences"] == {"test": 4}


def test_the_scorer_of_fairseq_generate():
    scorer = build_scorer("regression", Dictionary())
    assert scorer.result_string() == "no examples"
    for row, predicted in zip(ROWS, PREDICTED):
        scorer.add_string(row.split("\t")[-1], predicted)
    assert scorer.score() == pytest.approx(PEARSON)
    assert scorer.result_string() == f"Pearson {PEARSON:.2f}, Spearman 80.00, mean squared error 4.5000, 4 examples"


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda w: (w / "runs/tree/generate-test.txt").unlink(), "generate with that run first"),
        (lambda w: write_run(w / "runs/tree", PREDICTED[:3]), "has 3 predictions, the references are 4"),
        (lambda w: write_run(w / "runs/tree", ["pos", *PREDICTED[1:]]), "'pos' is not a number"),
        (lambda w: (w / "text/test.tsv").unlink(), "test.tsv is missing"),
        (lambda w: write_lines(w / "text/test.tsv", []), "is empty"),
        (
            lambda w: write_lines(w / "text/test.tsv", [*ROWS[:3], "a\tb\tc"]),
            "test.tsv:4: the last column is not a number",
        ),
        (lambda w: write_lines(w / "text/test.tsv", [*ROWS[:3], "1"]), "test.tsv:4: the last column is not a number"),
    ],
)
def test_messages_about_files_that_do_not_fit(workspace, caplog, break_it, message):
    break_it(workspace)
    assert score(workspace) == 1
    assert message in caplog.text
