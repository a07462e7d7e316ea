"""Runs of translations and of summaries."""

from __future__ import annotations

import importlib.util

import pytest

from tests.data_bin.corpora import run_preprocess
from tests.scoring.runs import score, scores, write_lines, write_outputs
from tree_fairseq.scoring.text_runs import split_compounds

REFERENCE = ["Ein gut-bekannter Mann sah das Boot (wie immer)!", "Zwei Kinder spielen im Park.", "Der Hund schläft."]
TOKENS = ["ein gut-bekannter mann sah das boot ( wie immer ) !", "zwei kinder spielen im park .", "der hund schläft ."]
SOURCES = ["a well-known man saw the boat ( as always ) !", "two children play .", "the dog sleeps ."]


@pytest.fixture
def workspace(tmp_path):
    words = tmp_path / "words"
    write_lines(words / "test.en", SOURCES)
    write_lines(words / "test.de", TOKENS)
    write_lines(words / "raw" / "test.de", REFERENCE)
    write_outputs(tmp_path / "runs" / "tree", TOKENS)
    write_outputs(tmp_path / "runs" / "stock", [line.replace("mann", "hund") for line in TOKENS])
    return tmp_path


def translate(folder, *flags, run="tree"):
    given = ["--words", folder / "words", "--source-lang", "en", "--target-lang", "de", "--lowercase"]
    return score("bleu", folder, *given, "--length-bounds", 4, *flags, run=run)


def test_translations_have_all_metrics_and_are_compared_in_each(workspace, capsys):
    flags = ["--samples", 50, "--sets", "test=2016", "--compound-split", "--against", workspace / "runs" / "stock"]
    assert translate(workspace, *flags) == 0
    found = scores(workspace)
    metrics = {f"{name}_2016" for name in ("tokenized_bleu", "sacrebleu", "chrf", "ter", "compound_split_bleu")}
    # The raw reference and the detokenised hypothesis differ in case alone.
    assert found["metrics"] == {name: pytest.approx(0 if "ter" in name else 100) for name in metrics}
    assert found["references"] == {"test": "untokenised"} and set(found["signatures"]) == metrics
    assert {row["metric"] for row in found["differences"]} == metrics
    for row in found["differences"]:  # TER counts errors
        assert row["baseline"] == "stock" and row["difference"] * (-1 if row["metric"] == "ter_2016" else 1) > 0
    [short, long] = found["by_length"]["test"]
    assert (short["sentences"], long["sentences"]) == (2, 1) and set(short) == {"from", "to", "sentences", "sacrebleu"}
    printed = capsys.readouterr().out
    assert "50 samples" in printed and "tok:13a" in printed


def test_references_are_detokenised_without_raw_ones(workspace):
    (workspace / "words" / "raw" / "test.de").unlink()
    assert translate(workspace) == 0
    found = scores(workspace)
    assert found["references"] == {"test": "detokenised"} and found["metrics"]["sacrebleu"] == pytest.approx(100)


@pytest.mark.parametrize(
    ("name", "message"),
    [("test.de", "has 3 lines, the hypotheses are 1"), ("raw/test.de", "has 1 lines"), ("test.en", "has 1 lines")],
)
def test_files_that_do_not_fit_are_named(workspace, caplog, name, message):
    write_lines(workspace / "words" / name, ["a"])
    assert translate(workspace) == 1
    assert message in caplog.text


def test_sources_are_scored_by_the_depth_of_their_trees(workspace, capsys, caplog):
    trees = workspace / "trees"
    lines = [
        "(S (D the) (N man))",
        "(S (NP (N children)) (V play))",
        "(S (X (NP (D the) (N dog))) (V sleeps)) (S (V no))",
    ]
    write_lines(trees / "test.en", lines)
    write_lines(trees / "test.de", TOKENS)
    flags = ["--task", "tree_translation", "--tree-parser", "brackets", "--trainpref", trees / "test"]
    flags += ["--testpref", trees / "test", "--destdir", workspace / "bin"]
    run_preprocess("-s", "en", "-t", "de", *flags)
    assert translate(workspace, "--source-trees", workspace / "bin", "--depth-bounds", 2, 3) == 0
    rows = scores(workspace)["by_depth"]["test"]
    # The tags above words count: depths are 2, 3 and 4.
    assert [(row["from"], row["to"], row["sentences"]) for row in rows] == [(0, 2, 1), (3, 3, 1), (4, None, 1)]
    assert all(row["sacrebleu"] == pytest.approx(100) for row in rows)
    assert "depth" in capsys.readouterr().out
    write_outputs(workspace / "runs/tree", TOKENS[:2])
    for path in (workspace / "words").rglob("test.*"):
        write_lines(path, path.read_text(encoding="utf-8").splitlines()[:2])
    assert translate(workspace, "--source-trees", workspace / "bin") == 1
    assert "has 3 trees of test, the references are 2" in caplog.text


def test_compounds_become_three_tokens():
    assert split_compounds("a well-known re-use - x-y-z -") == (
        "a well ##AT##-##AT## known re ##AT##-##AT## use - x ##AT##-##AT## y ##AT##-##AT## z -"
    )


@pytest.mark.skipif(importlib.util.find_spec("rouge_score") is None, reason="rouge-score is not installed")
def test_summaries_are_scored_and_compared(tmp_path):
    write_lines(tmp_path / "words" / "test.title", ["dogs bark", "# dead in storm"])
    write_outputs(tmp_path / "runs" / "good", ["dogs sleep", "# dead in storm"])
    write_outputs(tmp_path / "runs" / "bad", ["dogs sleep", "storm"])
    flags = ["--references", tmp_path / "words", "--target-lang", "title"]
    assert score("rouge", tmp_path, *flags, "--against", tmp_path / "runs" / "bad", run="good") == 0
    found = scores(tmp_path, "good")
    assert found["metrics"]["rouge1"] == pytest.approx(75) and found["metrics"]["rouge2"] == pytest.approx(50)
    rows = {row["metric"]: row for row in found["differences"]}
    assert set(rows) == {"rouge1", "rouge2", "rougeL"} and rows["rouge1"]["difference"] == pytest.approx(30)
