"""Scores runs of translations: metrics, differences, result files."""

from __future__ import annotations

import json

import pytest
import torch

from tests.data_bin.corpora import run_preprocess, write_lines
from tree_fairseq.scoring.bleu import TranslationScorer
from tree_fairseq.scoring.outputs import SCORE_FILE, build_result, read_scores
from tree_fairseq.scoring.runs import parameter_count
from tree_fairseq.support.files import write_json

REFERENCE = ["Ein gut-bekannter Mann sah das Boot (wie immer)!", "Zwei Kinder spielen im Park.", "Der Hund schläft."]
TOKENS = ["ein gut-bekannter mann sah das boot ( wie immer ) !", "zwei kinder spielen im park .", "der hund schläft ."]
SOURCES = ["a well-known man saw the boat ( as always ) !", "two children play .", "the dog sleeps ."]


def write_run(folder, hypotheses):
    folder.mkdir(parents=True)
    rows = [f"S-{number}\tx\nH-{number}\t-1.0\t{text}" for number, text in enumerate(hypotheses)]
    (folder / "generate-test.txt").write_text("\n".join(reversed(rows)) + "\n")


@pytest.fixture
def workspace(tmp_path):
    words = tmp_path / "words"
    (words / "raw").mkdir(parents=True)
    (words / "test.en").write_text("\n".join(SOURCES) + "\n")
    (words / "test.de").write_text("\n".join(TOKENS) + "\n")
    (words / "raw" / "test.de").write_text("\n".join(REFERENCE) + "\n")
    write_run(tmp_path / "runs" / "tree", TOKENS)
    write_run(tmp_path / "runs" / "stock", [line.replace("mann", "hund") for line in TOKENS])
    return tmp_path


def score(workspace, run, *flags):
    arguments = ["--run", str(workspace / "runs" / run), "--words", str(workspace / "words"), "--source-lang", "en"]
    arguments += ["--target-lang", "de", "--lowercase", "--samples", "50", "--length-bounds", "4", *flags]
    return TranslationScorer.main(arguments)


def test_the_result_has_all_metrics(workspace, capsys):
    result_path = workspace / "result.json"
    against = str(workspace / "runs" / "stock")
    flags = ["--sets", "test=2016", "--compound-split", "--primary", "tokenized_bleu_2016", "--describe", "arch=a"]
    assert score(workspace, "tree", *flags, "--against", against, "--result", str(result_path)) == 0
    result = json.loads(result_path.read_text())
    assert result["metric"] == "tokenized_bleu_2016"
    assert result["score"] == result["tokenized_bleu_2016"] == pytest.approx(100)
    assert result["sacrebleu_2016"] == pytest.approx(100)  # the raw reference, detokenised hypothesis, without case
    assert result["references"] == {"test": "untokenised"}
    metrics = ("tokenized_bleu", "sacrebleu", "chrf", "ter", "compound_split_bleu")
    assert set(result["signatures"]) == {f"{metric}_2016" for metric in metrics}
    assert result["chrf_2016"] == pytest.approx(100) and result["ter_2016"] == 0
    assert {row["metric"] for row in result["differences"]} == set(result["signatures"])
    for row in result["differences"]:  # TER counts errors
        assert row["baseline"] == "stock" and row["difference"] * (-1 if row["metric"] == "ter_2016" else 1) > 0
    assert [row["sentences"] for row in result["by_length"]["sacrebleu_2016"]] == [2, 1]
    assert result["description"] == {"run": "tree", "arch": "a"}
    printed = capsys.readouterr().out
    assert "paired bootstrap" in printed and "tok:13a" in printed


def test_the_result_collects_all_runs(workspace):
    for run in ("stock", "tree"):
        assert score(workspace, run, "--result", str(workspace / "result.json")) == 0
    result = json.loads((workspace / "result.json").read_text())
    assert [run["run"] for run in result["runs"]] == ["stock", "tree"]
    assert result["runs"][0]["metrics"]["sacrebleu"] < result["score"]


