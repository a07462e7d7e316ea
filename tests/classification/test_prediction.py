"""Ranks of classes and their probabilities, of one model and of several."""

from __future__ import annotations

import math

import pytest
import torch
from fairseq.data import Dictionary
from torch import nn

from tree_fairseq.classification.classifier import ClassPredictor


class Answers(nn.Module):
    """A model that always says the same, and something else when training."""

    def __init__(self, logits):
        super().__init__()
        self.logits = logits

    def forward(self, src_tokens):
        return {"logits": -self.logits if self.training else self.logits}


@pytest.fixture
def dictionary():
    dictionary = Dictionary()
    for name in ("neg", "so", "pos"):
        dictionary.add_symbol(name)
    return dictionary


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_all_classes_are_ranked_by_the_mean_of_probabilities(dictionary, members, dtype):
    torch.manual_seed(members)
    models = [Answers(3 * torch.randn(4, 3, dtype=torch.float64).to(dtype)) for _ in range(members)]
    found = ClassPredictor(dictionary).generate(
        models, {"net_input": {"src_tokens": None}}, prefix_tokens=None, constraints=None
    )
    assert len(found) == 4
    for row, ranked in enumerate(found):
        probabilities = [0.0, 0.0, 0.0]
        for model in models:
            scores = [math.exp(value) for value in model.logits[row].tolist()]
            for index, score in enumerate(scores):
                probabilities[index] += score / sum(scores) / members
        order = sorted(range(3), key=lambda index: -probabilities[index])
        assert [hypothesis["tokens"].tolist() for hypothesis in ranked] == [
            [index + 4, dictionary.eos()] for index in order
        ]
        for hypothesis, index in zip(ranked, order):
            assert hypothesis["score"] == pytest.approx(math.log(probabilities[index]), abs=1e-5)
            assert hypothesis["positional_scores"].tolist() == pytest.approx([hypothesis["score"], 0.0])


def test_hypotheses_print_as_class_names(dictionary):
    predictor = ClassPredictor(dictionary)
    [[best, *_]] = predictor.generate([Answers(torch.tensor([[0.0, 1.0, 5.0]]))], {"net_input": {"src_tokens": None}})
    assert dictionary.string(best["tokens"], extra_symbols_to_ignore=predictor.symbols_to_strip_from_output) == "pos"


def test_equal_classes_stay_in_the_order_of_the_dictionary(dictionary):
    [ranked] = ClassPredictor(dictionary).generate([Answers(torch.zeros(1, 3))], {"net_input": {"src_tokens": None}})
    assert [int(hypothesis["tokens"][0]) for hypothesis in ranked] == [4, 5, 6]
