"""Generation of sequences of labels and brackets: from left to right with beam search, or by parallel insertions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from tree_fairseq.errors import StructuralSearchError
from tree_fairseq.tree_insertion.dictionary import SequenceDictionary
from tree_fairseq.tree_insertion.parallel_search import (
    InsertionLimits,
    ParallelSearch,
    PartialOutputs,
    SlotPredictions,
    refuse_constraints,
)
from tree_fairseq.tree_insertion.sequence_models import LeftToRightModel, SequenceInsertionTransformerModel

_TOKENS_PER_NODE = 3  # a label and two brackets


def shared_sequences(models: Sequence) -> SequenceDictionary:
    """The dictionary of sequence models; raises StructuralSearchError if they have different numbers of brackets."""
    sequences = models[0].sequences
    if any(len(model.sequences) != len(sequences) for model in models):
        raise StructuralSearchError("models with different numbers of brackets cannot be in an ensemble")
    return sequences


class LeftToRightGenerator(SequenceGenerator):
    """fairseq's beam search, whose hypotheses have completed brackets; models have dictionaries of their own."""

    def __init__(self, models: Sequence[LeftToRightModel], dictionary: Dictionary, **kwargs):
        self.sequences = shared_sequences(models)
        super().__init__(models, self.sequences, **kwargs)

    def generate(
        self, models, sample: dict, prefix_tokens: Tensor | None = None, constraints: Tensor | None = None, **kwargs
    ) -> list[list[dict]]:
        """Adds the entries of :meth:`SequenceDictionary.balanced`, and ``steps``, the number of tokens with EOS."""
        refuse_constraints(prefix_tokens, constraints)
        found = super().generate(models, sample, **kwargs)
        return [[self._balanced(hypothesis) for hypothesis in hypotheses] for hypotheses in found]

    def _balanced(self, hypothesis: dict) -> dict:
        # The last token is EOS; its score counts in that of the whole.
        balanced = self.sequences.balanced(hypothesis["tokens"], hypothesis["positional_scores"])
        steps = len(hypothesis["tokens"])
        return {**hypothesis, **balanced, "steps": steps, "attention": None, "alignment": None}


@dataclass(frozen=True)
class PartialSequences(PartialOutputs):
    """Partial sequences, each from BOS to EOS."""

    @property
    def slots(self) -> np.ndarray:
        is_last = np.zeros(len(self.labels), bool)
        is_last[self.lengths.cumsum() - 1] = True
        return np.flatnonzero(~is_last)

    @property
    def slot_rows(self) -> np.ndarray:
        return self.rows[self.slots]

    def model_input(self, pad: int) -> Tensor:
        tokens = np.full((len(self.lengths), int(self.lengths.max())), pad)
        tokens[self.rows, self.columns] = self.labels
        return torch.from_numpy(tokens)

    def select(self, rows: np.ndarray) -> PartialSequences:
        stay = np.isin(self.rows, rows)
        return PartialSequences(self.labels[stay], self.scores[stay], self.lengths[rows])

    def inserted(self, chosen: SlotPredictions) -> PartialSequences:
        """Inserts tokens in different slots, each after a token, all at once."""
        lengths = self.lengths + np.bincount(self.rows[chosen.slots], minlength=len(self.lengths))
        labels, scores = (
            np.insert(old, chosen.slots + 1, new)
            for old, new in ((self.labels, chosen.labels), (self.scores, chosen.log_probs))
        )
        return PartialSequences(labels, scores, lengths)


class SequenceInsertionGenerator(ParallelSearch):
    """Generates one sequence for each sentence of a batch by parallel insertions (Stern et al. 2019).

    The hypotheses have the entries of :meth:`ParallelSearch.generate` and :meth:`SequenceDictionary.balanced`. A
    sequence has at most three tokens a node, and no more than the models have positions. Incomplete ones are counted by
    the limit that they reached, ``tokens`` or ``steps``.
    """

    outputs, size_unit = "sequences", "tokens"

    def __init__(
        self,
        models: Sequence[SequenceInsertionTransformerModel],
        limits: InsertionLimits = InsertionLimits(),
        normalize_scores: bool = True,
    ):
        positions = min(model.max_decoder_positions() for model in models)
        most = min(_TOKENS_PER_NODE * limits.nodes, positions - 2)
        self.reasons = {
            "tokens": f"{{count}} would have had more than {most} tokens and are partial (--max-nodes {limits.nodes})",
            "steps": "{count} were not finished after --max-insertion-steps {limits.steps}",
        }
        # BOS and EOS are two more.
        super().__init__(models, shared_sequences(models), limits, most + 2, normalize_scores)

    def start(self, count: int) -> PartialSequences:
        labels = np.tile([self.dictionary.bos(), self.dictionary.eos()], count)
        return PartialSequences(labels, np.zeros(2 * count), np.full(count, 2))

    def advance(self, partial: PartialSequences, chosen: SlotPredictions, sentences: np.ndarray) -> PartialSequences:
        return partial.inserted(chosen)

    def hypothesis(self, partial: PartialSequences, row: int, sentence: int) -> dict[str, Tensor]:
        end = int(partial.lengths[: row + 1].sum())
        inner = slice(end - int(partial.lengths[row]) + 1, end - 1)
        return self.dictionary.balanced(*(torch.from_numpy(part[inner]) for part in (partial.labels, partial.scores)))
