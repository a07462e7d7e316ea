"""Data sets of models that write trees as sequences: by insertions (Stern et al. 2019), or from left to right.

B is the number of sequences, T the length of the longest one, BOS and EOS included. A slot follows each token but the
last; the slots of a batch are numbered by :class:`tree_fairseq.tree_insertion.slots.SlotNumbers` with one kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from fairseq.data import data_utils
from torch import Tensor

from tree_fairseq.tree_insertion.dataset import TargetTreeDataset, slot_targets
from tree_fairseq.tree_insertion.dictionary import SequenceDictionary
from tree_fairseq.tree_insertion.slots import SlotNumbers


@dataclass(frozen=True)
class SequenceSupervision:
    """The distribution over the tokens missing in a slot that a model learns, and the draw of partial sequences.

    Attributes:
        kind: ``binary``, a softmax over negative distances from the centre of the missing tokens, of equal tokens the
            closest; or ``uniform``, the same probability for all different tokens
        temperature: of the softmax
        seed: of the draw
    """

    kind: str = "binary"
    temperature: float = 0.1
    seed: int = 1

    def sample(self, length: int, key: Sequence[int]) -> np.ndarray:
        """Draws the tokens of a partial sequence: first how many, uniformly from none to all, then which.

        Args:
            length: of the target
            key: seeds the draw, together with the seed

        Returns:
            their positions in the target, ascending
        """
        generator = np.random.default_rng([self.seed, *key])
        count = int(generator.integers(length + 1))
        return np.sort(generator.permutation(length)[:count])

    def weights(self, distances: np.ndarray, nearest: np.ndarray) -> np.ndarray:
        """``[Q]`` float64: unnormalised probabilities, given distances from the slot's centre and the least of each."""
        return np.ones(len(distances)) if self.kind == "uniform" else np.exp((nearest - distances) / self.temperature)


def missing_tokens(target: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Finds the tokens of a target that a partial sequence lacks.

    Args:
        target: ``[T]`` ids
        kept: ``[m]`` positions of the tokens that the partial sequence has, ascending

    Returns:
        for each missing token its slot, from 0 to m; its id; and twice its distance from the centre of the tokens
        missing there
    """
    bounds = np.concatenate([[-1], kept, [len(target)]])
    missing = np.setdiff1d(np.arange(len(target)), kept)
    slots = np.searchsorted(kept, missing)
    return slots, target[missing], np.abs(2 * missing - bounds[slots] - bounds[slots + 1])


def collate_sequence_slots(
    missing: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
    lengths: Sequence[int],
    supervision: SequenceSupervision,
    keep: int,
) -> dict[str, Tensor]:
    """Computes the target distributions of all slots of a batch; of equal tokens the one nearest to the centre counts.

    Args:
        missing: the tokens that B partial sequences lack (:func:`missing_tokens`)
        lengths: of the partial sequences, BOS and EOS included
        supervision: distribution over tokens
        keep: id for inserting nothing

    Returns:
        as :func:`tree_fairseq.tree_insertion.dataset.collate_slots`
    """
    numbers = SlotNumbers(max(lengths), kinds=1)
    slot = np.concatenate([numbers.in_row(slots, row) for row, (slots, _, _) in enumerate(missing)])
    label, distance = (np.concatenate(parts) for parts in list(zip(*missing))[1:])
    existing = np.concatenate([numbers.in_row(np.arange(length - 1), row) for row, length in enumerate(lengths)])
    full = np.setdiff1d(existing, slot)
    slot, label = np.concatenate([slot, full]), np.concatenate([label, np.full(len(full), keep)])
    distance = np.concatenate([distance, 0 * full])
    order = np.lexsort((distance, label, slot))
    slot, label, distance = slot[order], label[order], distance[order] / 2
    is_first = np.ones(len(slot), bool)
    is_first[1:] = (slot[1:] != slot[:-1]) | (label[1:] != label[:-1])
    slot, label, distance = slot[is_first], label[is_first], distance[is_first]
    _, starts, place = np.unique(slot, return_index=True, return_inverse=True)
    weights = supervision.weights(distance, np.minimum.reduceat(distance, starts)[place])
    return slot_targets(slot, label, weights / np.bincount(place, weights)[place])


class _SequenceDataset(TargetTreeDataset):
    """Targets as sequences of labels and numbered brackets, of which ``sequences`` is the dictionary."""

    def __init__(self, *args, sequences: SequenceDictionary, **kwargs):
        super().__init__(*args, **kwargs)
        self.sequences = sequences

    def sequence(self, example: dict) -> Tensor:
        """The target of an example, ``[T]`` int64."""
        return self.sequences.numbered(self.dictionary.sequence(example["labels"], example["parents"]))


class SequenceInsertionDataset(_SequenceDataset):
    """Partial sequences of labels and brackets, and the target distributions of their slots.

    Args:
        *args, **kwargs: of :class:`TargetTreeDataset`, and ``sequences``, the dictionary of labels and brackets
        supervision: draw of partial sequences, and distribution over tokens
    """

    def __init__(self, *args, supervision: SequenceSupervision, **kwargs):
        super().__init__(*args, **kwargs)
        self.supervision = supervision

    def __getitem__(self, index: int) -> dict:
        example = super().__getitem__(index)
        sequence = self.sequence(example).numpy()
        return {**example, "sequence": sequence, "kept": self.supervision.sample(len(sequence), self.key(index))}

    def complete(self, batch: dict, samples: list[dict]) -> None:
        """Adds partial sequences:

        - in ``net_input``: ``partial_sequence`` ``[B, T]`` int64, between BOS and EOS, padded on the right
        - ``slot_target``: the target distributions of their slots (:func:`collate_sequence_slots`)
        - ``ntokens``: number of slots
        """
        begin, end = [self.sequences.bos()], [self.sequences.eos()]
        partial = [np.concatenate([begin, sample["sequence"][sample["kept"]], end]) for sample in samples]
        missing = [missing_tokens(sample["sequence"], sample["kept"]) for sample in samples]
        lengths = list(map(len, partial))
        batch["net_input"]["partial_sequence"] = data_utils.collate_tokens(
            [torch.from_numpy(row) for row in partial], self.sequences.pad()
        )
        batch["slot_target"] = collate_sequence_slots(missing, lengths, self.supervision, self.sequences.keep)
        batch["ntokens"] = sum(lengths) - len(lengths)


class BracketedTargetDataset(_SequenceDataset):
    """Whole sequences, of which a model predicts the next token."""

    def complete(self, batch: dict, samples: list[dict]) -> None:
        """Adds sequences:

        - in ``net_input``: ``prev_output_tokens`` ``[B, T]`` int64, EOS and the target without its last token
        - ``bracketed_target``: ``[B, T]`` int64, labels, numbered brackets and EOS, padded on the right
        - ``ntokens``: number of these tokens
        """
        end = torch.tensor([self.sequences.eos()])
        targets = [torch.cat([self.sequence(sample), end]) for sample in samples]
        pad = self.sequences.pad()
        batch["bracketed_target"] = data_utils.collate_tokens(targets, pad)
        batch["net_input"]["prev_output_tokens"] = data_utils.collate_tokens(
            [target.roll(1) for target in targets], pad
        )
        batch["ntokens"] = sum(map(len, targets))
