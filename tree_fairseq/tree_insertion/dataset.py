"""Pairs of a source and a target tree: what all data sets of models that write trees share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from fairseq.data import LanguagePairDataset, data_utils

from tree_fairseq.nn.pair_dataset import WrappedPairs
from tree_fairseq.tree_insertion.batch import (
    InsertionState,
    TargetDistribution,
    collate_nodes,
    collate_slots,
    corrupt,
    existing_slots,
    state_of,
)
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary
from tree_fairseq.tree_insertion.store import StoredInsertions

FIXED = 0
"""In the place of the epoch where every epoch draws the same."""


class TargetTreeDataset(WrappedPairs):
    """Puts trees in the place of target sequences; subclasses add what their models learn from.

    Args:
        dataset: pairs of a source and the target's labels, with the source's tree or without
        stored: trees and trajectories of the same lines
        dictionary: of labels
        every_epoch: whether what is drawn is drawn anew in every epoch
        keep_remainder: as :class:`WrappedPairs` has it
    """

    def __init__(
        self,
        dataset: LanguagePairDataset | WrappedPairs,
        stored: Sequence[StoredInsertions],
        dictionary: InsertionDictionary,
        every_epoch: bool = False,
        keep_remainder: bool = False,
    ):
        super().__init__(dataset, keep_remainder)
        self.stored = stored
        self.dictionary = dictionary
        self.every_epoch = every_epoch
        # Workers of a data loader live longer than an epoch and have a data set of their own: they see shared memory only.
        self._epoch = torch.full((1,), FIXED).share_memory_()

    def set_epoch(self, epoch: int) -> None:
        """Draws as in this epoch from now on."""
        super().set_epoch(epoch)
        if self.every_epoch:
            self._epoch.fill_(epoch)

    def key(self, index: int) -> tuple[int, int]:
        """What a draw depends on beside its seed."""
        return int(self._epoch), index

    def __getitem__(self, index: int) -> dict:
        example = self.dataset[index]
        words = example["target"].numpy()
        is_label = (words != self.dictionary.eos()) & (words != self.dictionary.pad())
        labels = np.concatenate([[self.dictionary.root], words[is_label]])
        return {**example, "labels": labels, "parents": self.stored[index].parents.astype(np.int64)}

    def collater(self, samples: list[dict], pad_to_length: dict | None = None) -> dict:
        """Collates sources as the wrapped dataset does, and trees.

        Returns:
            fairseq's batch without ``prev_output_tokens``, and

            - ``target_tree``: the whole targets, ``labels`` and ``parents`` (:func:`collate_nodes`)
            - ``target``: ``[B, L]`` int64, the same as sequences (:meth:`InsertionDictionary.sequence`), padded on the right
            - what :meth:`complete` adds
        """
        batch = self.dataset.collater(samples, pad_to_length=pad_to_length)
        if not batch:
            return batch
        by_id = {sample["id"]: sample for sample in samples}
        samples = [by_id[index] for index in batch["id"].tolist()]
        batch["net_input"].pop("prev_output_tokens", None)
        trees = [(sample["labels"], sample["parents"]) for sample in samples]
        pad = self.dictionary.pad()
        batch["target_tree"] = collate_nodes(*zip(*trees), pad)
        batch["target"] = data_utils.collate_tokens([self.dictionary.sequence(*tree) for tree in trees], pad)
        self.complete(batch, samples)
        return batch

    def complete(self, batch: dict, samples: list[dict]) -> None:
        """Adds to a batch what a model is given and should say.

        Args:
            batch: is changed
            samples: its examples, in its order
        """
        raise NotImplementedError


# FROM data/insertion_dataset: Pairs of a source and a partial tree on the way to its target, as a fairseq dataset.


@dataclass(frozen=True)
class StateDraw:
    """Which partial tree of a target an epoch sees, and what is learned from it.

    Attributes:
        first: place of the first trajectory to draw from, among those of a tree
        ways: how many to draw from
        distribution: of labels in a slot
        wrong_nodes: the probability that a slot gets a wrong node, to be deleted; None where nodes are never deleted
        seed: of the draw
    """

    first: int
    ways: int
    distribution: TargetDistribution
    wrong_nodes: float | None = None
    seed: int = 1

    def state(
        self, labels: np.ndarray, stored: StoredInsertions, dictionary: InsertionDictionary, key: Sequence[int]
    ) -> InsertionState:
        """Draws one of the trajectories and one of its states, the first and the complete one among them.

        Args:
            labels: ``[N]`` dictionary ids of the target's nodes, the root that decoding begins with among them
            stored: the target's parents and trajectories
            dictionary: of labels
            key: what the draw depends on beside the seed
        """
        generator = np.random.default_rng([self.seed, *key])
        way = stored.trajectory(self.first + int(generator.integers(self.ways)))
        state = state_of(labels, stored.parents, way, int(generator.integers(way.length + 1)))
        if self.wrong_nodes is None:
            return state
        return corrupt(state, self.wrong_nodes, dictionary.label_ids, generator)


class TreeInsertionDataset(TargetTreeDataset):
    """Puts partial trees and what belongs in their slots in the place of target sequences.

    Args:
        dataset: pairs of a source and the target's labels, with the source's tree or without
        stored: trees and trajectories of the same lines
        dictionary: of labels
        draw: which partial tree is taken
        every_epoch: whether another one is drawn in every epoch
        keep_remainder: as :class:`WrappedPairs` has it
    """

    def __init__(
        self,
        dataset: LanguagePairDataset | WrappedPairs,
        stored: Sequence[StoredInsertions],
        dictionary: InsertionDictionary,
        draw: StateDraw,
        every_epoch: bool,
        keep_remainder: bool = False,
    ):
        super().__init__(dataset, stored, dictionary, every_epoch, keep_remainder)
        self.draw = draw

    def __getitem__(self, index: int) -> dict:
        example = super().__getitem__(index)
        return {
            **example,
            "state": self.draw.state(example["labels"], self.stored[index], self.dictionary, self.key(index)),
        }

    def complete(self, batch: dict, samples: list[dict]) -> None:
        """Adds partial trees:

        - in ``net_input``: ``partial_tree``, ``labels`` and ``parents`` (:func:`collate_nodes`)
        - ``slot_target``: what belongs in its slots (:func:`collate_slots`)
        - ``delete``: ``[B, N]`` int64, 1 at nodes that do not belong there; only where nodes are to be deleted
        - ``ntokens``: number of slots
        """
        states = [sample["state"] for sample in samples]
        pad = self.dictionary.pad()
        partial = collate_nodes([state.labels for state in states], [state.parents for state in states], pad)
        slots = existing_slots(partial["parents"], partial["labels"] != pad)
        batch["net_input"]["partial_tree"] = partial
        batch["slot_target"] = collate_slots(states, slots, self.draw.distribution, self.dictionary.keep)
        batch["ntokens"] = int(slots.sum())
        if self.draw.wrong_nodes is not None:
            batch["delete"] = data_utils.collate_tokens([torch.from_numpy(state.wrong).long() for state in states], 0)
