"""Means over seeds and their tests, compared with samples that are drawn and scored one by one."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from tree_fairseq.scoring.__main__ import main
from tree_fairseq.scoring.measures import TextMeasure, text_metric
from tree_fairseq.scoring.predictions import ClassMeasure
from tree_fairseq.scoring.seeds import mean_over_seeds_test
from tree_fairseq.scoring.significance import BOOTSTRAP, RANDOMIZATION, Resampling, _batches

WORDS = "the a man dog sees takes red old boat lake".split()


def sentences(seed: int, count: int = 12) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.choices(WORDS, k=generator.randint(5, 9))) for _ in range(count)]


REFERENCES = sentences(0)


def outputs(seed: int, wrong: float) -> list[str]:
    generator = random.Random(seed)
    return [
        " ".join(generator.choice(WORDS) if generator.random() < wrong else word for word in line.split())
        for line in REFERENCES
    ]


SYSTEM = [outputs(seed, 0.2) for seed in (1, 2, 3)]
BASELINE = [outputs(seed, 0.4) for seed in (4, 5, 6)]


def text_measures(name: str, runs: list[list[str]]) -> list[TextMeasure]:
    return [TextMeasure(name, text_metric(name), [REFERENCES], run) for run in runs]


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
@pytest.mark.parametrize("kind", [BOOTSTRAP, RANDOMIZATION])
def test_samples_are_those_of_scoring_drawn_sentences(name, kind):
    test = Resampling(kind, 25, seed=7)
    row = mean_over_seeds_test(text_measures(name, BASELINE), text_measures(name, SYSTEM), test)[name]

    def mean(runs, references):
        return np.mean([text_metric(name).corpus_score(run, [references]).score for run in runs])

    real = mean(SYSTEM, REFERENCES) - mean(BASELINE, REFERENCES)
    assert row["difference"] == pytest.approx(real)
    drawn = []
    for weights in np.concatenate(list(_batches(test, len(REFERENCES)))).astype(int):
        if kind == BOOTSTRAP:
            places = np.repeat(np.arange(len(weights)), weights)
            sides = [[[run[place] for place in places] for run in runs] for runs in (SYSTEM, BASELINE)]
            references = [REFERENCES[place] for place in places]
        else:
            pairs = [
                [(theirs, ours) if swap else (ours, theirs) for ours, theirs, swap in zip(*runs, weights)]
                for runs in zip(SYSTEM, BASELINE)
            ]
            sides = [[[pair[side] for pair in run] for run in pairs] for side in (0, 1)]
            references = REFERENCES
        drawn.append(mean(sides[0], references) - mean(sides[1], references))
    centre = np.mean(drawn) if kind == BOOTSTRAP else 0
    as_far = sum(abs(value - centre) >= abs(real) - 1e-9 for value in drawn)
    assert row["p_value"] == pytest.approx((as_far + 1) / (len(drawn) + 1))
    if kind == BOOTSTRAP:
        assert row["interval"] == pytest.approx(np.percentile(drawn, [2.5, 97.5]).tolist())


def test_classes_that_only_some_runs_predict():
    right = list("abab")
    system = [ClassMeasure(right, list(run)) for run in ("abab", "abac")]
    baseline = [ClassMeasure(right, list(run)) for run in ("aaaa", "dbbb")]
    row = mean_over_seeds_test(baseline, system, Resampling(BOOTSTRAP, 50))["accuracy"]
    assert row["difference"] == pytest.approx(87.5 - 50)


def write(folder: Path, name: str, runs: list[list[str]]) -> list[str]:
    paths = [folder / f"{name}-{number}.txt" for number in range(len(runs))]
    for path, run in zip(paths, runs):
        path.write_text("".join(f"{line}\n" for line in run), encoding="utf-8")
    return list(map(str, paths))


def test_the_command_prints_and_writes_means_and_tests(tmp_path, capsys, caplog):
    references, found = write(tmp_path, "references", [REFERENCES]), tmp_path / "out.json"
    arguments = ["seeds", *write(tmp_path, "tree", SYSTEM), "--references", *references]
    arguments += ["--metrics", "bleu", "exact", "--samples", "50", "--baseline"]
    stock = write(tmp_path, "stock", BASELINE)
    assert main([*arguments, *stock, "--output", str(found)]) == 0
    result = json.loads(found.read_text(encoding="utf-8"))
    row = result["metrics"]["bleu"]
    scores = [text_metric("bleu").corpus_score(run, [REFERENCES]).score for run in SYSTEM]
    assert row["system"]["seeds"] == pytest.approx(scores) and row["system"]["mean"] == pytest.approx(np.mean(scores))
    assert row["system"]["deviation"] == pytest.approx(np.std(scores, ddof=1))
    assert row["difference"] == pytest.approx(row["system"]["mean"] - row["baseline"]["mean"]) and row["p_value"] < 0.05
    printed = capsys.readouterr().out
    assert (
        f"{row['difference']:+.2f}" in printed and "paired bootstrap, 50 samples" in printed and "version:" in printed
    )
    assert {"exact_match", "bleu"} == set(result["metrics"])
    assert main([*arguments, *stock[:2]]) == 1
    assert "give as many of both" in caplog.messages[-1]


def test_the_command_draws_groups(tmp_path, caplog):
    references, groups = write(tmp_path, "references", [REFERENCES]), tmp_path / "groups"
    arguments = ["seeds", *write(tmp_path, "tree", SYSTEM), "--references", *references]
    arguments += ["--metrics", "bleu", "exact", "--samples", "50", "--baseline", *write(tmp_path, "stock", BASELINE)]
    arguments += ["--output", str(tmp_path / "out.json"), "--groups", str(groups)]
    names = [f"group {place % 4}" for place in range(len(REFERENCES))]
    groups.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    assert main(arguments) == 0
    row = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["metrics"]["bleu"]
    expected = mean_over_seeds_test(
        text_measures("bleu", BASELINE), text_measures("bleu", SYSTEM), Resampling(samples=50, groups=tuple(names))
    )["bleu"]
    assert {name: row[name] for name in expected} == expected and "of 4 groups" in row["signature"]
    groups.write_text("one\ntwo\n", encoding="utf-8")
    assert main(arguments) == 1
    assert f"{groups} has 2 lines, the hypotheses are {len(REFERENCES)}" in caplog.messages[-1]
    groups.unlink()
    assert main(arguments) == 1 and str(groups) in caplog.messages[-1]


def test_correlations_of_numbers_have_means_and_those_of_ranks_no_test(tmp_path):
    numbers = [["1.0", "2.0", "3.0", "5.0"], ["1.5", "2.0", "2.5", "4.0"], ["4.0", "1.0", "2.0", "3.0"]]
    references, ours, theirs = write(tmp_path, "numbers", numbers)
    arguments = ["seeds", ours, ours, "--references", references, "--metrics", "numbers", "--samples", "50"]
    arguments += ["--baseline", theirs, ours]
    assert main([*arguments, "--output", str(tmp_path / "out.json")]) == 0
    rows = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["metrics"]
    for name in ("pearson", "spearman", "mean_squared_error"):
        row = rows[name]
        assert row["difference"] == pytest.approx(row["system"]["mean"] - row["baseline"]["mean"])
    assert rows["pearson"]["difference"] > 0 and 0 < rows["pearson"]["p_value"] < 1
    assert rows["mean_squared_error"]["difference"] < 0 and 0 < rows["mean_squared_error"]["p_value"] < 1
    for name in ("pearson", "mean_squared_error"):
        low, high = rows[name]["interval"]
        assert low < rows[name]["difference"] < high
    assert "p_value" not in rows["spearman"] and "interval" not in rows["spearman"]
