"""What searches share that fill all slots of a batch at once: where they end, what they count, what they tell of a hypothesis."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from tree_fairseq.errors import StructuralSearchError
from tree_fairseq.nn.sides import TREE_INPUTS
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary, SequenceDictionary

# FROM generators/insertion_ensemble: What one or several models say of partial trees: the best answer of each slot, and which nodes are wrong.


class InsertionMemory(Protocol):
    """What a model read of B sources."""

    def select(self, rows: Tensor) -> InsertionMemory:
        """That of some rows, ``[B']`` int64."""


class InsertionModel(Protocol):
    """A model that grows trees; :class:`tree_fairseq.tree_insertion.model.TreeInsertionTransformerModel` is one."""

    def encode(
        self, src_tokens: Tensor, src_lengths: Tensor, **source_trees: dict[str, Tensor] | None
    ) -> InsertionMemory:
        """Reads sources, once for all steps."""

    def decode(self, memory: InsertionMemory, partial_tree: dict[str, Tensor]) -> dict[str, Tensor | None]:
        """``slot`` ``[Z]``, ``logits`` ``[Z, V]`` and ``delete`` ``[B, N]`` or None."""

    def eval(self) -> Any:
        """Turns dropout off."""


@dataclass(frozen=True)
class SlotAnswers:
    """The answers of all slots of B partial trees of up to N nodes.

    Attributes:
        slots: ``[Z]`` int64, ascending, numbered ``4 · (N · row + node) + kind``
        labels: ``[Z]`` int64, the best label of each slot, or the answer that nothing is to be inserted
        scores: ``[Z]`` float, their log-probabilities
        is_wrong: ``[B, N]`` bool, nodes to be deleted; None where none ever are
    """

    slots: Tensor
    labels: Tensor
    scores: Tensor
    is_wrong: Tensor | None


class InsertionEnsemble:
    """Averages the probabilities of models.

    Labels that cannot stand in a tree, the root's and ``<unk>`` among them, are never an answer; the probabilities of the others are
    left as they are. Nodes are deleted if all models can, and think so on average.

    Args:
        models: B trees each, all at once
        dictionary: of labels
    """

    def __init__(self, models: Sequence[InsertionModel], dictionary: InsertionDictionary):
        self.models = models
        for model in models:
            model.eval()
        is_answer = torch.zeros(len(dictionary), dtype=torch.bool)
        is_answer[dictionary.label_ids] = True
        is_answer[dictionary.keep] = True
        self._is_no_answer = ~is_answer

    def read(self, net_input: dict[str, Any]) -> list[InsertionMemory]:
        """What each model reads of the sources of a batch."""
        inputs = {
            name: net_input[name] for name in ("src_tokens", "src_lengths", *TREE_INPUTS.values()) if name in net_input
        }
        return [model.encode(**inputs) for model in self.models]

    def answer(self, memories: list[InsertionMemory], partial_tree: dict[str, Tensor]) -> SlotAnswers:
        """The best answer to each slot of partial trees.

        Args:
            memories: of :meth:`read`, of as many rows as there are trees
            partial_tree: ``labels`` and ``parents``, each ``[B, N]`` int64
        """
        outputs = [model.decode(memory, partial_tree) for model, memory in zip(self.models, memories, strict=True)]
        scores = self._average([_log_probabilities(output["logits"]) for output in outputs])
        self._is_no_answer = self._is_no_answer.to(scores.device)
        best, labels = scores.masked_fill_(self._is_no_answer, -math.inf).max(dim=1)
        wrong = [output["delete"] for output in outputs]
        is_wrong = None
        if all(logits is not None for logits in wrong):
            is_wrong = torch.stack([logits.sigmoid() for logits in wrong]).mean(dim=0) > 0.5
        return SlotAnswers(outputs[0]["slot"], labels, best, is_wrong)

    @staticmethod
    def _average(scores: list[Tensor]) -> Tensor:
        if len(scores) == 1:
            return scores[0]
        return torch.stack(scores).logsumexp(dim=0) - math.log(len(scores))


def _log_probabilities(logits: Tensor) -> Tensor:
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()
    return logits.log_softmax(dim=-1)


# FROM generators/sequence_hypotheses: What sequence models say of trees, in the form in which trees are printed.


def balanced_hypothesis(tokens: Tensor, scores: Tensor, sequences: SequenceDictionary) -> dict[str, Tensor]:
    """The parts of a hypothesis that have to do with its tokens, brackets completed.

    Args:
        tokens: ``[L]`` int64, with numbered brackets; what follows EOS does not count
        scores: ``[L]``, their log-probabilities
        sequences: dictionary of labels and brackets

    Returns:
        ``tokens`` ``[L']`` int64, with brackets as :class:`tree_fairseq.tree_insertion.dictionary.InsertionDictionary` has them, of a
        tree where the model's sequence was one; ``positional_scores`` ``[L']``, 0 for brackets that were completed
    """
    completed, was_said = sequences.balanced(tokens.cpu())
    positional = torch.zeros(len(completed)).masked_scatter_(was_said, scores.cpu().float())
    return {"tokens": completed, "positional_scores": positional}


def refuse_constraints(prefix_tokens: Tensor | None, constraints: Tensor | None) -> None:
    """Makes sure that there is neither a prefix nor a constraint.

    Raises:
        StructuralSearchError: there is
    """
    for flag, value in (("--prefix-size", prefix_tokens), ("--constraints", constraints)):
        if value is not None:
            raise StructuralSearchError(f"{flag} does not go with --task tree_insertion; leave it out")


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
    def generate(
        self, models, sample: dict, prefix_tokens: Tensor | None = None, constraints: Tensor | None = None
    ) -> list[list[dict]]:
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
