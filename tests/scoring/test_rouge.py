"""ROUGE compared with its definition; differences of runs; the command. Skipped without rouge-score."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from collections import Counter

import numpy as np
import pytest

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.__main__ import main
from tree_fairseq.scoring.rouge import difference, rouge

needs_library = pytest.mark.skipif(
    importlib.util.find_spec("rouge_score") is None, reason="rouge-score is not installed"
)


def f1(common, found, wanted):
    return 2 * common / (found + wanted) if common else 0.0


def ngram_f1(reference, hypothesis, size):
    counts = [
        Counter(tuple(side[k : k + size]) for k in range(len(side) - size + 1)) for side in (reference, hypothesis)
    ]
    return f1(*(sum(counter.values()) for counter in (counts[0] & counts[1], counts[1], counts[0])))


def longest_common(left, right):
    if not left or not right:
        return 0
    if left[-1] == right[-1]:
        return longest_common(left[:-1], right[:-1]) + 1
    return max(longest_common(left[:-1], right), longest_common(left, right[:-1]))


@needs_library
def test_rouge_equals_its_definition():
    generator = random.Random(2)
    sides = [
        [generator.choices(["a", "b", "#.#", "'s", "C"], k=generator.randrange(1, 7)) for _ in range(40)]
        for _ in range(2)
    ]
    found = rouge(*([" ".join(line) for line in side] for side in sides))
    for index, (reference, hypothesis) in enumerate(zip(*sides)):
        assert found["rouge1"][index] == pytest.approx(ngram_f1(reference, hypothesis, 1))
        assert found["rouge2"][index] == pytest.approx(ngram_f1(reference, hypothesis, 2))
        assert found["rougeL"][index] == pytest.approx(
            f1(longest_common(reference, hypothesis), len(hypothesis), len(reference))
        )
    assert 0 < found["rouge2"].mean() < found["rougeL"].mean() <= found["rouge1"].mean()


def test_differences_of_equal_and_of_different_runs():
    generator = np.random.default_rng(3)
    scores = generator.random(60)
    assert difference(scores, scores)["p_value"] == 1
    row = difference(scores, scores + 0.05 + 0.1 * generator.random(60))
    assert row["difference"] == pytest.approx(10, abs=2) and row["p_value"] < 0.01
    assert difference(scores, scores[::-1])["p_value"] > 0.5  # the same values in another order


def test_the_message_names_the_missing_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "rouge_score.rouge_scorer", None)
    with pytest.raises(ScoringError, match=r"pip install 'tree-fairseq\[scores\]'"):
        rouge(["a"], ["a"])


@needs_library
def test_command(tmp_path):
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "test.title").write_text("dogs bark\n# dead in storm\n", encoding="utf-8")
    for name, second in (("good", "# dead in storm"), ("bad", "storm")):
        run = tmp_path / "runs" / name
        run.mkdir(parents=True)
        (run / "generate-test.txt").write_text(f"H-1\t-1\t{second}\nH-0\t-1\tdogs sleep\n", encoding="utf-8")
    arguments = [
        "--references",
        str(tmp_path / "words"),
        "--target-lang",
        "title",
        "--result",
        str(tmp_path / "result.json"),
    ]
    assert main(["rouge", "--run", str(tmp_path / "runs" / "bad"), *arguments]) == 0
    assert (
        main(
            ["rouge", "--run", str(tmp_path / "runs" / "good"), "--against", str(tmp_path / "runs" / "bad"), *arguments]
        )
        == 0
    )
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["score"] == result["rouge1"] == pytest.approx(75) and result["rouge2"] == pytest.approx(50)
    assert {row["metric"] for row in result["differences"]} == {"rouge1", "rouge2", "rougeL"}
    assert result["differences"][0]["difference"] == pytest.approx(30)
    assert main(["rouge", "--run", str(tmp_path / "none"), *arguments]) == 1
