"""Several trajectories for each sentence, and log-probabilities of trees: all at once, compared with one at a time."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq import utils

from tests.tree_insertion.slot_batches import DICTIONARY, PAD
from tests.tree_insertion.slot_tables import SlotTable, decode_alone, most_probable
from tests.tree_insertion.test_search import ENSEMBLES, SOURCES, alone
from tests.tree_insertion.test_sequence_models import CAUSAL, TOKENS, inputs_of, model_of
from tests.tree_positional.table_models import batch
from tree_fairseq.tree_insertion.parallel_search import InsertionLimits
from tree_fairseq.tree_insertion.sampled_search import LeftToRightScorer, SampledInsertionGenerator, Sampling
from tree_fairseq.tree_insertion.search import InsertionGenerator


class SeededDraws:
    """Draws a label by walking along the tempered probabilities until a random number is reached."""

    def __init__(self, seed: int, trial: int, source: list[int], temperature: float):
        self.random, self.temperature = np.random.default_rng([seed, trial, *source]), temperature

    def __call__(self, shares: torch.Tensor) -> int:
        weights = [share ** (1 / self.temperature) for share in shares.tolist()]
        left = self.random.random() * sum(weights)
        for label, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return label
        raise AssertionError("the random number lies beyond all labels")


def source_of(net_input: dict) -> list[int]:
    return [token for token in net_input["src_tokens"][0].tolist() if token != PAD]


def candidates(models, net_input: dict, sampling: Sampling, limits: InsertionLimits) -> tuple[dict[str, tuple], int]:
    """By text, whether a tree is complete and the sum of its log-probabilities; and the most steps."""
    found: dict[str, tuple] = {}
    most, last_step = 0, limits.steps
    for trial in range(sampling.samples):
        draws = SeededDraws(sampling.seed, trial, source_of(net_input), sampling.temperature)
        choose = draws if trial else most_probable
        decoded = decode_alone(models, net_input, last_step, limits.nodes, choose=choose)
        if trial == 0 and decoded.is_finished and sampling.extra_steps is not None:
            last_step = min(last_step, decoded.steps + sampling.extra_steps)
        text = DICTIONARY.string(DICTIONARY.sequence(decoded.labels, decoded.parents))
        most = max(most, decoded.steps)
        is_whole = decoded.is_finished and decoded.parents.count(0) == 1
        found[text] = max(found.get(text, (False, -np.inf)), (is_whole, decoded.total))
    return found, most


MODELS = {**ENSEMBLES, "small trees": [SlotTable(0, keep=1.0)]}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(3, 1.0),
        Sampling(2, 0.4, seed=8),
        Sampling(4, 2.0),
        Sampling(4, 2.0, extra_steps=0),
        Sampling(4, 2.0, extra_steps=1),
    ],
    ids=str,
)
def test_a_batch_is_its_trajectories_one_by_one(name, sampling):
    models, sample, limits = MODELS[name], batch(SOURCES[:5]), InsertionLimits(steps=7, nodes=20)
    found = SampledInsertionGenerator(models, DICTIONARY, sampling, limits).generate(models, sample)
    assert len(found) == 5
    for row, ranked in enumerate(found):
        expected, steps = candidates(models, alone(sample, row), sampling, limits)
        texts = [DICTIONARY.string(hypothesis["tokens"]) for hypothesis in ranked]
        assert sorted(texts) == sorted(expected)
        order = [(hypothesis["is_complete"], hypothesis["score"]) for hypothesis in ranked]
        assert order == sorted(order, reverse=True)
        assert {hypothesis["steps"] for hypothesis in ranked} == {steps}
        for text, hypothesis in zip(texts, ranked):
            is_complete, score = expected[text]
            assert hypothesis["is_complete"] is is_complete
            assert hypothesis["score"] == pytest.approx(score, abs=1e-6)
    assert any(len(ranked) > 1 for ranked in found)


def test_trajectories_that_take_too_long_are_left_out():
    models, limits = MODELS["small trees"], InsertionLimits(steps=12, nodes=40)
    plain = InsertionGenerator(models, DICTIONARY, limits, normalize_scores=False).generate(models, batch(SOURCES))
    steps = [best["steps"] for (best,) in plain]
    assert any(best["is_complete"] for (best,) in plain)
    partial = []
    for extra in (None, 0, 2):
        generator = SampledInsertionGenerator(models, DICTIONARY, Sampling(6, 1.5, extra_steps=extra), limits)
        found = generator.generate(models, batch(SOURCES))
        partial.append(sum(each["reason"] == "steps" for ranked in found for each in ranked))
        for (best,), ranked, count in zip(plain, found, steps):
            if extra is not None and best["is_complete"]:
                assert count <= ranked[0]["steps"] <= count + extra
                assert ranked[0]["is_complete"]
    assert partial[0] < partial[2] < partial[1]


def test_trajectories_differ_by_seed_and_not_by_company():
    models = ENSEMBLES["one"]

    def texts(seed: int, sources: list[list[int]]) -> list[list[tuple]]:
        generator = SampledInsertionGenerator(models, DICTIONARY, Sampling(6, 1.5, seed))
        found = generator.generate(models, batch(sources))
        return [[(tuple(each["tokens"].tolist()), round(each["score"], 6)) for each in ranked] for ranked in found]

    plain = texts(1, SOURCES)
    assert texts(1, SOURCES) == plain != texts(2, SOURCES)
    assert texts(1, SOURCES[::-1]) == plain[::-1]
    assert [texts(1, [source])[0] for source in SOURCES] == plain


@pytest.mark.parametrize("name", ENSEMBLES)
def test_a_cold_distribution_draws_the_best_labels(name):
    models, sample = ENSEMBLES[name], batch(SOURCES)
    expected = InsertionGenerator(models, DICTIONARY, normalize_scores=False).generate(models, sample)
    generator = SampledInsertionGenerator(models, DICTIONARY, Sampling(3, 1e-6))
    for (plain,), (only,) in zip(expected, generator.generate(models, sample)):
        assert only["tokens"].equal(plain["tokens"]) and only["positional_scores"].equal(plain["positional_scores"])
        assert only["score"] == pytest.approx(plain["score"]) and only["steps"] == plain["steps"]


def test_labels_are_drawn_as_often_as_they_are_probable():
    scores = torch.tensor([[0.5, 0.0, 0.2, 0.3], [0.0, 1.0, 0.0, 0.0]], dtype=torch.float64).log()
    generator = SampledInsertionGenerator([SlotTable()], DICTIONARY, Sampling(2))
    generator._generators = [np.random.default_rng(row) for row in range(2)]

    class Partial:
        slot_rows = np.array([0, 0, 1, 1]).repeat(10_000)

    every = scores.repeat(2, 1).repeat_interleave(10_000, 0)
    log_probs, labels = generator.choose(every, every.max(1), Partial, np.array([0, 1]))
    assert labels[:10_000].unique().tolist() == [0] and labels[10_000:20_000].unique().tolist() == [1]
    shares = labels[20_000:30_000].bincount(minlength=4) / 10_000
    torch.testing.assert_close(shares.double(), scores[0].exp(), atol=0.02, rtol=0)
    assert labels[30_000:].unique().tolist() == [1]
    assert log_probs.equal(every.gather(1, labels[:, None])[:, 0])


class ByText:
    """Gives every tree a score that depends on its text and its sentence; reads short trees only."""

    def __init__(self, longest: int = 1000):
        self.longest, self.asked = longest, []

    def reads(self, tokens):
        return len(tokens) <= self.longest

    def log_prob(self, sentence: int, tokens) -> float:
        return -float(sum(tokens.tolist()) * (sentence + 3) % 17)

    def score(self, net_input, sentences, trees):
        self.asked += trees
        return torch.tensor([self.log_prob(sentence, tree) for sentence, tree in zip(sentences.tolist(), trees)])


def test_a_scorer_ranks_whole_trees():
    models, sampling, limits = MODELS["small trees"], Sampling(6, 1.2), InsertionLimits(steps=6, nodes=14)
    plain = SampledInsertionGenerator(models, DICTIONARY, sampling, limits).generate(models, batch(SOURCES))
    scorer = ByText(longest=16)
    generator = SampledInsertionGenerator(models, DICTIONARY, sampling, limits, scorer=scorer)
    ranked = generator.generate(models, batch(SOURCES))
    scored = 0
    for sentence, (before, after) in enumerate(zip(plain, ranked)):
        own = {tuple(each["tokens"].tolist()): each["score"] for each in before}
        assert own.keys() == {tuple(each["tokens"].tolist()) for each in after}
        order = []
        for hypothesis in after:
            expected = own[tuple(hypothesis["tokens"].tolist())]
            is_scored = hypothesis["is_complete"] and scorer.reads(hypothesis["tokens"])
            if is_scored:
                expected = scorer.log_prob(sentence, DICTIONARY.renumbered(hypothesis["tokens"]))
            assert hypothesis["score"] == pytest.approx(expected)
            order.append((is_scored, hypothesis["score"]))
            scored += is_scored
        assert order == sorted(order, reverse=True)
    assert 0 < scored == len(scorer.asked) < sum(map(len, ranked))


def test_only_the_best_tree_of_a_sentence_is_counted(caplog):
    models = [SlotTable(2, keep=0.0)]
    generator = SampledInsertionGenerator(models, DICTIONARY, Sampling(4), InsertionLimits(steps=4, nodes=20))
    with caplog.at_level(logging.WARNING, "tree_fairseq.tree_insertion.parallel_search"):
        found = generator.generate(models, batch(SOURCES))
    partial = sum(not ranked[0]["is_complete"] for ranked in found)
    assert generator.counts["trees"] == len(SOURCES) and partial > 0
    assert sum(generator.counts[name] for name in ("nodes", "steps", "roots")) == partial
    assert f"of {len(SOURCES)} trees" in caplog.text


SENTENCES = [2, 0, 1, 0, 2]
TREES = [0, 1, 2, 2, 1]


@pytest.mark.parametrize("variant", CAUSAL)
def test_a_batch_of_trees_is_scored_as_each_symbol_alone(variant, monkeypatch):
    # fairseq takes the softmax of weights that it returns in single precision.
    monkeypatch.setattr(utils, "softmax", lambda scores, dim, onnx_trace=False: scores.softmax(dim))
    model = model_of(variant)
    sequences = model.sequences
    trees = [sequences.plain(torch.tensor(TOKENS[number])) for number in TREES]
    net_input = inputs_of(variant, spare=2)
    found = LeftToRightScorer(model).score(net_input, torch.tensor(SENTENCES), trees)
    for sentence, number, log_prob in zip(SENTENCES, TREES, found.tolist()):
        own, total = inputs_of(variant, rows=(sentence,)), 0.0
        target = [*TOKENS[number], sequences.eos()]
        for place, token in enumerate(target):
            previous = torch.tensor([[sequences.eos(), *target[:place]]])
            with torch.no_grad():
                logits, _ = model(**own, prev_output_tokens=previous)
            total += float(logits[0, -1].log_softmax(0)[token])
        assert log_prob == pytest.approx(total, abs=1e-9)
    assert found.dtype == torch.float64 and len(set(found.tolist())) == len(TREES)


def test_a_tree_needs_a_position_for_each_symbol_and_eos():
    model = SimpleNamespace(eval=lambda: model, decoder=SimpleNamespace(max_positions=lambda: 4))
    scorer = LeftToRightScorer(model)
    assert scorer.reads(torch.zeros(3)) and not scorer.reads(torch.zeros(4))