def test_another_run_may_be_the_main_run(workspace, caplog):
    top = ["--result", str(workspace / "result.json"), "--main-run", str(workspace / "runs" / "tree")]
    assert score(workspace, "stock", *top) == 1
    assert "score that run first" in caplog.text
    assert score(workspace, "tree", *top) == score(workspace, "stock", *top) == 0
    result = json.loads((workspace / "result.json").read_text())
    assert result["description"]["run"] == "tree" and len(result["runs"]) == 2


def test_references_are_detokenised_without_raw_ones(workspace):
    (workspace / "words" / "raw" / "test.de").unlink()
    assert score(workspace, "tree") == 0
    scores = read_scores(workspace / "runs" / "tree" / SCORE_FILE)
    assert scores["references"] == {"test": "detokenised"}
    assert scores["metrics"]["sacrebleu"] == pytest.approx(100)


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda w: (w / "runs/tree/generate-test.txt").unlink(), "generate with that run first"),
        (lambda w: (w / "words/test.de").write_text("a\n"), "has 1 lines, the hypotheses are 3"),
        (lambda w: (w / "words/raw/test.de").write_text("a\n"), "has 1 lines, the hypotheses are 3"),
    ],
)
def test_messages_about_files_that_do_not_fit(workspace, caplog, break_it, message):
    break_it(workspace)
    assert score(workspace, "tree") == 1
    assert message in caplog.text
    assert not (workspace / "runs" / "tree" / "score.json").exists()


def test_an_unknown_primary_metric_is_refused(workspace, caplog):
    assert score(workspace, "tree", "--primary", "meteor", "--result", str(workspace / "result.json")) == 1
    assert "the primary metric meteor was not measured" in caplog.text


def test_the_result_has_metrics_as_numbers_at_the_top_level(tmp_path):
    current = {"metrics": {"bleu": 1.5}, "primary": "bleu", "description": {"run": "x"}, "differences": []}
    write_json(tmp_path / SCORE_FILE, current)
    assert build_result(current, tmp_path) == {
        "metric": "bleu",
        "score": 1.5,
        "bleu": 1.5,
        "description": {"run": "x"},
        "differences": [],
        "runs": [{"run": "x", "metrics": {"bleu": 1.5}, "differences": []}],
    }


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


def test_sources_are_scored_by_the_depth_of_their_trees(workspace, tmp_path, capsys, caplog):
    trees = tmp_path / "trees"
    trees.mkdir()
    lines = [
        "(S (D the) (N man))",
        "(S (NP (N children)) (V play))",
        "(S (X (NP (D the) (N dog))) (V sleeps)) (S (V no))",
    ]
    write_lines(trees / "test.en", lines)
    write_lines(trees / "test.de", TOKENS)
    flags = ["--task", "tree_translation", "--tree-parser", "brackets", "--trainpref", trees / "test"]
    run_preprocess("-s", "en", "-t", "de", *flags, "--testpref", trees / "test", "--destdir", tmp_path / "bin")
    run = workspace / "runs/tree"
    assert score(workspace, "tree", "--source-trees", str(tmp_path / "bin"), "--depth-bounds", "2", "3") == 0
    rows = read_scores(run / SCORE_FILE)["by_depth"]["sacrebleu"]
    # The tags above words count: depths are 2, 3 and 4.
    assert [(row["from"], row["to"], row["sentences"]) for row in rows] == [(0, 2, 1), (3, 3, 1), (4, None, 1)]
    assert all(row["bleu"] == pytest.approx(100) for row in rows)
    assert "sacrebleu by depth of the source's tree  0-2: 100.00 (1)" in capsys.readouterr().out
    write_run(workspace / "runs/short", TOKENS[:2])
    for path in (workspace / "words").rglob("test.*"):
        write_lines(path, path.read_text(encoding="utf-8").splitlines()[:2])
    assert score(workspace, "short", "--source-trees", str(tmp_path / "bin")) == 1
    assert "has 3 trees of test, the hypotheses are 2" in caplog.text
