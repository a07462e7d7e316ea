"""fairseq's beam search over labels and brackets."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from tree_fairseq.errors import StructuralSearchError
from tree_fairseq.tree_insertion.parallel_search import (
    GrowingSearch,
    InsertionEnsemble,
    InsertionLimits,
    balanced_hypothesis,
    refuse_constraints,
)
from tree_fairseq.tree_insertion.sequence_insertion import InsertionPlaces, SequenceInsertionTransformerModel
from tree_fairseq.tree_insertion.sequence_model import LeftToRightModel
from tree_fairseq.tree_insertion.slots import SlotNumbers


class LeftToRightGenerator(SequenceGenerator):
    """fairseq's generator, whose hypotheses are trees where what models say makes one once brackets are completed.

    Args:
        models: that write from left to right
        dictionary: of the task, without brackets
        **kwargs: of fairseq's generator
    """

    def __init__(self, models: Sequence[LeftToRightModel], dictionary: Dictionary, **kwargs):
        sequences = models[0].sequences
        if any(len(model.sequences) != len(sequences) for model in models):
            raise StructuralSearchError("models with different numbers of brackets cannot be in an ensemble")
        super().__init__(models, sequences, **kwargs)
        self.sequences = sequences

    def generate(
        self, models, sample: dict, prefix_tokens: Tensor | None = None, constraints: Tensor | None = None, **kwargs
    ) -> list[list[dict]]:
        """Searches the best sequences of each sentence of a batch.

        Args:
            models: unused, those that the generator was made with count
            sample: fairseq's batch
            prefix_tokens, constraints: None
            **kwargs: of fairseq's generator

        Returns:
            fairseq's hypotheses, best first, with what :func:`balanced_hypothesis` makes of their tokens, and ``steps``, how many tokens
            were predicted, EOS among them

        Raises:
            StructuralSearchError: there is a prefix or a constraint
        """
        refuse_constraints(prefix_tokens, constraints)
        found = super().generate(models, sample, **kwargs)
        return [[self._finished(hypothesis) for hypothesis in hypotheses] for hypotheses in found]

    def _finished(self, hypothesis: dict) -> dict:
        tokens, scores = hypothesis["tokens"], hypothesis["positional_scores"]
        # The last token is EOS; its score is in that of the whole.
        said = balanced_hypothesis(tokens[:-1], scores[:-1], self.sequences)
        return {**hypothesis, **said, "steps": len(tokens), "attention": None, "alignment": None}


# FROM generators/sequence_insertion_search: Sequences of labels and brackets that grow by insertions, all slots of a batch at once, until nothing is missing.

logger = logging.getLogger(__name__)

_TOKENS_PER_NODE = 3


class SequenceInsertionGenerator(GrowingSearch):
    """Generates sequences for a batch, the best answer in every slot; one hypothesis a sentence.

    A sentence is finished when nothing is inserted; that step counts. Where a limit is reached the partial sequence is returned.

    Args:
        models: of insertions
        limits: of steps, and of nodes: a sequence has at most three tokens a node
        normalize_scores: whether scores are means

    Attributes:
        counts: how many sequences were generated (``sequences``), and how many of these are partial: ``tokens`` or ``steps`` for the limits
    """

    grown = "sequences"

    def __init__(
        self,
        models: Sequence[SequenceInsertionTransformerModel],
        limits: InsertionLimits = InsertionLimits(),
        normalize_scores: bool = True,
    ):
        self.sequences = models[0].sequences
        if any(len(model.sequences) != len(self.sequences) for model in models):
            raise StructuralSearchError("models with different numbers of brackets cannot be in an ensemble")
        super().__init__(InsertionEnsemble(models, self.sequences), self.sequences.eos(), limits, normalize_scores)
        positions = min(model.max_decoder_positions() for model in models)
        self.most_tokens = min(_TOKENS_PER_NODE * limits.nodes + 2, positions)  # BOS and EOS among them

    def grow(self, net_input: dict[str, Any]) -> list[dict]:
        """Grows a sequence for each sentence of a batch.

        Args:
            net_input: of fairseq's batch

        Returns:
            for each sentence ``tokens`` and ``positional_scores`` ``[L]``, the sequence as :func:`balanced_hypothesis` has it, and
            what :meth:`ended` tells
        """
        source = net_input["src_tokens"]
        count, pad = len(source), self.sequences.pad()
        found: list[dict] = [{} for _ in range(count)]
        rows = torch.arange(count, device=source.device)
        memories = self.ensemble.read(net_input)
        tokens = torch.tensor([[self.sequences.bos(), self.sequences.eos()]], device=source.device).repeat(count, 1)
        scores = torch.zeros(tokens.shape, device=source.device)
        sums = torch.zeros(count, 2, device=source.device)  # of log-probabilities, and of answers
        step = 0
        while len(rows):
            step += 1
            answers = self.ensemble.answer(memories, tokens)
            row = SlotNumbers(tokens.size(1), kinds=1).row(answers.slots)
            said = answers.scores.to(sums)
            sums.index_add_(0, row, torch.stack([said, torch.ones_like(said)], dim=1))
            is_inserted = answers.labels != self.sequences.keep
            lengths = (tokens != pad).sum(1).index_add(0, row, is_inserted.long())
            is_too_long = lengths > self.most_tokens
            is_inserted &= ~is_too_long[row]
            is_unchanged = torch.ones_like(is_too_long).index_fill_(0, row[is_inserted], False)
            places = InsertionPlaces.of(tokens != pad, answers.slots[is_inserted])
            tokens = places.put(tokens, answers.labels[is_inserted], pad)
            scores = places.put(scores, said[is_inserted], 0)
            is_finished = is_unchanged if step < self.limits.steps else torch.ones_like(is_unchanged)
            for place in is_finished.nonzero().flatten().tolist():
                reason = "tokens" if is_too_long[place] else None if is_unchanged[place] else "steps"
                hypothesis = self._hypothesis(tokens[place], scores[place])
                found[int(rows[place])] = hypothesis | self.ended(*sums[place].tolist(), step, reason)
            going = (~is_finished).nonzero().flatten()
            if len(going) < len(rows):
                rows, tokens, scores, sums = (part[going] for part in (rows, tokens, scores, sums))
                if len(going):
                    width = int((tokens != pad).sum(1).amax())
                    tokens, scores = tokens[:, :width], scores[:, :width]
                    memories = [memory.select(going) for memory in memories]
        return found

    def _hypothesis(self, tokens: Tensor, scores: Tensor) -> dict[str, Tensor]:
        length = int((tokens != self.sequences.pad()).sum())
        return balanced_hypothesis(tokens[1 : length - 1], scores[1 : length - 1], self.sequences)

    def tell(self) -> None:
        """Says how many sequences are partial so far, and why."""
        logger.warning(
            "[insertion] of %d sequences so far, %d would have had more than %d tokens and are partial (--max-nodes %d), %d were not "
            "finished after --max-insertion-steps %d",
            self.counts[self.grown],
            self.counts["tokens"],
            self.most_tokens - 2,
            self.limits.nodes,
            self.counts["steps"],
            self.limits.steps,
        )
