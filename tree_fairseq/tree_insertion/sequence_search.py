"""Generation of trees as sequences of labels and brackets: by parallel insertions, or from left to right with beam search."""

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
    SlotPredictions,
    refuse_constraints,
)
from tree_fairseq.tree_insertion.sequence_models import LeftToRightModel, SequenceInsertionTransformerModel
from tree_fairseq.tree_insertion.slots import SlotNumbers

_TOKENS_PER_NODE = 3  # a label and two brackets


def balanced_hypothesis(tokens: Tensor, scores: Tensor, sequences: SequenceDictionary) -> dict[str, Tensor]:
    """Completes the brackets of a generated sequence (:meth:`SequenceDictionary.balanced`).

    Args:
        tokens: ``[T]`` int64, with numbered brackets; tokens after EOS are dropped
        scores: ``[T]``, log-probabilities of the tokens
        sequences: dictionary of labels and brackets

    Returns:
        entries of a hypothesis: ``tokens`` ``[T']`` int64, with the brackets of
        :class:`tree_fairseq.tree_insertion.dictionary.InsertionDictionary`, and ``positional_scores`` ``[T']``, 0 for brackets
        that were added
    """
    completed, was_predicted = sequences.balanced(tokens.cpu())
    positional = torch.zeros(len(completed)).masked_scatter_(was_predicted, scores.cpu().float())
    return {"tokens": completed, "positional_scores": positional}


def shared_sequences(models: Sequence) -> SequenceDictionary:
    """The dictionary of labels and brackets of sequence models.

    Raises:
        StructuralSearchError: the models have different numbers of brackets
    """
    sequences = models[0].sequences
    if any(len(model.sequences) != len(sequences) for model in models):
        raise StructuralSearchError("models with different numbers of brackets cannot be in an ensemble")
    return sequences


class LeftToRightGenerator(SequenceGenerator):
    """fairseq's beam search, whose hypotheses have completed brackets.

    Args:
        models: that predict the next token
        dictionary: of the task, without numbered brackets; unread, the models have their own
        **kwargs: of fairseq's generator
    """

    def __init__(self, models: Sequence[LeftToRightModel], dictionary: Dictionary, **kwargs):
        self.sequences = shared_sequences(models)
        super().__init__(models, self.sequences, **kwargs)

    def generate(
        self, models, sample: dict, prefix_tokens: Tensor | None = None, constraints: Tensor | None = None, **kwargs
    ) -> list[list[dict]]:
        """Searches for the best sequences of each sentence of a batch.

        Args:
            models: unread; the generator keeps those that it was made with
            sample: fairseq's batch
            prefix_tokens, constraints: None
            **kwargs: of fairseq's generator

        Returns:
            fairseq's hypotheses, best first, with the entries of :func:`balanced_hypothesis` and ``steps``, the number of
            predicted tokens, including EOS

        Raises:
            StructuralSearchError: there is a prefix or a constraint
        """
        refuse_constraints(prefix_tokens, constraints)
        found = super().generate(models, sample, **kwargs)
        return [[self._balanced(hypothesis) for hypothesis in hypotheses] for hypotheses in found]

    def _balanced(self, hypothesis: dict) -> dict:
        tokens, scores = hypothesis["tokens"], hypothesis["positional_scores"]
        # The last token is EOS; its score counts in that of the whole.
        balanced = balanced_hypothesis(tokens[:-1], scores[:-1], self.sequences)
        return {**hypothesis, **balanced, "steps": len(tokens), "attention": None, "alignment": None}


