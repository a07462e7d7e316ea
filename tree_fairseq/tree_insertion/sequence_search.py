"""Generation of sequences of labels and brackets: from left to right with beam search, or by parallel insertions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
        tokens, scores = hypothesis["tokens"], hypothesis["positional_scores"]
        # The last token is EOS; its score counts in that of the whole.
        balanced = self.sequences.balanced(tokens[:-1], scores[:-1])
        return {**hypothesis, **balanced, "steps": len(tokens), "attention": None, "alignment": None}


@dataclass(frozen=True)
class PartialSequences(PartialOutputs):
    """Partial sequences of up to T tokens, each from BOS to EOS."""

    def inserted(self, slots: Tensor, labels: Tensor, scores: Tensor) -> PartialSequences:
        """Inserts tokens in different slots, each after a token, all at once; arguments are ``[Z]``."""
        new_labels, new_scores = torch.full_like(self.labels, self.pad), torch.zeros_like(self.scores)
        new_labels.view(-1)[slots] = labels
        new_scores.view(-1)[slots] = scores.to(self.scores)
        # Each token and the one after it, R x 2 T; then those that exist, in the same order.
        labels, scores = torch.stack([self.labels, new_labels], 2), torch.stack([self.scores, new_scores], 2)
        exists = labels.flatten(1) != self.pad
        order = (~exists).long().argsort(dim=1, stable=True)[:, : int(exists.sum(1).amax())]
        return PartialSequences(self.pad, labels.flatten(1).gather(1, order), scores.flatten(1).gather(1, order))


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

    def start(self, count: int, device: torch.device) -> PartialSequences:
        labels = torch.tensor([[self.dictionary.bos(), self.dictionary.eos()]], device=device).repeat(count, 1)
        return PartialSequences(self.dictionary.pad(), labels, torch.zeros(count, 2, device=device))

    def advance(self, partial: PartialSequences, chosen: SlotPredictions, sentences: Tensor) -> PartialSequences:
        """Inserts tokens; nothing is ever deleted."""
        return partial.inserted(chosen.slots, chosen.labels, chosen.log_probs)

    def hypothesis(self, partial: PartialSequences, row: int, sentence: int) -> dict[str, Tensor]:
        inner = slice(1, int(partial.lengths[row]) - 1)
        return self.dictionary.balanced(partial.labels[row, inner], partial.scores[row, inner])
