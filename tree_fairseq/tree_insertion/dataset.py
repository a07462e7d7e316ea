"""Pairs of a source and a target tree, with partial trees from a trajectory to the target, or with sequences.

Models insert into sequences of labels and brackets (Stern et al. 2019), or predict them from left to right. Shape
letters: :mod:`tree_fairseq.nn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from fairseq.data import LanguagePairDataset, data_utils
from torch import Tensor

from tree_fairseq.tasks.pair_dataset import PairDataset
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary, SequenceDictionary
from tree_fairseq.tree_insertion.oracles import PartialTree
from tree_fairseq.tree_insertion.sequences import sequence_slots
from tree_fairseq.tree_insertion.store import StoredInsertions
from tree_fairseq.tree_insertion.target import KINDS
from tree_fairseq.tree_insertion.tree_shapes import TreeShapes, partial_tree_input


class TargetTreeDataset(PairDataset):
    """Replaces target sequences by trees; subclasses add what their models learn from.

    ``stored`` has the trees and trajectories of the same lines. ``sampler`` draws partial trees or sequences, for
    models of these; with ``every_epoch`` each epoch draws anew. ``sequences`` is the dictionary of models of sequences.
    With ``counts_brackets`` the size of a target is that of its sequence, for models that have positions for brackets.
    """

    def __init__(
        self,
        dataset: LanguagePairDataset | PairDataset,
        stored: Sequence[StoredInsertions],
        dictionary: InsertionDictionary,
        sampler: Any = None,
        sequences: SequenceDictionary | None = None,
        every_epoch: bool = False,
        keep_remainder: bool = False,
        counts_brackets: bool = False,
    ):
        super().__init__(dataset, keep_remainder)
        self.counts_brackets = counts_brackets
        self.stored = stored
        self.dictionary = dictionary
        self.sampler = sampler
        self.sequences = sequences
        self.every_epoch = every_epoch
        # Workers of a data loader outlive an epoch and have copies of the data set, which only share this memory. It
        # stays 0 if every epoch draws the same.
        self._epoch = torch.zeros(1, dtype=torch.long).share_memory_()

    def set_epoch(self, epoch: int) -> None:
        super().set_epoch(epoch)
        if self.every_epoch:
            self._epoch.fill_(epoch)

    def size(self, index: int) -> tuple[int, int]:
        """Returns the tokens of source and target, each with EOS."""
        source, target = super().size(index)
        if self.counts_brackets:
            # All parents but -1 and the root that decoding begins with are in brackets.
            target += 2 * (len(np.unique(self.stored[index].parents)) - 2)
        return source, target

    def filter_indices_by_size(self, indices: np.ndarray, max_sizes: tuple[int, int]) -> tuple[np.ndarray, list[int]]:
        """Returns the pairs of which neither side is too long, and the others."""
        indices, ignored = super().filter_indices_by_size(indices, max_sizes)
        if not self.counts_brackets:
            return indices, ignored
        most = max_sizes[1]
        # With brackets and EOS, the sequence of M nodes has at most 3 M - 1 tokens.
        nodes = self.sizes[indices, 1] - 1
        is_long = np.array(
            [3 * count - 1 > most and self.size(index)[1] > most for index, count in zip(indices, nodes)], bool
        )
        return indices[~is_long], [*ignored, *indices[is_long].tolist()]

    def key(self, index: int) -> tuple[int, int]:
        """Returns the seed of an example's draw, beside that of the run."""
        return int(self._epoch), index

    def __getitem__(self, index: int) -> dict:
        example = self.dataset[index]
        words = example["target"].numpy()
        is_label = (words != self.dictionary.eos()) & (words != self.dictionary.pad())
        labels = np.concatenate([[self.dictionary.root], words[is_label]])
        return {**example, "labels": labels, "parents": self.stored[index].parents.astype(np.int64)}

    def complete(self, batch: dict, samples: list[dict]) -> None:
        """Adds ``target`` ``[B, T]`` int64, trees as sequences (:meth:`InsertionDictionary.sequence`), padded right.

        Subclasses add the model's input and supervision.
        """
        batch["net_input"].pop("prev_output_tokens", None)
        targets = [self.dictionary.sequence(sample["labels"], sample["parents"]) for sample in samples]
        batch["target"] = data_utils.collate_tokens(targets, self.dictionary.pad())

    def sequence(self, example: dict) -> Tensor:
        """Returns the target of an example as labels and numbered brackets, ``[T]`` int64."""
        return self.sequences.numbered(self.dictionary.sequence(example["labels"], example["parents"]))


