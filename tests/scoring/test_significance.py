"""Paired tests, compared with the enumeration of all exchanges, with the normal approximation, and with sacreBLEU."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sacrebleu.significance import PairedTest
from scipy.stats import norm

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.measures import TextMeasure, text_metric
from tree_fairseq.scoring.significance import BOOTSTRAP, RANDOMIZATION, Resampling, paired_test


def mean_test(baseline, system, test):
    return paired_test(baseline[:, None], system[:, None], lambda sums: {"": sums[..., 0] / len(system)}, test)[""]


def f1(sums):
    """A metric that is no mean: 2 matched / (gold + test)."""
    return {"f1": 200 * sums[..., 0] / (sums[..., 1] + sums[..., 2])}


def f1_counts(generator, sentences, quality):
    gold, test = generator.integers(3, 9, (2, sentences))
    return np.stack([generator.binomial(np.minimum(gold, test), quality), gold, test], axis=1)


@pytest.mark.parametrize("seed", range(4))
def test_randomization_estimates_the_share_of_all_exchanges(seed):
    generator = np.random.default_rng(seed)
    baseline, system = f1_counts(generator, 10, 0.6), f1_counts(generator, 10, 0.75)
    real = f1(system.sum(axis=0))["f1"] - f1(baseline.sum(axis=0))["f1"]
    as_far = 0
    for swapped in product((False, True), repeat=10):
        ours, theirs = (sum(pair[swap] for pair, swap in zip(zip(*sides), swapped)) for sides in
                        ((system, baseline), (baseline, system)))  # fmt: skip
        as_far += abs(f1(ours)["f1"] - f1(theirs)["f1"]) >= abs(real) - 1e-9
    row = paired_test(baseline, system, f1, Resampling(RANDOMIZATION, 20_000, seed=3))["f1"]
    assert row["difference"] == pytest.approx(real)
    assert row["p_value"] == pytest.approx(as_far / 2**10, abs=0.015)


@pytest.mark.parametrize("kind", [BOOTSTRAP, RANDOMIZATION])
def test_of_many_values_the_p_value_is_that_of_a_normal_distribution(kind):
    generator = np.random.default_rng(8)
    baseline = generator.random(400)
    system = baseline + generator.normal(0.02, 0.25, 400)
    change = system - baseline
    row = mean_test(baseline, system, Resampling(kind, 5000))
    expected = 2 * norm.sf(abs(change.mean()) / (change.std() / 20))
    assert 0.02 < expected < 0.5 and row["p_value"] == pytest.approx(expected, abs=0.03)
    if kind == BOOTSTRAP:
        half = 1.96 * change.std() / 20
        assert row["interval"] == pytest.approx([change.mean() - half, change.mean() + half], abs=0.005)


@pytest.mark.parametrize("kind", [BOOTSTRAP, RANDOMIZATION])
def test_clear_differences_and_none(kind):
    values = np.random.default_rng(1).random(50)
    test = Resampling(kind, 500)
    assert mean_test(values, values, test)["p_value"] == 1
    row = mean_test(values, values + 0.1, test)
    assert row["p_value"] == pytest.approx(1 / 501) and row["difference"] == pytest.approx(0.1)
    assert mean_test(values + 0.1, values, test)["difference"] == pytest.approx(-0.1)
    assert f"{500} samples" in row["signature"]


@pytest.mark.parametrize("kind", [BOOTSTRAP, RANDOMIZATION])
def test_batches_of_samples_change_nothing(kind, monkeypatch):
    generator = np.random.default_rng(2)
    baseline, system = f1_counts(generator, 30, 0.6), f1_counts(generator, 30, 0.7)
    test = Resampling(kind, 200)
    rows = paired_test(baseline, system, f1, test)
    assert paired_test(baseline, system, f1, Resampling(kind, 200))["f1"] == rows["f1"]
    assert paired_test(baseline, system, f1, Resampling(kind, 200, seed=1))["f1"]["p_value"] != 1
    monkeypatch.setattr("tree_fairseq.scoring.significance._DRAWN", 30 * 7)
    few = paired_test(baseline, system, f1, Resampling(RANDOMIZATION, 2000))["f1"]["p_value"]
    monkeypatch.undo()
    assert few == pytest.approx(paired_test(baseline, system, f1, Resampling(RANDOMIZATION, 2000))["f1"]["p_value"])


def test_systems_of_different_test_sets_are_refused():
    with pytest.raises(ScoringError, match="3 sentences of the system, but 2"):
        mean_test(np.ones(2), np.ones(3), Resampling())


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_text_metrics_have_the_p_value_of_sacrebleu(name):
    """That of approximate randomization; sacreBLEU's bootstrap is one-sided."""
    references = [f"the {word} man sees a dog in the garden ." for word in "old big small red sad".split()] * 8
    worse = [line.replace("garden", "house") if n % 7 < 3 else line for n, line in enumerate(references)]
    better = [line.replace("dog", "cat") if n % 7 < 2 else line for n, line in enumerate(references)]
    baseline, system = (TextMeasure(name, text_metric(name), [references], lines) for lines in (worse, better))
    row = system.differences(baseline, Resampling(RANDOMIZATION, 2000))[name]
    systems = [("baseline", worse), ("system", better)]
    _, scores = PairedTest(systems, {name: text_metric(name)}, [references], "ar", 2000)()
    first, second = next(values for key, values in scores.items() if key != "System")
    assert row["difference"] == pytest.approx(second.score - first.score)
    assert row["p_value"] == pytest.approx(second.p_value, abs=0.05)
    assert system.differences(system, Resampling(RANDOMIZATION, 60))[name]["p_value"] == 1


