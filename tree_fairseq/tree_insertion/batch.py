"""Partial trees on the way to a target: what stands in them, what belongs in their slots, and nodes that are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tree_fairseq.tree_insertion.target import ANCESTOR, DESCENDANT, FIRST_CHILD, KINDS, NEXT_SIBLING, insert, slot_mask
from tree_fairseq.tree_insertion.trajectories import Trajectory


@dataclass(frozen=True)
class InsertionState:
    """A partial tree of n nodes in preorder, and E answers to its slots.

    Attributes:
        labels: ``[n]`` int64 dictionary ids, that of the root that decoding begins with first
        parents: ``[n]`` int64 places of the parents, -1 for the root
        slots: ``[E]`` int64 slots (``4 · node + kind``), ascending; a slot that is not among them is to be left as it is
        answers: ``[E]`` int64 dictionary ids of labels that may be inserted there
        ranks: ``[E]`` int64, how far each is behind the best of its slot by the oracle, from 0
        wrong: ``[n]`` bool, nodes that do not belong to the target
    """

    labels: np.ndarray
    parents: np.ndarray
    slots: np.ndarray
    answers: np.ndarray
    ranks: np.ndarray
    wrong: np.ndarray


def state_of(labels: np.ndarray, parents: np.ndarray, way: Trajectory, step: int) -> InsertionState:
    """The partial tree after some steps of a trajectory.

    Args:
        labels: ``[N]`` dictionary ids of the target's nodes in preorder, the root that decoding begins with among them
        parents: ``[N]`` places of their parents, -1 for the root
        way: a trajectory to the target
        step: how many of its steps are done
    """
    used = way.steps <= step
    nodes = np.flatnonzero(used)
    nearest = parents[nodes].astype(np.int64)
    # The nearest ancestors that are there; the root always is.
    while not used[nearest[1:]].all():
        nearest[1:] = np.where(used[nearest[1:]], nearest[1:], parents[nearest[1:]])
    places = np.cumsum(used) - 1
    own = np.concatenate([[-1], places[nearest[1:]]])
    here = slice(int(way.starts[step]), int(way.starts[step + 1]))
    return InsertionState(
        labels[nodes].astype(np.int64),
        own,
        way.slots[here].astype(np.int64),
        labels[way.candidates[here]].astype(np.int64),
        way.ranks[here].astype(np.int64),
        np.zeros(len(nodes), bool),
    )


def corrupt(
    state: InsertionState, rate: float, label_ids: np.ndarray, generator: np.random.Generator
) -> InsertionState:
    """Inserts wrong nodes, as a decoder does that errs.

    Each slot gets one with the same probability, with a label drawn from all; a label that is right there is not inserted. When the wrong
    nodes are gone their children stand in their places, so that the slots of right nodes mean what they meant and have the same answers,
    but for those in which a wrong node stands. In these, and in the slots of wrong nodes, nothing is to be inserted.

    Args:
        state: without wrong nodes
        rate: the probability
        label_ids: ``[V]`` ids to draw from
        generator: draws
    """
    slots = np.flatnonzero(slot_mask(state.parents))
    slots = slots[generator.random(len(slots)) < rate]
    drawn = generator.choice(label_ids, len(slots))
    is_right = np.zeros(len(slots), bool)
    for place, (slot, label) in enumerate(zip(slots.tolist(), drawn.tolist(), strict=True)):
        is_right[place] = bool(((state.slots == slot) & (state.answers == label)).any())
    slots, drawn = slots[~is_right], drawn[~is_right]
    count = len(state.labels)
    sources, parents = insert(state.parents, slots.tolist())
    new_places = np.empty(len(sources), np.int64)
    new_places[sources] = np.arange(len(sources))
    keeps = ~np.isin(state.slots, slots)
    moved = KINDS * new_places[state.slots // KINDS] + state.slots % KINDS
    order = np.argsort(moved[keeps], kind="stable")
    return InsertionState(
        np.concatenate([state.labels, drawn])[sources],
        parents,
        *(values[keeps][order] for values in (moved, state.answers, state.ranks)),
        wrong=sources >= count,
    )


# FROM data/insertion_batch: Partial trees as a batch: their nodes, which slots they have, and the distribution of labels that each slot should get.
#
# B is the number of sentences, N of nodes of the largest tree of the batch, E of labels that slots should get. The slots of a batch
# are numbered ``4 · (N · row + node) + kind``, kinds as in :mod:`tree_fairseq.tree_insertion.target`.


@dataclass(frozen=True)
class TargetDistribution:
    """What shares the answers of a slot have.

    Attributes:
        kind: ``rank``, a softmax over negative ranks (Lukovnikov & Fischer 2021, Equation 6); or ``optimal``, the same share for all
            answers of rank 0
        temperature: of the softmax
    """

    kind: str = "rank"
    temperature: float = 0.1

    def weights(self, ranks: np.ndarray) -> np.ndarray:
        """``[E]`` float64: the shares before they are divided by the sum of those of a slot, whose least rank is 0."""
        return (ranks == 0).astype(np.float64) if self.kind == "optimal" else np.exp(-ranks / self.temperature)


def collate_nodes(labels: Sequence[np.ndarray], parents: Sequence[np.ndarray], pad: int) -> dict[str, Tensor]:
    """Trees as one batch, padded on the right.

    Args:
        labels: B arrays of dictionary ids, in preorder
        parents: B arrays of the places of the parents, -1 for roots
        pad: label of padding

    Returns:
        ``labels`` and ``parents``, each ``[B, N]`` int64; padding has the parent -1
    """
    shape = (len(labels), max(map(len, labels), default=0))
    batch = {"labels": np.full(shape, pad, np.int64), "parents": np.full(shape, -1, np.int64)}
    for name, rows in (("labels", labels), ("parents", parents)):
        for row, values in enumerate(rows):
            batch[name][row, : len(values)] = values
    return {name: torch.from_numpy(values) for name, values in batch.items()}


def existing_slots(parents: Tensor, is_node: Tensor) -> Tensor:
    """Which slots the trees of a batch have; :func:`tree_fairseq.tree_insertion.target.slot_mask` row by row.

    Args:
        parents: ``[B, N]`` int64 places of the parents, -1 for roots and padding
        is_node: ``[B, N]`` bool, false at padding

    Returns:
        ``[B, N, 4]`` bool
    """
    has_parent = parents >= 0
    above = parents.clamp(min=0)
    children = torch.zeros_like(parents).scatter_add_(1, above, has_parent.long())  # B x N
    slots = parents.new_zeros((*parents.shape, KINDS), dtype=torch.bool)
    slots[..., DESCENDANT] = is_node
    slots[..., ANCESTOR] = has_parent & (children.gather(1, above) > 1)
    slots[..., FIRST_CHILD] = children > 0
    slots[..., NEXT_SIBLING] = has_parent
    return slots


def collate_slots(
    states: Sequence[InsertionState], slots: Tensor, distribution: TargetDistribution, keep: int
) -> dict[str, Tensor]:
    """The labels that all slots of a batch should get.

    Equal labels of a slot are one label, labels without a share are left out, and a slot in which nothing may be inserted should
    get ``keep``.

    Args:
        states: B partial trees
        slots: ``[B, N, 4]`` bool, those that they have
        distribution: shares of the answers
        keep: id of the answer that nothing is to be inserted

    Returns:
        ``slot`` ``[E]`` int64, numbers of slots, ascending; ``label`` ``[E]`` int64 dictionary ids, ascending in a slot;
        ``probability`` ``[E]`` float32, of sum 1 in every slot that there is
    """
    width = KINDS * slots.shape[1]
    numbers = np.concatenate([state.slots + width * row for row, state in enumerate(states)])
    answers = np.concatenate([state.answers for state in states])
    weights = distribution.weights(np.concatenate([state.ranks for state in states]))
    existing = np.flatnonzero(slots.numpy().reshape(-1))
    kept = np.setdiff1d(existing, numbers)
    # Slots to be left as they are have one answer like the others.
    numbers, answers = np.concatenate([numbers, kept]), np.concatenate([answers, np.full(len(kept), keep)])
    labels = int(answers.max(initial=0)) + 1
    pairs, merged = np.unique(labels * numbers + answers, return_inverse=True)
    slot, label = np.divmod(pairs, labels)
    share = np.bincount(merged, np.concatenate([weights, np.ones(len(kept))]), len(pairs))
    share = (share / np.bincount(slot, share)[slot]).astype(np.float32)
    has_share = share > 0
    return {
        "slot": torch.from_numpy(slot[has_share]),
        "label": torch.from_numpy(label[has_share]),
        "probability": torch.from_numpy(share[has_share]),
    }