@dataclass(frozen=True)
class PartialSequences:
    """The partial sequences of R rows, up to T tokens long, padded on the right.

    Attributes:
        tokens: ``[R, T]`` int64, from BOS to EOS
        scores: ``[R, T]`` float, log-probabilities with which the tokens were inserted; 0 for BOS, EOS and padding
        pad: id of padding
    """

    tokens: Tensor
    scores: Tensor
    pad: int

    @property
    def model_input(self) -> Tensor:
        """The sequences as models read them."""
        return self.tokens

    @property
    def sizes(self) -> Tensor:
        """Numbers of tokens between BOS and EOS, ``[R]`` int64."""
        return (self.tokens != self.pad).sum(dim=1) - 2

    def rows_of(self, slots: Tensor) -> Tensor:
        """The rows ``[Z]`` of slots ``[Z]``."""
        return SlotNumbers(self.tokens.size(1), kinds=1).row(slots)

    def inserted(self, slots: Tensor, tokens: Tensor, scores: Tensor) -> PartialSequences:
        """Inserts tokens, all at once.

        Args:
            slots: ``[Z]`` int64, different slots, each after a token
            tokens: ``[Z]`` int64, of the new tokens
            scores: ``[Z]``, of the new tokens
        """
        is_token = self.tokens != self.pad
        is_filled = torch.zeros_like(self.tokens)
        is_filled.view(-1)[slots] = 1
        width = int((is_token.sum(1) + is_filled.sum(1)).amax())
        places = torch.arange(is_token.size(1), device=slots.device) + is_filled.cumsum(1) - is_filled  # R x T
        # Padding goes to a column of its own, which is cut off.
        old_places = places.masked_fill(~is_token, width)
        new_places = self.rows_of(slots) * (width + 1) + places.flatten()[slots] + 1
        parts = []
        for old, new, fill in ((self.tokens, tokens, self.pad), (self.scores, scores.to(self.scores), 0)):
            part = old.new_full((len(old), width + 1), fill).scatter_(1, old_places, old)
            part.view(-1)[new_places] = new
            parts.append(part[:, :width])
        return PartialSequences(*parts, self.pad)

    def select(self, rows: Tensor) -> PartialSequences:
        """Keeps some rows, ``[R']`` int64, and no more columns than they need."""
        width = int(self.sizes[rows].amax()) + 2
        return PartialSequences(self.tokens[rows, :width], self.scores[rows, :width], self.pad)

    def cpu(self) -> PartialSequences:
        """The same sequences on the CPU."""
        return PartialSequences(self.tokens.cpu(), self.scores.cpu(), self.pad)


class SequenceInsertionGenerator(ParallelSearch):
    """Generates one sequence for each sentence of a batch by parallel insertions (Stern et al. 2019).

    The hypotheses have, beside the entries of :meth:`ParallelSearch.generate`, those of :func:`balanced_hypothesis`.

    Args:
        models: that predict insertions
        limits: of steps, and of nodes: a sequence has at most three tokens a node, and no more than the models have positions
        normalize_scores: divides scores by the number of predictions

    Attributes:
        counts: numbers of all sequences (``sequences``) and of incomplete ones: ``tokens`` or ``steps`` for the limits
    """

    outputs, size_unit = "sequences", "tokens"
    reasons = {
        "tokens": "{count} would have had more than {max_size} tokens and are partial (--max-nodes {limits.nodes})",
        "steps": "{count} were not finished after --max-insertion-steps {limits.steps}",
    }

    def __init__(
        self,
        models: Sequence[SequenceInsertionTransformerModel],
        limits: InsertionLimits = InsertionLimits(),
        normalize_scores: bool = True,
    ):
        positions = min(model.max_decoder_positions() for model in models)
        max_size = min(_TOKENS_PER_NODE * limits.nodes, positions - 2)  # without BOS and EOS
        super().__init__(models, shared_sequences(models), limits, max_size, normalize_scores)

    def start(self, count: int, device: torch.device) -> PartialSequences:
        """BOS and EOS."""
        ends = torch.tensor([[self.dictionary.bos(), self.dictionary.eos()]], device=device)
        return PartialSequences(ends.repeat(count, 1), torch.zeros(count, 2, device=device), self.dictionary.pad())

    def advance(
        self, partial: PartialSequences, insertions: SlotPredictions, is_deleted: None, sentences: Tensor
    ) -> PartialSequences:
        """Inserts tokens; nothing is ever deleted."""
        return partial.inserted(insertions.slots, insertions.labels, insertions.log_probs)

    def hypothesis(self, partial: PartialSequences, row: int, sentence: int) -> dict[str, Tensor]:
        """The sequence of a row between BOS and EOS."""
        inner = slice(1, int(partial.sizes[row]) + 1)
        return balanced_hypothesis(partial.tokens[row, inner], partial.scores[row, inner], self.dictionary)
