"""Partial trees of trajectories, and wrong nodes in them, against walking through trees."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import symbol_trees
from tests.tree_insertion.allowed_sets import allowed_sets, trajectory
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion.oracles import CentralityOracle, ExactOracle
from tree_fairseq.tree_insertion.slots import ANCESTOR, DESCENDANT, FIRST_CHILD, KINDS, insert, slot_mask
from tree_fairseq.tree_insertion.target import TargetTree
from tree_fairseq.tree_insertion.trajectories import PartialTree

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
        assert not state.wrong.any()
        assert all(
            values.dtype == np.int64
            for values in (state.labels, state.parents, state.slots, state.insertions, state.ranks)
        )


def nested(parents: list[int]) -> list[list[int]]:
    children = [[] for _ in parents]
    for node, parent in enumerate(parents):
        if node:
            children[parent].append(node)
    return children


def without(names: list, parents: list[int], wrong: set) -> tuple:
    """A tree of names as nested tuples, the wrong ones' children in their place."""
    children = nested(parents)

    def visit(node: int) -> list:
        below = [tree for child in children[node] for tree in visit(child)]
        return below if names[node] in wrong else [(names[node], tuple(below))]

    [tree] = visit(0)
    return tree


@given(symbol_trees(max_leaves=10), st.integers(0, 999), st.sampled_from([0.1, 0.4, 0.9]))
@settings(max_examples=120)
def test_wrong_nodes_are_inserted_and_slots_keep_their_meaning(tree, seed, rate):
    chooser = np.random.default_rng(seed)
    _, _, clean, _ = some_state(tree, "centrality", chooser)
    found = clean.corrupted(rate, LABELS, chooser)
    # Names: right nodes by their number in the clean tree, wrong ones by theirs here.
    right = iter(range(len(clean.labels)))
    names = [("wrong", place) if wrong else next(right) for place, wrong in enumerate(found.wrong.tolist())]
    wrong = {name for name in names if isinstance(name, tuple)}
    assert without(names, found.parents.tolist(), wrong) == without(
        list(range(len(clean.labels))), clean.parents.tolist(), set()
    )
    assert found.labels[~found.wrong].tolist() == clean.labels.tolist()
    assert not found.wrong[0]
    mask = slot_mask(found.parents).reshape(-1)
    assert mask[found.slots].all() and (np.diff(found.slots) >= 0).all()
    kept = {}
    for slot, answer, rank in zip_equal(found.slots.tolist(), found.insertions.tolist(), found.ranks.tolist()):
        kept.setdefault(slot, []).append((answer, rank))
    wanted = {}
    for slot, answer, rank in zip_equal(clean.slots.tolist(), clean.insertions.tolist(), clean.ranks.tolist()):
        wanted.setdefault(slot, []).append((answer, rank))
    kept_of_clean = {}
    for slot, answers in kept.items():
        name = names[slot // KINDS]
        old = KINDS * name + slot % KINDS
        kept_of_clean[old] = answers
        assert wanted[old] == answers
        # Inserting now and deleting what is wrong is inserting in the clean tree.
        sources, parents = insert(found.parents, [slot])
        after = [*names, "new"]
        sources_of_clean, parents_of_clean = insert(clean.parents, [old])
        expected = [*range(len(clean.labels)), "new"]
        assert without([after[source] for source in sources.tolist()], parents.tolist(), wrong) == without(
            [expected[source] for source in sources_of_clean.tolist()], parents_of_clean.tolist(), set()
        )
    # The others have a wrong node in them.
    places = {name: place for place, name in enumerate(names)}
    for old in wanted:
        assert (old in kept_of_clean) != is_filled(
            places[old // KINDS], old % KINDS, clean.parents.tolist(), old // KINDS, found
        )


def is_filled(node: int, kind: int, clean_parents: list[int], name: int, found: PartialTree) -> bool:
    """Whether a wrong node stands in the slot that a right node, of this name in the clean tree, had there."""
    children, parents = nested(found.parents.tolist()), found.parents.tolist()

    def is_wrong_leaf(nodes: list[int]) -> bool:
        return bool(nodes) and bool(found.wrong[nodes[0]]) and not children[nodes[0]]

    took_over = len(children[node]) == 1 and bool(found.wrong[children[node][0]])
    came_above = (
        bool(found.wrong[parents[node]])
        and children[parents[node]] == [node]
        and clean_parents.count(clean_parents[name]) > 1
    )
    if kind == DESCENDANT:
        return took_over
    if kind == ANCESTOR:
        return came_above
    if kind == FIRST_CHILD:
        return is_wrong_leaf(children[children[node][0] if took_over else node])
    top = parents[node] if came_above else node
    siblings = children[parents[top]]
    return is_wrong_leaf(siblings[siblings.index(top) + 1 :])


def test_no_right_label_is_a_wrong_node():
    """All but one label would be right at the root."""
    state = PartialTree(
        np.array([9]), np.array([-1]), np.zeros(9, np.int64), LABELS[:9], np.arange(9), np.zeros(1, bool)
    )
    chooser = np.random.default_rng(0)
    drawn = [state.corrupted(1.0, LABELS, chooser) for _ in range(60)]
    assert {label for found in drawn for label in found.labels[found.wrong].tolist()} == {LABELS[9]}
    assert any(found.wrong.any() for found in drawn) and not all(found.wrong.any() for found in drawn)
    assert all(len(found.slots) == (0 if found.wrong.any() else 9) for found in drawn)
