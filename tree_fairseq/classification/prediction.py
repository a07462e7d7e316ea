"""``C-`` lines of ``fairseq-generate`` and ``fairseq-interactive``: the probabilities of all classes, after the ``P-`` lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

from tree_fairseq.nn.command_output import print_after

_COMMANDS = ("fairseq_cli.generate", "fairseq_cli.interactive")


def class_line(number: int, ranked: Sequence[dict], dictionary: Dictionary) -> str:
    """``C-<id>``, and for each class a tab, its name, a blank and its probability, the most probable first.

    Args:
        number: of the example
        ranked: its hypotheses (:class:`tree_fairseq.classification.prediction.ClassPredictor`)
        dictionary: of the classes
    """
    parts = (f"{dictionary[int(hypothesis['tokens'][0])]} {math.exp(hypothesis['score']):.4f}" for hypothesis in ranked)
    return "\t".join((f"C-{number}", *parts))


class ClassLines:
    """Prints a ``C-`` line after the first ``P-`` line of each example, whenever fairseq's commands come to print that.

    Args:
        dictionary: of the classes
    """

    def __init__(self, dictionary: Dictionary):
        self.dictionary = dictionary
        self._waiting: dict[str, str] = {}

    def expect(self, numbers: Iterable[int], hypotheses: Iterable[Sequence[dict]]) -> None:
        """Has the probabilities of some examples printed with what will be printed of them.

        Args:
            numbers: of the examples, as they will be printed
            hypotheses: of each
        """
        if print_after(_COMMANDS, self.line_after):
            lines = (
                class_line(number, ranked, self.dictionary) for number, ranked in zip(numbers, hypotheses, strict=True)
            )
            self._waiting.update((line.partition("\t")[0][2:], line) for line in lines)

    def line_after(self, line: str) -> str | None:
        """The line that belongs after a ``P-`` line, once; None after others."""
        return self._waiting.pop(line[2:].partition("\t")[0], None) if line.startswith("P-") else None


# FROM generators/class_prediction: Classes by probability, in the form in which fairseq's commands take hypotheses.


class ClassPredictor:
    """Stands where fairseq has a generator: a hypothesis is one class, and all classes are hypotheses, the most probable first.

    An ensemble's probabilities are the mean of those of its members.

    Args:
        dictionary: of the classes
    """

    def __init__(self, dictionary: Dictionary):
        self.dictionary = dictionary
        self.symbols_to_strip_from_output = {dictionary.eos()}

    def log_probabilities(self, models: Sequence[nn.Module], net_input: dict) -> Tensor:
        """Of all C classes, ``[B, C]``, float32 at least."""
        logits = [model(**net_input)["logits"] for model in models]
        each = [
            torch.log_softmax(scores.to(torch.promote_types(scores.dtype, torch.float32)), dim=1) for scores in logits
        ]
        return torch.logsumexp(torch.stack(each), dim=0) - torch.tensor(float(len(each))).log().to(each[0])

    @torch.no_grad()
    def generate(self, models: Sequence[nn.Module], sample: dict, **kwargs) -> list[list[dict]]:
        """Ranks the classes for each example.

        Args:
            models: an ensemble
            sample: a batch
            **kwargs: prefixes and constraints of a search, which classes have none of

        Returns:
            for each example all classes as fairseq's hypotheses: ``tokens`` (the class and EOS), ``score``, its log probability
        """
        for model in models:
            model.eval()
        log_probabilities, classes = self.log_probabilities(models, sample["net_input"]).sort(
            dim=1, descending=True, stable=True
        )
        return [
            [self._hypothesis(token, score) for token, score in zip(tokens, scores)]
            for tokens, scores in zip((classes + self.dictionary.nspecial).tolist(), log_probabilities.tolist())
        ]

    def _hypothesis(self, token: int, score: float) -> dict:
        return {
            "tokens": torch.tensor([token, self.dictionary.eos()]),
            "score": score,
            "positional_scores": torch.tensor([score, 0.0]),
            "attention": None,
            "alignment": [],
        }
