"""Batches of partial trees: slots by tensors, and the distribution of labels in each, against one slot at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import symbol_trees
from tests.tree_insertion.test_states import some_state
from tree_fairseq.tree_insertion.dataset import TargetDistribution, collate_partial_trees, collate_slots
from tree_fairseq.tree_insertion.slots import KINDS, slot_mask, slot_masks
from tree_fairseq.tree_insertion.trajectories import PartialTree

PAD, KEEP = 1, 2


def batch_of(states: list[PartialTree]) -> tuple[dict, torch.Tensor]:
    partial = collate_partial_trees(states, PAD)
    return partial, slot_masks(partial["parents"], partial["labels"] != PAD)


def distribution_of(state: PartialTree, kind: str, temperature: float) -> dict[int, dict[int, float]]:
    """By slot and label, straight from the definition."""
    found: dict[int, dict[int, float]] = {}
    for slot in np.flatnonzero(slot_mask(state.parents)).tolist():
        own = np.flatnonzero(state.slots == slot)
        ranks = state.ranks[own].tolist()
        best = [answer for answer, rank in zip(state.insertions[own].tolist(), ranks) if rank == 0]
        if not ranks:
            found[slot] = {KEEP: 1.0}
        elif kind == "optimal":
            found[slot] = {label: best.count(label) / len(best) for label in best}
        else:
            total = sum(math.exp(-rank / temperature) for rank in ranks)
            shares: dict[int, float] = {}
            for answer, rank in zip(state.insertions[own].tolist(), ranks):
                shares[answer] = shares.get(answer, 0.0) + math.exp(-rank / temperature) / total
            found[slot] = shares
    return found


@given(
    st.lists(st.tuples(symbol_trees(max_leaves=10), st.integers(0, 99)), min_size=1, max_size=4),
    st.sampled_from([("rank", 0.1), ("rank", 1.0), ("rank", 10.0), ("optimal", 0.1)]),
)
@settings(max_examples=60)
def test_every_slot_has_its_distribution(drawn, distribution):
    kind, temperature = distribution
    oracle = "exact" if kind == "optimal" else "centrality"
    states = [some_state(tree, oracle, np.random.default_rng(seed))[2] for tree, seed in drawn]
    partial, slots = batch_of(states)
    for row, state in enumerate(states):
        count = len(state.labels)
        assert slots[row, :count].equal(torch.from_numpy(slot_mask(state.parents))) and not slots[row, count:].any()
        assert partial["labels"][row].tolist() == [*state.labels, *[PAD] * (len(partial["labels"][row]) - count)]
        assert partial["parents"][row].tolist() == [*state.parents, *[-1] * (len(partial["labels"][row]) - count)]
    target = collate_slots(states, partial, TargetDistribution(kind, temperature), KEEP)
    assert (target["slot"].dtype, target["label"].dtype, target["probability"].dtype) == (
        torch.int64,
        torch.int64,
        torch.float32,
    )
    assert bool((target["slot"].diff() >= 0).all()) and bool((target["probability"] > 0).all())
    numbers = torch.nonzero(slots.flatten()).flatten().tolist()
    assert target["slot"].unique().tolist() == partial["slots"].tolist() == numbers
    found: dict[tuple[int, int], dict[int, float]] = {}
    width = KINDS * slots.shape[1]
    for slot, label, share in zip(*(target[name].tolist() for name in ("slot", "label", "probability"))):
        row_of_slot = found.setdefault(divmod(slot, width), {})
        assert label not in row_of_slot
        row_of_slot[label] = share
    for row, state in enumerate(states):
        for slot, shares in distribution_of(state, kind, temperature).items():
            own = found.pop((row, slot))
            for label in shares.keys() | own.keys():
                assert own.get(label, 0.0) == pytest.approx(shares.get(label, 0.0), rel=1e-5, abs=1e-38)
    assert not found


def test_equal_labels_of_a_slot_are_one():
    state = PartialTree(
        np.array([4]), np.array([-1]), np.zeros(3, np.int64), np.array([7, 8, 7]), np.arange(3), np.zeros(1, bool)
    )
    target = collate_slots([state], batch_of([state])[0], TargetDistribution("rank", 1.0), KEEP)
    total = 1 + math.exp(-1) + math.exp(-2)
    assert target["label"].tolist() == [7, 8]
    assert target["probability"].tolist() == pytest.approx([(1 + math.exp(-2)) / total, math.exp(-1) / total])


def test_a_share_that_vanishes_is_left_out():
    state = PartialTree(
        np.array([4]), np.array([-1]), np.zeros(2, np.int64), np.array([7, 8]), np.array([0, 50]), np.zeros(1, bool)
    )
    target = collate_slots([state], batch_of([state])[0], TargetDistribution("rank", 0.1), KEEP)
    assert target["label"].tolist() == [7] and target["probability"].tolist() == [1.0]