@pytest.mark.parametrize("kind", [BOOTSTRAP, RANDOMIZATION])
def test_groups_are_drawn_as_one_example_each(kind):
    generator = np.random.default_rng(5)
    groups = generator.integers(0, 12, 90).astype(str).tolist()
    baseline, system = f1_counts(generator, 90, 0.6), f1_counts(generator, 90, 0.7)
    names = sorted(set(groups))
    sums = [np.stack([side[np.array(groups) == name].sum(axis=0) for name in names]) for side in (baseline, system)]
    expected = paired_test(*sums, f1, Resampling(kind, 300))["f1"]
    row = paired_test(baseline, system, f1, Resampling(kind, 300, groups=tuple(groups)))["f1"]
    assert f"of {len(names)} groups" in row["signature"]
    for name in {"difference", "p_value", "interval"} & set(expected):
        assert row[name] == pytest.approx(expected[name])


def test_examples_that_depend_on_each_other_do_not_make_a_difference_certain():
    """21 groups of 100 equal examples say as much as 21 examples."""
    generator = np.random.default_rng(9)
    of_groups = generator.normal(0.05, 0.3, 21)
    system = np.repeat(of_groups, 100)
    groups = tuple(np.repeat(np.arange(21), 100).astype(str))
    alone, together = (
        mean_test(np.zeros(2100), system, Resampling(samples=4000, groups=each)) for each in ((), groups)
    )
    assert together["difference"] == pytest.approx(alone["difference"]) == pytest.approx(of_groups.mean())
    deviation = of_groups.std() / np.sqrt(21)
    assert together["p_value"] == pytest.approx(2 * norm.sf(abs(of_groups.mean()) / deviation), abs=0.03)
    assert together["interval"][1] - together["interval"][0] == pytest.approx(2 * 1.96 * deviation, rel=0.1)
    assert together["p_value"] > 5 * alone["p_value"]


def test_each_example_has_a_group():
    with pytest.raises(ScoringError, match="4 sentences, but groups of 3"):
        mean_test(np.zeros(4), np.ones(4), Resampling(groups=("a", "a", "b")))
