"""Predicted classes and numbers as fairseq's hypotheses."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

from tree_fairseq.classification.targets import NumberDictionary


class _Predictor:
    def __init__(self, dictionary: Dictionary):
        self.dictionary = dictionary
        self.symbols_to_strip_from_output = {dictionary.eos()}

    def generate(self, models: Sequence[nn.Module], sample: dict, **kwargs) -> list[list[dict]]:
        """Returns hypotheses as fairseq's generators do; prefixes and constraints are not read."""
        for model in models:
            model.eval()
        with torch.no_grad():
            return self.predict(models, sample["net_input"])

    def predict(self, models: Sequence[nn.Module], net_input: dict) -> list[list[dict]]:
        raise NotImplementedError


class ClassPredictor(_Predictor):
    """Takes the place of fairseq's generators: every class is a hypothesis, the most probable first.

    The probabilities of an ensemble are the mean of those of its members.
    """

    def log_probabilities(self, models: Sequence[nn.Module], net_input: dict) -> Tensor:
        """Computes the log probabilities of all classes, ``[B, C]``, in float32 at least."""
        logits = [model(**net_input)["logits"] for model in models]
        each = [
            torch.log_softmax(scores.to(torch.promote_types(scores.dtype, torch.float32)), dim=1) for scores in logits
        ]
        return torch.logsumexp(torch.stack(each), dim=0) - torch.tensor(float(len(each))).log().to(each[0])

    def predict(self, models: Sequence[nn.Module], net_input: dict) -> list[list[dict]]:
        """Returns all classes for each example: ``tokens`` are the class and EOS, ``score`` is its log probability."""
        ranked = self.log_probabilities(models, net_input).sort(dim=1, descending=True, stable=True)
        tokens = ranked.indices + self.dictionary.nspecial
        return [
            [_hypothesis([token, self.dictionary.eos()], score) for token, score in zip(row, scores)]
            for row, scores in zip(tokens.tolist(), ranked.values.tolist())
        ]


class NumberPredictor(_Predictor):
    """Takes the place of fairseq's generators: the only hypothesis is a number, written digit by digit.

    The number of an ensemble is the mean of those of its members.
    """

    dictionary: NumberDictionary

    def predict(self, models: Sequence[nn.Module], net_input: dict) -> list[list[dict]]:
        """Returns a number for each example: ``tokens`` are the digits and EOS, ``score`` is always 0."""
        predicted = torch.stack([model(**net_input)["logits"].squeeze(1).float() for model in models]).mean(0)
        return [[_hypothesis(self.dictionary.tokens(value).long(), 0.0)] for value in predicted.tolist()]


def _hypothesis(tokens: Sequence[int] | Tensor, score: float) -> dict:
    tokens = torch.as_tensor(tokens)
    scores = torch.zeros(len(tokens))
    scores[0] = score
    return {"tokens": tokens, "score": score, "positional_scores": scores, "attention": None, "alignment": []}


def class_probabilities(ranked: Sequence[dict], dictionary: Dictionary) -> dict[str, float]:
    """Returns the probability of each class, by its name, in the order of the hypotheses."""
    return {dictionary[int(hypothesis["tokens"][0])]: math.exp(hypothesis["score"]) for hypothesis in ranked}
