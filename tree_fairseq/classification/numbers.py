"""Numbers as lines of tokens: a character a token, so that a dictionary that was made once has every number."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

CHARACTERS = "0123456789.-+e"

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?")


def is_number(text: str) -> bool:
    """Whether a word is a finite number in decimal notation, the exponent after ``e``."""
    return _NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


class NumberDictionary(Dictionary):
    """fairseq's dictionary, filled with the characters that numbers are written with."""

    @classmethod
    def of_characters(cls) -> NumberDictionary:
        """The dictionary of all of them."""
        made = cls()
        for character in CHARACTERS:
            made.add_symbol(character)
        return made

    def string(self, tensor, *args, **kwargs) -> str:
        """As fairseq's, a number in one word."""
        text = super().string(tensor, *args, **kwargs)
        # Of a batch fairseq makes lines.
        return "".join(character for character in text if character != " ")

    def value(self, tokens: Tensor) -> float:
        """The number of a line of tokens, EOS at its end or not; not a number (``nan``) where it is none."""
        text = self.string(tokens)
        return float(text) if is_number(text) else math.nan

    def tokens(self, value: float) -> Tensor:
        """A number of six digits as a line of tokens with EOS, int32."""
        return self.encode_line(" ".join(f"{value:.6g}"), add_if_not_exist=False)


# FROM generators/number_prediction: Predicted numbers, in the form in which fairseq's commands take hypotheses.


class NumberPredictor:
    """Stands where fairseq has a generator: the only hypothesis is a number, written digit by digit.

    An ensemble's number is the mean of those of its members.

    Args:
        dictionary: of the characters of numbers
    """

    def __init__(self, dictionary: NumberDictionary):
        self.dictionary = dictionary
        self.symbols_to_strip_from_output = {dictionary.eos()}

    @torch.no_grad()
    def generate(self, models: Sequence[nn.Module], sample: dict, **kwargs) -> list[list[dict]]:
        """Predicts a number for each example.

        Args:
            models: an ensemble, whose ``logits`` are ``[B, 1]``
            sample: a batch
            **kwargs: prefixes and constraints of a search, which numbers have none of

        Returns:
            for each example one of fairseq's hypotheses: ``tokens``, the digits and EOS; and a ``score`` that says nothing
        """
        for model in models:
            model.eval()
        predicted = torch.stack([model(**sample["net_input"])["logits"].squeeze(1).float() for model in models]).mean(0)
        return [[self._hypothesis(value)] for value in predicted.tolist()]

    def _hypothesis(self, value: float) -> dict:
        tokens = self.dictionary.tokens(value).long()
        scores = torch.zeros(len(tokens))
        return {"tokens": tokens, "score": 0.0, "positional_scores": scores, "attention": None, "alignment": []}
