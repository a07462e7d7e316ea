"""Partial sequences on the way to a target, what belongs in their slots (Stern et al. 2019), and pairs of them with sources.

B is the number of sequences, M the length of the longest one, ends included. Slot s of a sequence stands after its token s; the slots of
a batch are numbered ``M · row + s``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from fairseq.data import data_utils
from torch import Tensor

from tree_fairseq.tree_insertion.dataset import TargetTreeDataset
from tree_fairseq.tree_insertion.dictionary import SequenceDictionary


@dataclass(frozen=True)
class SequenceSupervision:
    """What shares the tokens have that are missing in a slot.

    Attributes:
        kind: ``binary``, a softmax over negative distances from the centre of what is missing, of equal tokens the closest; or
            ``uniform``, the same share for all different tokens
        temperature: of the softmax
        seed: of the draw of partial sequences
    """

    kind: str = "binary"
    temperature: float = 0.1
    seed: int = 1

    def kept(self, length: int, key: Sequence[int]) -> np.ndarray:
        """Draws which tokens a partial sequence has: how many uniformly, from none to all, and then which.

        Args:
            length: of the target
            key: what the draw depends on beside the seed

        Returns:
            their places, ascending
        """
        generator = np.random.default_rng([self.seed, *key])
        count = int(generator.integers(length + 1))
        return np.sort(generator.permutation(length)[:count])

    def weights(self, distances: np.ndarray, nearest: np.ndarray) -> np.ndarray:
        """``[E]`` float64: the shares before they are divided by the sum of those of a slot.

        Args:
            distances: ``[E]`` from the centre of the slot
            nearest: ``[E]``, the least of the slot
        """
        return np.ones(len(distances)) if self.kind == "uniform" else np.exp((nearest - distances) / self.temperature)


def missing_tokens(target: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is missing between the tokens of a partial sequence.

    Args:
        target: ``[L]`` ids
        kept: ``[m]`` places of the tokens that it has, ascending

    Returns:
        for each missing token its slot, from 0 to m; its id; and twice its distance from the centre of what is missing there
    """
    bounds = np.concatenate([[-1], kept, [len(target)]])
    missing = np.setdiff1d(np.arange(len(target)), kept)
    slots = np.searchsorted(kept, missing)
    return slots, target[missing], np.abs(2 * missing - bounds[slots] - bounds[slots + 1])


def collate_gaps(
    gaps: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
    lengths: Sequence[int],
    supervision: SequenceSupervision,
    keep: int,
) -> dict[str, Tensor]:
    """The tokens that all slots of a batch should get; of equal tokens of a slot the one nearest to the centre counts.

    Args:
        gaps: of B partial sequences (:func:`missing_tokens`)
        lengths: of these, ends included
        supervision: shares of tokens
        keep: id of the answer that nothing is missing

    Returns:
        as :func:`tree_fairseq.tree_insertion.batch.collate_slots`
    """
    width = max(lengths)
    slot, label, distance = (np.concatenate(parts) for parts in zip(*gaps))
    slot = slot + np.repeat(width * np.arange(len(gaps)), [len(gap[0]) for gap in gaps])
    existing = np.concatenate([width * row + np.arange(length - 1) for row, length in enumerate(lengths)])
    full = np.setdiff1d(existing, slot)
    slot, label, distance = (
        np.concatenate(pair) for pair in ((slot, full), (label, np.full(len(full), keep)), (distance, 0 * full))
    )
    order = np.lexsort((distance, label, slot))
    slot, label, distance = slot[order], label[order], distance[order] / 2
    is_first = np.ones(len(slot), bool)
    is_first[1:] = (slot[1:] != slot[:-1]) | (label[1:] != label[:-1])
    slot, label, distance = slot[is_first], label[is_first], distance[is_first]
    _, starts, place = np.unique(slot, return_index=True, return_inverse=True)
    share = supervision.weights(distance, np.minimum.reduceat(distance, starts)[place])
    share = (share / np.bincount(place, share)[place]).astype(np.float32)
    has_share = share > 0
    return {
        "slot": torch.from_numpy(slot[has_share]),
        "label": torch.from_numpy(label[has_share]),
        "probability": torch.from_numpy(share[has_share]),
    }


class SequenceInsertionDataset(TargetTreeDataset):
    """Partial sequences of labels and brackets, and what belongs in their slots.

    Args:
        *args: of :class:`TargetTreeDataset`
        sequences: dictionary of labels and numbered brackets
        supervision: what is drawn, and what slots should get
        **kwargs: of :class:`TargetTreeDataset`
    """

    def __init__(self, *args, sequences: SequenceDictionary, supervision: SequenceSupervision, **kwargs):
        super().__init__(*args, **kwargs)
        self.sequences = sequences
        self.supervision = supervision

    def __getitem__(self, index: int) -> dict:
        example = super().__getitem__(index)
        sequence = self.sequences.numbered(self.dictionary.sequence(example["labels"], example["parents"])).numpy()
        return {**example, "sequence": sequence, "kept": self.supervision.kept(len(sequence), self.key(index))}

    def complete(self, batch: dict, samples: list[dict]) -> None:
        """Adds partial sequences:

        - in ``net_input``: ``partial_sequence`` ``[B, M]`` int64, between BOS and EOS, padded on the right
        - ``slot_target``: what belongs in its slots (:func:`collate_gaps`)
        - ``ntokens``: number of slots
        """
        begin, end = [self.sequences.bos()], [self.sequences.eos()]
        partial = [np.concatenate([begin, sample["sequence"][sample["kept"]], end]) for sample in samples]
        gaps = [missing_tokens(sample["sequence"], sample["kept"]) for sample in samples]
        lengths = list(map(len, partial))
        batch["net_input"]["partial_sequence"] = data_utils.collate_tokens(
            [torch.from_numpy(row) for row in partial], self.sequences.pad()
        )
        batch["slot_target"] = collate_gaps(gaps, lengths, self.supervision, self.sequences.keep)
        batch["ntokens"] = sum(lengths) - len(lengths)


# FROM data/bracketed_targets: Pairs of a source and a tree as a sequence of labels and brackets, for models that write it from left to right.


class BracketedTargetDataset(TargetTreeDataset):
    """Targets as sequences, of which a model predicts the next token.

    Args:
        *args: of :class:`TargetTreeDataset`
        sequences: dictionary of labels and numbered brackets
        **kwargs: of :class:`TargetTreeDataset`
    """

    def __init__(self, *args, sequences: SequenceDictionary, **kwargs):
        super().__init__(*args, **kwargs)
        self.sequences = sequences

    def complete(self, batch: dict, samples: list[dict]) -> None:
        """Adds sequences:

        - in ``net_input``: ``prev_output_tokens`` ``[B, T]`` int64, EOS and the target without its last token
        - ``bracketed_target``: ``[B, T]`` int64, labels, numbered brackets and EOS, padded on the right
        - ``ntokens``: number of these tokens
        """
        end = torch.tensor([self.sequences.eos()])
        targets = [
            torch.cat([self.sequences.numbered(self.dictionary.sequence(sample["labels"], sample["parents"])), end])
            for sample in samples
        ]
        pad = self.sequences.pad()
        batch["bracketed_target"] = data_utils.collate_tokens(targets, pad)
        batch["net_input"]["prev_output_tokens"] = data_utils.collate_tokens(
            [target.roll(1) for target in targets], pad
        )
        batch["ntokens"] = sum(map(len, targets))
