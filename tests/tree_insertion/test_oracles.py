"""Partial trees and oracles of insertion-based decoding: the paper's examples, centrality by walking, trajectories."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import symbol_trees
from tests.tree_insertion.allowed_sets import allowed_sets, distance_sums, keys_of, ranks_of, trajectory
from tests.tree_insertion.partial_trees import insert, slot_mask
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion.oracles import (
    CentralityOracle,
    ProgramOracle,
    Trajectory,
    TreeDistanceOracle,
    step_count,
    trajectories,
)
from tree_fairseq.tree_insertion.target import (
    ANCESTOR,
    DESCENDANT,
    FIRST_CHILD,
    KINDS,
    NEXT_SIBLING,
    ROOT_LABEL,
    TargetTree,
)
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

FIGURE_2 = "( A ( B ( C D E ) K ( F ( G H I J ) ) ) )"
APPENDIX_D = """( call_SW_listValue ( filter ( call_SW_getProperty ( call_SW_singleton en.article ) ( string !type ) )
    ( condition ( string publication_date ) ( string = ) ( date 2004 -1 -1 ) ) ) )"""
ORACLES = {"centrality": CentralityOracle, "program": ProgramOracle}


def read(text: str) -> Tree:
    return notation_named("bracket").read(" ".join(text.split()))


def allowed(target: TargetTree, labels: str) -> dict[tuple[str, int], str]:
    state = allowed_sets(target, [label in (ROOT_LABEL, *labels) for label in target.labels])
    found: dict[tuple[str, int], str] = {}
    for slot, node in zip_equal(state.slots.tolist(), state.candidates.tolist()):
        place = target.labels[state.nodes[slot // KINDS]], slot % KINDS
        found[place] = found.get(place, "") + target.labels[node]
    return found


@pytest.mark.parametrize(
    "used, expected",
    [
        ("", {(ROOT_LABEL, DESCENDANT): "ABCDEKFGHIJ"}),
        ("ADI", {("A", DESCENDANT): "B", ("D", ANCESTOR): "C", ("I", ANCESTOR): "FG", ("D", NEXT_SIBLING): "K"}),
        ("AI", {("A", DESCENDANT): "BFG", ("A", FIRST_CHILD): "H", ("I", NEXT_SIBLING): "J"}),
        ("ABF", {("B", FIRST_CHILD): "CDEK", ("F", DESCENDANT): "GHIJ"}),
        ("ABK", {("B", FIRST_CHILD): "CDE", ("K", NEXT_SIBLING): "FGHIJ"}),
        ("ABCDEKFGHIJ", {}),
    ],
)
def test_allowed_sets_of_the_papers_tree(used, expected):
    assert allowed(TargetTree.of(read(FIGURE_2)), used) == expected


def test_siblings_with_a_parent_of_their_own_are_refused():
    """The paper's sixth footnote."""
    with pytest.raises(ValueError, match="'D', 'E', 'I' cannot be siblings under 'A'"):
        allowed(TargetTree.of(read(FIGURE_2)), "ADEI")


def test_the_papers_example_takes_five_steps():
    target = TargetTree.of(read(APPENDIX_D))
    assert step_count(CentralityOracle(target)) == trajectory(CentralityOracle(target)).length == 5


def walked(neighbours: dict[int, set[int]], start: int) -> dict[int, int]:
    """Distances to all nodes that can be reached, by walking."""
    distances, queue = {start: 0}, deque([start])
    while queue:
        node = queue.popleft()
        for other in neighbours[node] - distances.keys():
            distances[other] = distances[node] + 1
            queue.append(other)
    return distances


def some_state(target: TargetTree, data: st.DataObject):
    """A partial tree on the path of random insertions."""
    used = [True] + [False] * (len(target) - 1)
    state = allowed_sets(target, used)
    for _ in range(data.draw(st.integers(0, len(target) - 1))):
        used[data.draw(st.sampled_from(state.candidates.tolist()))] = True
        state = allowed_sets(target, used)
    return state


@given(symbol_trees(), st.data())
@settings(max_examples=20)
def test_centrality_in_the_tree_alone_is_equation_4(tree, data):
    target = TargetTree.of(tree)
    state = some_state(target, data)
    edges = {node: {*target.children[node], target.parents[node]} - {-1} for node in range(len(target))}
    sums = distance_sums(TreeDistanceOracle(target), state)
    for node in state.candidates.tolist():
        region = np.flatnonzero(state.region_of == state.region_of[node]).tolist()
        distances = walked(edges, node)
        assert sums[node] == sum(distances[other] for other in region)


@given(symbol_trees(), st.data())
@settings(max_examples=40)
def test_centrality_by_walking_through_the_graph_of_each_region(tree, data):
    target = TargetTree.of(tree)
    state = some_state(target, data)
    in_regions = {node: set() for node in range(len(target))}
    for node, children in enumerate(target.children):
        edges = [(node, child) for child in children]
        for one, other in edges + list(zip(children, children[1:])):
            if state.region_of[one] == state.region_of[other] >= 0:
                in_regions[one].add(other)
                in_regions[other].add(one)
    sums = distance_sums(CentralityOracle(target), state)
    for node in state.candidates.tolist():
        region = np.flatnonzero(state.region_of == state.region_of[node]).tolist()
        distances = walked(in_regions, node)
        assert sorted(distances) == region
        assert sums[node] == sum(distances.values())