def collate_partial_trees(partial_trees: Sequence[PartialTree], pad: int) -> dict[str, Tensor]:
    """Collates partial trees as models read them, on the CPU (:func:`partial_tree_input`)."""
    shapes = TreeShapes.of_parents([tree.parents for tree in partial_trees])
    return partial_tree_input(shapes, np.concatenate([tree.labels for tree in partial_trees]), pad)


@dataclass(frozen=True)
class TargetDistribution:
    """The distribution over the labels of a slot that a model learns."""

    # ``rank``, a softmax over negative ranks (Lukovnikov & Fischer 2021, Equation 5); ``uniform``, the same probability
    # for all
    kind: str = "rank"
    temperature: float = 0.1  # of the softmax
    merge: np.ufunc = np.add  # combines the weights of equal labels in one slot; ``np.maximum`` lets the best one count

    def weights(self, ranks: np.ndarray) -> np.ndarray:
        """``[Q]`` float64: unnormalised probabilities; the least rank of each slot is 0."""
        return np.ones(len(ranks)) if self.kind == "uniform" else np.exp(-ranks / self.temperature)


def spread(start: int, count: int, states: int) -> list[int]:
    """Returns ``count`` of the states 0 to ``states - 1``, evenly spread from ``start`` on, or all if they are fewer.

    If the start is drawn uniformly, every state is as likely as any other (systematic sampling).
    """
    count = min(count, states)
    return [(start + number * states // count) % states for number in range(count)]


def collate_states(batch: dict, drawn: Sequence[Sequence]) -> list:
    """Returns the R partial trees or sequences of all sentences in one list, and enters their sentences in the batch.

    ``net_input["sentences"]`` is ``[R]`` int64. It is absent if every sentence has one state. ``partial_states`` is R.
    """
    counts = [len(states) for states in drawn]
    batch["partial_states"] = sum(counts)
    if batch["partial_states"] > len(drawn):
        batch["net_input"]["sentences"] = torch.arange(len(drawn)).repeat_interleave(torch.tensor(counts))
    return [state for states in drawn for state in states]


def collate_slots(
    partial: Sequence, existing: Tensor, slots_of_row: int, distribution: TargetDistribution, keep: int
) -> dict[str, Tensor]:
    """Computes the target distributions of the ``existing`` slots ``[Z]`` of partial trees or sequences.

    The slot of a number in row b has the number ``slots_of_row · b`` more in the batch. If nothing may be inserted in a
    slot, its target is ``keep``. Labels of probability 0 in single precision are left out.

    Returns:
        ``slot`` ``[Q]`` int64, slot numbers, ascending; ``label`` ``[Q]`` int64 dictionary ids, ascending in each slot;
        ``probability`` ``[Q]`` float32, with sum 1 in each slot
    """
    slots = np.concatenate([slots_of_row * row + each.slots for row, each in enumerate(partial)])
    labels = np.concatenate([each.insertions for each in partial])
    weights = distribution.weights(np.concatenate([each.ranks for each in partial]))
    kept = np.setdiff1d(existing.numpy(), slots)
    weights = np.concatenate([weights, np.ones(len(kept))])
    slots, labels = np.concatenate([slots, kept]), np.concatenate([labels, np.full(len(kept), keep)])
    count = int(labels.max()) + 1
    pairs = count * slots + labels
    order = np.argsort(pairs, kind="stable")
    pairs, starts = np.unique(pairs[order], return_index=True)
    slot, label = np.divmod(pairs, count)
    weights = distribution.merge.reduceat(weights[order], starts)
    probability = (weights / np.bincount(slot, weights)[slot]).astype(np.float32)
    columns = {"slot": slot, "label": label, "probability": probability}
    return {name: torch.from_numpy(column[probability > 0]) for name, column in columns.items()}


@dataclass(frozen=True)
class PartialTreeSampler:
    """Draws partial trees of a target for an epoch, from the first ``count`` trajectories."""

    count: int
    distribution: TargetDistribution
    seed: int = 1
    states: int = 1  # the number of partial trees, which come from one trajectory

    def sample(self, labels: np.ndarray, stored: StoredInsertions, key: Sequence[int]) -> list[PartialTree]:
        """Draws a trajectory, then some of its partial trees, for dictionary ids ``[M]`` of the target's nodes."""
        generator = np.random.default_rng([self.seed, *key])
        trajectory = stored.trajectory(int(generator.integers(self.count)))
        steps = trajectory.length + 1
        drawn = spread(int(generator.integers(steps)), self.states, steps)
        return [trajectory.partial_tree(labels, stored.parents, step) for step in drawn]


class TreeInsertionDataset(TargetTreeDataset):
    """Partial trees, drawn by a :class:`PartialTreeSampler`, and the target distributions of their slots."""

    def __getitem__(self, index: int) -> dict:
        example = super().__getitem__(index)
        drawn = self.sampler.sample(example["labels"], self.stored[index], self.key(index))
        return {**example, "partial_trees": drawn}

    def complete(self, batch: dict, samples: list[dict]) -> None:
        """Adds ``partial_tree`` (:func:`collate_partial_trees`) and its ``slot_target`` (:func:`collate_slots`)."""
        super().complete(batch, samples)
        drawn = collate_states(batch, [sample["partial_trees"] for sample in samples])
        partial = collate_partial_trees(drawn, self.dictionary.pad())
        batch["net_input"]["partial_tree"] = partial
        slots_of_row = KINDS * partial["labels"].size(1)
        batch["slot_target"] = collate_slots(
            drawn, partial["slots"], slots_of_row, self.sampler.distribution, self.dictionary.keep
        )
        batch["ntokens"] = len(partial["slots"])


# Trees as sequences


class PartialSequence(NamedTuple):
    """Some tokens of a target, ``[m]``, and the Q tokens that are missing between them."""

    tokens: np.ndarray  # ``[m]`` ids
    slots: np.ndarray  # ``[Q]`` from 0, before the first token, to m
    insertions: np.ndarray  # ``[Q]`` ids of the missing tokens
    ranks: np.ndarray  # ``[Q]``, how much farther each is from the centre of its slot than the closest

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
    """Draws partial sequences of a target for an epoch, ``states`` of them."""

    distribution: TargetDistribution
    seed: int = 1
    states: int = 1

    def sample(self, target: np.ndarray, key: Sequence[int]) -> list[PartialSequence]:
        """Draws how many tokens are kept, uniformly from none to all, then which; ``key`` and the seed decide."""
        generator = np.random.default_rng([self.seed, *key])
        counts = spread(int(generator.integers(len(target) + 1)), self.states, len(target) + 1)
        return [PartialSequence.of(target, np.sort(generator.permutation(len(target))[:count])) for count in counts]


class SequenceInsertionDataset(TargetTreeDataset):
    """Partial sequences, drawn by a :class:`PartialSequenceSampler`, and the target distributions of their slots."""

    def __getitem__(self, index: int) -> dict:
        example = super().__getitem__(index)
        return {**example, "partial_sequences": self.sampler.sample(self.sequence(example).numpy(), self.key(index))}

    def complete(self, batch: dict, samples: list[dict]) -> None:
        """Adds ``partial_sequence`` ``[R, T]`` int64, with BOS and EOS, its ``slots``, and ``slot_target``."""
        super().complete(batch, samples)
        drawn = collate_states(batch, [sample["partial_sequences"] for sample in samples])
        pad = self.sequences.pad()
        begin, end = [self.sequences.bos()], [self.sequences.eos()]
        rows = [torch.from_numpy(np.concatenate([begin, each.tokens, end])) for each in drawn]
        partial = data_utils.collate_tokens(rows, pad)
        slots = sequence_slots(partial, pad)
        batch["net_input"] |= {"partial_sequence": partial, "slots": slots}
        batch["slot_target"] = collate_slots(
            drawn, slots, partial.size(1), self.sampler.distribution, self.sequences.keep
        )
        batch["ntokens"] = len(slots)


class BracketedTargetDataset(TargetTreeDataset):
    """Whole sequences, of which a model predicts the next token."""

    def complete(self, batch: dict, samples: list[dict]) -> None:
        """Adds sequences, each ``[B, T]`` int64, padded right.

        ``bracketed_target`` has labels, numbered brackets and EOS; ``prev_output_tokens`` EOS, then the target without
        its last token.
        """
        super().complete(batch, samples)
        end, pad = torch.tensor([self.sequences.eos()]), self.sequences.pad()
        targets = [torch.cat([self.sequence(sample), end]) for sample in samples]
        batch["bracketed_target"] = data_utils.collate_tokens(targets, pad)
        previous = [target.roll(1) for target in targets]
        batch["net_input"]["prev_output_tokens"] = data_utils.collate_tokens(previous, pad)
        batch["ntokens"] = sum(map(len, targets))
