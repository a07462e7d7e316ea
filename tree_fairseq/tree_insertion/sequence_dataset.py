"""Data sets of models that write trees as sequences: by insertions (Stern et al. 2019), or from left to right.

B is the number of sequences, T the length of the longest one, BOS and EOS included. A slot follows each token but the
last; the slots of a batch are numbered by :class:`tree_fairseq.tree_insertion.slots.SlotNumbers` with one kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from fairseq.data import data_utils
from torch import Tensor

from tree_fairseq.tree_insertion.dataset import TargetDistribution, TargetTreeDataset, collate_slots
from tree_fairseq.tree_insertion.dictionary import SequenceDictionary
from tree_fairseq.tree_insertion.slots import SlotNumbers, sequence_slots


class PartialSequence(NamedTuple):
    """Some tokens of a target, ``[m]``, and the Q tokens that are missing between them.

    Attributes:
        tokens: ``[m]`` ids
        slots: ``[Q]`` from 0, before the first token, to m
        insertions: ``[Q]`` ids of the missing tokens
        ranks: ``[Q]``, how much farther each is from the centre of its slot than the closest
    """

    tokens: np.ndarray
    slots: np.ndarray
    insertions: np.ndarray
    ranks: np.ndarray

    @classmethod
    def of(cls, target: np.ndarray, kept: np.ndarray) -> PartialSequence:
        """Keeps the tokens of a target at some positions, which are ascending."""
        bounds = np.concatenate([[-1], kept, [len(target)]])
        missing = np.setdiff1d(np.arange(len(target)), kept)
        slots = np.searchsorted(kept, missing)
        # Halves are dropped: in a slot with an even number of tokens, the closest are half a token from the centre.
        ranks = np.abs(2 * missing - bounds[slots] - bounds[slots + 1]) // 2
        return cls(target[kept], slots, target[missing], ranks)


@dataclass(frozen=True)
class PartialSequenceSampler:
    """Draws a partial sequence of a target for an epoch."""

    distribution: TargetDistribution
    seed: int = 1

    def sample(self, target: np.ndarray, key: Sequence[int]) -> PartialSequence:
        """Draws how many tokens are kept, uniformly from none to all, then which; ``key`` and the seed decide."""
        generator = np.random.default_rng([self.seed, *key])
        count = int(generator.integers(len(target) + 1))
        return PartialSequence.of(target, np.sort(generator.permutation(len(target))[:count]))


class _SequenceDataset(TargetTreeDataset):
    """Targets as sequences of labels and numbered brackets, of which ``sequences`` is the dictionary."""

    def __init__(self, *args, sequences: SequenceDictionary, **kwargs):
        super().__init__(*args, **kwargs)
        self.sequences = sequences

    def sequence(self, example: dict) -> Tensor:
        """The target of an example, ``[T]`` int64."""
        return self.sequences.numbered(self.dictionary.sequence(example["labels"], example["parents"]))


class SequenceInsertionDataset(_SequenceDataset):
    """Partial sequences, drawn by a :class:`PartialSequenceSampler`, and the target distributions of their slots."""

    def __getitem__(self, index: int) -> dict:
        example = super().__getitem__(index)
        return {**example, "partial": self.sampler.sample(self.sequence(example).numpy(), self.key(index))}

    def complete(self, batch: dict, samples: list[dict]) -> None:
        """Adds ``partial_sequence`` ``[B, T]`` int64, between BOS and EOS, and ``slot_target`` (:func:`collate_slots`).

        ``ntokens`` is the number of slots.
        """
        drawn, pad = [sample["partial"] for sample in samples], self.sequences.pad()
        begin, end = [self.sequences.bos()], [self.sequences.eos()]
        rows = [torch.from_numpy(np.concatenate([begin, each.tokens, end])) for each in drawn]
        partial = data_utils.collate_tokens(rows, pad)
        slots, numbers = sequence_slots(partial, pad), SlotNumbers(partial.size(1), kinds=1)
        batch["net_input"]["partial_sequence"] = partial
        batch["slot_target"] = collate_slots(drawn, slots, numbers, self.sampler.distribution, self.sequences.keep)
        batch["ntokens"] = len(slots)


class BracketedTargetDataset(_SequenceDataset):
    """Whole sequences, of which a model predicts the next token."""

    def complete(self, batch: dict, samples: list[dict]) -> None:
        """Adds sequences, each ``[B, T]`` int64, padded right; ``ntokens`` is the number of tokens to predict.

        ``bracketed_target`` has labels, numbered brackets and EOS; ``prev_output_tokens`` EOS, then the target without
        its last token.
        """
        end, pad = torch.tensor([self.sequences.eos()]), self.sequences.pad()
        targets = [torch.cat([self.sequence(sample), end]) for sample in samples]
        batch["bracketed_target"] = data_utils.collate_tokens(targets, pad)
        previous = [target.roll(1) for target in targets]
        batch["net_input"]["prev_output_tokens"] = data_utils.collate_tokens(previous, pad)
        batch["ntokens"] = sum(map(len, targets))
