"""Partial trees of trajectories, against walking through trees."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import symbol_trees
from tests.tree_insertion.allowed_sets import allowed_sets, trajectory
from tree_fairseq.tree_insertion.oracles import CentralityOracle, ExactOracle, PartialTree
from tree_fairseq.tree_insertion.target import TargetTree

LABELS = np.arange(10, 20)
ORACLES = {"centrality": CentralityOracle, "exact": ExactOracle}


def some_state(tree, oracle: str, chooser: np.random.Generator) -> tuple[TargetTree, np.ndarray, PartialTree, int]:
    """A target, the ids of its labels, and a state on the path to it."""
    target = TargetTree.of(tree)
    labels = np.array([9, *chooser.choice(LABELS, len(target) - 1)])
    path = trajectory(ORACLES[oracle](target), chooser)
    step = int(chooser.integers(path.length + 1))
    return target, labels, path.partial_tree(labels, np.array(target.parents, np.int32), step), step


@given(symbol_trees(max_leaves=16), st.sampled_from(sorted(ORACLES)), st.integers(0, 99))
@settings(max_examples=80)
def test_states_are_the_partial_trees_of_the_trajectory(tree, oracle, seed):
    target = TargetTree.of(tree)
    chooser = np.random.default_rng(seed)
    labels = np.array([9, *chooser.choice(LABELS, len(target) - 1)])
    path = trajectory(ORACLES[oracle](target), chooser)
    for step in range(path.length + 1):
        state = path.partial_tree(labels, np.array(target.parents, np.int32), step)
        expected = allowed_sets(target, path.steps <= step)
        assert (
            state.labels.tolist() == labels[expected.nodes].tolist()
            and state.parents.tolist() == expected.parents.tolist()
        )
        assert state.slots.tolist() == expected.slots.tolist()
        assert state.insertions.tolist() == labels[expected.candidates].tolist()
        assert all(
            values.dtype == np.int64
            for values in (state.labels, state.parents, state.slots, state.insertions, state.ranks)
        )
