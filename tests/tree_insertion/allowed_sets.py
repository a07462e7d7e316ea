"""The allowed sets of partial trees from their definition (Lukovnikov & Fischer 2021, Section 3.3.1).

M is the number of nodes of the target, m of the partial tree, Q of allowed pairs of a slot and a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion.oracles import CentralityOracle, Trajectory, trajectories
from tree_fairseq.tree_insertion.target import (
    ANCESTOR,
    DESCENDANT,
    FIRST_CHILD,
    KINDS,
    NEXT_SIBLING,
    Region,
    TargetTree,
)


@dataclass(frozen=True)
class AllowedSets:
    """The allowed sets of a partial tree: some nodes of a target, each under its nearest ancestor among them."""

    nodes: np.ndarray  # [m] int64, the nodes of the target, in preorder of both
    parents: np.ndarray  # [m] int64, indices of the parents in ``nodes``, -1 for the root
    regions: list[Region]  # one for each slot in which a node is allowed
    region_slots: list[int]  # the slots of the regions, ascending
    # [regions + 1] int64: the allowed insertions of region r are ``starts[r]`` to ``starts[r + 1]`` of:
    starts: np.ndarray
    slots: np.ndarray  # [Q] int64, ascending: their slots
    candidates: np.ndarray  # [Q] int64: the nodes of the target to insert there, ascending for each slot
    region_of: np.ndarray  # [M] int64: the slot through which each missing node will be inserted; -1 for others


def allowed_sets(target: TargetTree, used: Sequence[bool]) -> AllowedSets:
    """Finds the allowed sets of a partial tree, straight from the definition.

    Args:
        target: the tree to be decoded
        used: [M] which nodes the partial tree has; it must have the root

    Raises:
        ValueError: no insertions lead from the partial tree to the target, as two of three siblings have a parent of
            their own there
    """
    places: dict[int, int] = {}
    parents: list[int] = []
    children: list[list[int]] = []
    # For each node of the target its nearest ancestor in the partial tree, or the node itself.
    nearest = [0] * len(target)
    for node, here in enumerate(used):
        parent = nearest[target.parents[node]] if node else -1
        nearest[node] = node if here else parent
        if here:
            if node:
                children[places[parent]].append(node)
            parents.append(places.get(parent, -1))
            places[node] = len(places)
            children.append([])
    regions = [region for node, place in places.items() for region in _regions(target, node, children[place], places)]
    return _with_candidates(target, list(places), parents, regions)


def _regions(target: TargetTree, node: int, below: list[int], places: dict[int, int]) -> list[tuple[int, Region]]:
    """The slots and regions below a node of the partial tree, given its children there."""
    slot = KINDS * places[node]
    if not below:
        return [(slot + DESCENDANT, Region(DESCENDANT, node))] if target.children[node] else []
    bottom, branches = _branches(target, node, below)
    regions = [(slot + DESCENDANT, Region(DESCENDANT, node, bottom))] if bottom != node else []
    for child, branch in zip_equal(below, branches):
        if child != branch:
            regions.append((KINDS * places[child] + ANCESTOR, Region(ANCESTOR, bottom, child)))
    ranks = [-1, *(target.ranks[branch] for branch in branches), len(target.children[bottom])]
    gaps = [slot + FIRST_CHILD, *(KINDS * places[child] + NEXT_SIBLING for child in below)]
    for gap, before, after in zip_equal(gaps, ranks[:-1], ranks[1:]):
        if after - before > 1:
            regions.append((gap, Region(gap % KINDS, bottom, first=before + 1, last=after - 1)))
    return regions


def _branches(target: TargetTree, node: int, below: list[int]) -> tuple[int, list[int]]:
    if len(below) == 1:
        return target.parents[below[0]], below
    first, last = below[0], below[-1]
    bottom = target.parents[first]
    while target.ends[bottom] <= last:
        bottom = target.parents[bottom]
    branches = []
    for child in below:
        while target.parents[child] != bottom:
            child = target.parents[child]
        if branches and branches[-1] == child:
            labels = ", ".join(repr(target.labels[each]) for each in below)
            raise ValueError(
                f"{labels} cannot be siblings under {target.labels[node]!r}: some have a parent of their own"
            )
        branches.append(child)
    return bottom, branches


def _with_candidates(
    target: TargetTree, nodes: list[int], parents: list[int], regions: list[tuple[int, Region]]
) -> AllowedSets:
    regions.sort()
    region_of = np.full(len(target), -1)
    starts, slots, candidates = [0], [], []
    for slot, region in regions:
        allowed = region.allowed(target)
        slots += [slot] * len(allowed)
        candidates += allowed
        starts.append(len(candidates))
        for start, end in region.spans(target):
            region_of[start:end] = slot
    arrays = (np.array(values, dtype=np.int64) for values in (starts, slots, candidates))
    region_slots = [slot for slot, _ in regions]
    return AllowedSets(
        np.array(nodes), np.array(parents), [region for _, region in regions], region_slots, *arrays, region_of
    )


def trajectory(oracle, generator: np.random.Generator | None = None) -> Trajectory:
    return trajectories(oracle, 1, generator)[0]


def keys_of(oracle, state: AllowedSets) -> np.ndarray:
    """[Q] int64: the keys of all allowed insertions."""
    return _joined(state, oracle.region_keys)


def ranks_of(oracle, state: AllowedSets) -> np.ndarray:
    """[Q] int64: the ranks of all allowed insertions."""
    return _joined(state, lambda region, nodes: oracle.region_ranks(nodes, oracle.region_keys(region, nodes)))


def distance_sums(oracle: CentralityOracle, state: AllowedSets) -> np.ndarray:
    """[M] int64: the sum of each node's distances to the nodes of its region."""
    sums = np.zeros(len(oracle.target), dtype=np.int64)
    for region in state.regions:
        members, own = oracle.distance_sums(region)
        sums[members] = own
    return sums


def _joined(state: AllowedSets, judge) -> np.ndarray:
    found: list[int] = []
    for region, start, end in zip_equal(state.regions, state.starts[:-1], state.starts[1:]):
        found += judge(region, state.candidates[start:end].tolist())
    return np.array(found, dtype=np.int64)