@given(symbol_trees(), st.data())
@settings(max_examples=40)
def test_ranks_by_sorting_each_slot(tree, data):
    target = TargetTree.of(tree)
    state = some_state(target, data)
    central, program = CentralityOracle(target), ProgramOracle(target)
    sums = distance_sums(central, state)
    for slot in np.unique(state.slots):
        own = np.flatnonzero(state.slots == slot)
        for oracle, tie in (
            (central, lambda node: -target.depths[node]),
            (program, lambda node: target.ends[node] - node),
        ):
            order = sorted(
                own, key=lambda entry: (sums[(node := state.candidates[entry])], tie(node), target.labels[node], node)
            )
            assert ranks_of(oracle, state)[order].tolist() == list(range(len(own)))


def replay(oracle, path: Trajectory) -> None:
    """Inserts the nodes of a trajectory, all slots at once, and compares each partial tree and its allowed sets."""
    target = oracle.target
    parents, nodes = np.array([-1]), np.array([0])
    for state in range(path.length + 1):
        expected = allowed_sets(target, path.steps <= state)
        assert parents.tolist() == expected.parents.tolist() and nodes.tolist() == expected.nodes.tolist()
        here = slice(path.starts[state], path.starts[state + 1])
        slots, candidates, ranks = path.slots[here], path.candidates[here], path.ranks[here]
        assert slots.tolist() == expected.slots.tolist() and candidates.tolist() == expected.candidates.tolist()
        assert ranks.tolist() == ranks_of(oracle, expected).tolist()
        assert slot_mask(parents).flat[slots].all()
        chosen = path.steps[candidates] == state + 1
        assert slots[chosen].tolist() == np.unique(slots).tolist() == np.unique(slots[ranks == 0]).tolist()
        sources, parents = insert(parents, slots[chosen].tolist())
        nodes = np.concatenate([nodes, candidates[chosen]])[sources]
    assert nodes.tolist() == list(range(len(target))) and parents.tolist() == target.parents


@given(symbol_trees(max_leaves=20), st.sampled_from(sorted(ORACLES)), st.none() | st.integers(0, 9))
@settings(max_examples=60)
def test_trajectories_replayed(tree, name, seed):
    target = TargetTree.of(tree)
    oracle = ORACLES[name](target)
    generator = None if seed is None else np.random.default_rng(seed)
    replay(oracle, trajectory(oracle, generator))
    assert step_count(oracle) == trajectory(oracle).length


def test_ties_are_drawn():
    oracle = CentralityOracle(TargetTree.of(read("( r a b c d )")))
    generator = np.random.default_rng(0)
    paths = {tuple(trajectory(oracle, generator).steps.tolist()) for _ in range(20)}
    assert len(paths) > 1
    again = [trajectory(oracle, np.random.default_rng(1)).steps.tolist() for _ in range(2)]
    assert again[0] == again[1]


@pytest.mark.parametrize("oracle", ORACLES)
def test_several_trajectories_are_those_that_are_drawn_one_by_one(oracle):
    made = ORACLES[oracle](TargetTree.of(read(FIGURE_2)))
    one_by_one, together = np.random.default_rng(1), np.random.default_rng(1)
    for expected, found in zip_equal([trajectory(made, one_by_one) for _ in range(5)], trajectories(made, 5, together)):
        for name in ("steps", "starts", "slots", "candidates", "ranks"):
            assert getattr(expected, name).tolist() == getattr(found, name).tolist()


@given(symbol_trees(max_leaves=20), st.sampled_from(sorted(ORACLES)))
@settings(max_examples=40)
def test_the_root_may_be_given(tree, name):
    """The steps after it are those of the subtrees under it, all at once."""
    target = TargetTree.of(tree)
    oracle = ORACLES[name](target)
    used, steps = np.arange(len(target)) < 2, 0
    while len((state := allowed_sets(target, used)).candidates):
        keys = keys_of(oracle, state)
        for start, end in zip_equal(state.starts[:-1], state.starts[1:]):
            used[state.candidates[start + keys[start:end].argmin()]] = True
        steps += 1
    assert step_count(oracle, given=2) == steps


@pytest.mark.parametrize("oracle", ORACLES)
def test_wide_trees(oracle):
    made = ORACLES[oracle](TargetTree.of(Tree("r", [Tree("x")] * 60)))
    replay(made, trajectory(made))


def test_deep_trees():
    """Deeper than Python's recursion; a chain of n nodes takes as many steps as n has binary digits."""
    tree = Tree("x")
    for _ in range(1200):
        tree = Tree("x", (tree,))
    target = TargetTree.of(tree)
    state = allowed_sets(target, [True] + [False] * 1200 + [True])
    assert state.candidates.tolist() == list(range(1, 1201))
    assert step_count(CentralityOracle(target)) == (1201).bit_length()
