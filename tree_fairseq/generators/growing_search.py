"""What searches share that fill all slots of a batch at once: where they end, what they count, what they tell of a hypothesis."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tree_fairseq.errors import StructuralSearchError
from tree_fairseq.generators.insertion_ensemble import InsertionEnsemble
from tree_fairseq.generators.sequence_hypotheses import refuse_constraints


@dataclass(frozen=True)
class InsertionLimits:
    """Where decoding ends even if slots are still to be filled.

    Attributes:
        steps: that a tree may take, the one in which nothing changes among them
        nodes: that a tree may have, without the root that decoding begins with
    """

    steps: int = 50
    nodes: int = 250

    def __post_init__(self):
        for flag, value in (("--max-insertion-steps", self.steps), ("--max-nodes", self.nodes)):
            if value < 1:
                raise StructuralSearchError(f"{flag} is at least 1, not {value}")


class GrowingSearch:
    """Grows one hypothesis for each sentence of a batch; subclasses say how.

    Args:
        ensemble: of the models
        limits: of steps and nodes
        normalize_scores: whether scores are means

    Attributes:
        eos: which fairseq's commands leave out of what they print
        counts: how many hypotheses there were, under :attr:`grown`, and how many of these are incomplete, by reason
    """

    grown: str
    """What grows."""

    def __init__(self, ensemble: InsertionEnsemble, eos: int, limits: InsertionLimits, normalize_scores: bool):
        self.ensemble = ensemble
        self.eos = eos
        self.limits = limits
        self.normalize_scores = normalize_scores
        self.counts: Counter[str] = Counter()

    def grow(self, net_input: dict[str, Any]) -> list[dict]:
        """The hypothesis of each sentence."""
        raise NotImplementedError

    def tell(self) -> None:
        """Says how many hypotheses are incomplete so far, and why."""
        raise NotImplementedError

    @torch.no_grad()
    def generate(self, models, sample: dict, prefix_tokens: Tensor | None = None, constraints: Tensor | None = None) -> list[list[dict]]:
        """Grows a hypothesis for each sentence of a batch.

        Args:
            models: unused, those that the search was made with count
            sample: fairseq's batch; what is partly grown in it is not looked at
            prefix_tokens, constraints: None

        Returns:
            for each sentence one hypothesis, with what :meth:`grow` and :meth:`ended` tell of it

        Raises:
            StructuralSearchError: there is a prefix or a constraint
        """
        refuse_constraints(prefix_tokens, constraints)
        incomplete = self._incomplete
        found = self.grow(sample["net_input"])
        if self._incomplete > incomplete:
            self.tell()
        return [[hypothesis] for hypothesis in found]

    def ended(self, total: float, answers: float, steps: int, reason: str | None) -> dict[str, Any]:
        """Counts a hypothesis that has ended.

        Args:
            total: sum of the log-probabilities of all answers of all slots in all steps
            answers: how many these were
            steps: that were taken
            reason: why it is incomplete; None where it is not

        Returns:
            - ``score``: the mean; the sum where scores are not normalised
            - ``steps``
            - ``is_complete``: whether there is no reason
            - ``alignment``, ``attention``: None
        """
        self.counts[self.grown] += 1
        if reason is not None:
            self.counts[reason] += 1
        return {
            "score": total / answers if self.normalize_scores else total,
            "steps": steps,
            "is_complete": reason is None,
            "alignment": None,
            "attention": None,
        }

    @property
    def _incomplete(self) -> int:
        return self.counts.total() - self.counts[self.grown]
