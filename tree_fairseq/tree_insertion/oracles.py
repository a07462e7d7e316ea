"""Oracles of insertion-based decoding, which say what to insert in a slot, and the trajectories that they lead along.

A trajectory is the partial trees from the root alone to a target. M is the number of nodes of the target, m of a
partial tree, Q of entries of a flat list of insertions.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion.target import DESCENDANT, KINDS, Region, TargetTree


class CentralityOracle:
    """The oracle of Lukovnikov & Fischer (2021): inserts the most central node of a region first.

    Closeness centrality (Equation 4) is highest for the node with the least sum of distances to the nodes of its
    region. Distances are those in the graph of the region, where neighbouring siblings are joined by an edge, as in the
    paper's program: without these edges subtrees of a region would not be connected. Ties are broken as in the paper:
    trajectories draw one of the most central nodes (section 3.3.2), and ranks favour the lower one, then the
    alphabetically first (section 3.3.3).
    """

    sibling_edges = True

    def __init__(self, target: TargetTree):
        self.target = target
        depths, ends = np.array(target.depths), np.array(target.ends)
        self.depths, self.sizes = depths, ends - np.arange(len(target))
        paths = _root_paths(depths)
        common = _common_ancestor_depths(depths)
        each = np.arange(len(target))[:, None]
        # [M, M]: the lowest common ancestor
        self.ancestors = paths[each, common]
        branches = np.array(target.ranks)[paths[each, common + 1]]
        apart = np.abs(branches - branches.T)
        # If one node is an ancestor of the other, their distance is the difference of their depths.
        forked = (self.ancestors != each) & (self.ancestors != each.T)
        distances = depths[:, None] + depths - 2 * common
        self.inside = self.outside = distances
        if self.sibling_edges:
            self.inside = distances - (forked & (apart == 1))
            # If the common ancestor is outside of the region, the path goes over all siblings between the branches.
            self.outside = np.where(forked, distances - 2 + apart, self.inside)

    def distance_sums(self, region: Region) -> tuple[np.ndarray, np.ndarray]:
        """Returns the nodes of a region, ascending, and the sum of each node's distances to all: 1 / centrality."""
        spans = region.spans(self.target)
        if len(spans) == 1:
            members = np.arange(*spans[0])
            both = (slice(*spans[0]),) * 2
        else:
            members = np.concatenate([np.arange(*span) for span in spans])
            both = members[:, None], members
        return members, np.where(self.ancestors[both] == region.top, self.outside[both], self.inside[both]).sum(1)

    def region_keys(self, region: Region, candidates: Sequence[int]) -> list[int]:
        """Orders allowed nodes by centrality, the most central first."""
        members, sums = self.distance_sums(region)
        return sums[np.searchsorted(members, candidates)].tolist()

    def region_ranks(self, candidates: Sequence[int], keys: Sequence[int]) -> list[int]:
        """Ranks allowed nodes from 0 (section 3.3.3); after the label, the place breaks ties."""
        nodes = [(key, *self.tie(node), self.target.labels[node], node) for key, node in zip_equal(keys, candidates)]
        return np.argsort(sorted(range(len(nodes)), key=nodes.__getitem__)).tolist()

    def tie(self, node: int) -> tuple[int, ...]:
        """Orders equally central nodes before their labels do: lower ones come first."""
        return (-int(self.depths[node]),)


class ProgramOracle(CentralityOracle):
    """The same with ties as in the program of the paper's authors: nodes with fewer descendants come first, always."""

    def region_keys(self, region: Region, candidates: Sequence[int]) -> list[int]:
        """Orders allowed nodes by centrality, then by their descendants."""
        keys = np.array(super().region_keys(region, candidates))
        return (keys * (len(self.target) + 1) + self.sizes[np.asarray(candidates)]).tolist()

    def tie(self, node: int) -> tuple[int, ...]:
        return ()


class TreeDistanceOracle(CentralityOracle):
    """The same with distances in the target tree, without edges between siblings: Equation 4 as it is written."""

    sibling_edges = False


def _root_paths(depths: np.ndarray) -> np.ndarray:
    """``[M, largest depth + 2]`` int64: the ancestor of each node at each depth down to its own, where it is itself."""
    levels = np.arange(depths.max() + 2)
    nodes = np.arange(len(depths))[:, None]
    return np.maximum.accumulate(np.where(depths[:, None] == levels, nodes, 0), axis=0)


def _common_ancestor_depths(depths: np.ndarray) -> np.ndarray:
    """``[M, M]`` int64: depths of lowest common ancestors, one less than the least depth behind the first node."""
    count = len(depths)
    later = np.arange(count)[:, None] < np.arange(count)
    least = np.minimum.accumulate(np.where(later, depths, count + 1), axis=1) - 1
    upper = np.where(later, least, 0)
    common = upper + upper.T
    np.fill_diagonal(common, depths)
    return common


@dataclass(frozen=True)
class PartialTree:
    """A partial tree of m nodes in preorder, and the labels that may be inserted in its slots."""

    labels: np.ndarray  # ``[m]`` int64 dictionary ids; the first is that of the root that decoding begins with
    parents: np.ndarray  # ``[m]`` int64 indices of the parents, -1 for the root
    # ``[Q]`` int64 slot numbers, ascending; nothing may be inserted in the slots that are missing here
    slots: np.ndarray
    insertions: np.ndarray  # ``[Q]`` int64 ids of labels that may be inserted in them
    ranks: np.ndarray  # ``[Q]`` int64, how far each insertion is behind the best of its slot by the oracle, from 0


@dataclass(frozen=True)
class Trajectory:
    """All T + 1 partial trees from the root alone to a target, T steps apart, and the allowed sets of their slots."""

    steps: np.ndarray  # ``[M]`` int64, the step that inserts each node of the target; 0 for the root
    # ``[T + 2]`` int64: after t steps, entries ``starts[t]`` to ``starts[t + 1]`` of the others are allowed
    starts: np.ndarray
    slots: np.ndarray  # ``[Q]`` int64, their slots; the entries of a slot follow each other
    candidates: np.ndarray  # ``[Q]`` int64, the nodes of the target
    ranks: np.ndarray  # ``[Q]`` int64, their ranks by the oracle, from 0

    @property
    def length(self) -> int:
        """T. Decoding takes one more step, which changes nothing."""
        return len(self.starts) - 2

    def partial_tree(self, labels: np.ndarray, parents: np.ndarray, step: int) -> PartialTree:
        """Returns the partial tree after some steps; ``labels`` ``[M]`` are dictionary ids of the target's nodes."""
        is_inserted = self.steps <= step
        nodes = np.flatnonzero(is_inserted)
        nearest = parents[nodes].astype(np.int64)
        # The parent in the partial tree is the nearest inserted ancestor; the root always is inserted.
        while not is_inserted[nearest[1:]].all():
            nearest[1:] = np.where(is_inserted[nearest[1:]], nearest[1:], parents[nearest[1:]])
        places = np.cumsum(is_inserted) - 1
        here = slice(int(self.starts[step]), int(self.starts[step + 1]))
        return PartialTree(
            labels[nodes].astype(np.int64),
            np.concatenate([[-1], places[nearest[1:]]]),
            self.slots[here].astype(np.int64),
            labels[self.candidates[here]].astype(np.int64),
            self.ranks[here].astype(np.int64),
        )


def trajectories(
    oracle: CentralityOracle, count: int, generator: np.random.Generator | None = None
) -> list[Trajectory]:
    """Returns trajectories of an oracle, which fill all slots in each step.

    ``generator`` draws one of the nodes that are equally good; without it, the first in preorder is taken.
    """
    regions = _Regions(oracle)
    return [_trajectory(regions, generator) for _ in range(count)]


def step_count(oracle: CentralityOracle, given: int = 1) -> int:
    """Returns the number of steps of an oracle, given the first nodes in preorder: with 2, also the tree's own root."""
    return sum(1 for _ in _states(_Regions(oracle), [0] * len(oracle.target), given, None)) - 1


class _JudgedRegion:
    """A region with the oracle's ranks of its allowed set, and its parts after insertions that were asked for."""

    def __init__(self, oracle: CentralityOracle, region: Region):
        self.region = region
        self.candidates = list(region.allowed(oracle.target))
        keys = oracle.region_keys(region, self.candidates)
        self.ranks = oracle.region_ranks(self.candidates, keys)
        least = min(keys)
        self.best = [node for node, key in zip_equal(self.candidates, keys) if key == least]
        self.anchor, self.offset = region.anchor(oracle.target)
        self.parts: dict[int, list[_JudgedRegion]] = {}


class _Regions(dict[Region, _JudgedRegion]):
    def __init__(self, oracle: CentralityOracle):
        self.oracle = oracle

    def __missing__(self, region: Region) -> _JudgedRegion:
        self[region] = _JudgedRegion(self.oracle, region)
        return self[region]

    def parts(self, whole: _JudgedRegion, node: int) -> list[_JudgedRegion]:
        """The regions into which one falls apart when a node is inserted."""
        if node not in whole.parts:
            whole.parts[node] = [self[part] for part in whole.region.parts(self.oracle.target, node)]
        return whole.parts[node]


def _trajectory(regions: _Regions, generator: np.random.Generator | None) -> Trajectory:
    steps = [0] * len(regions.oracle.target)
    starts, slots, candidates, ranks = [0], [], [], []
    for state in _states(regions, steps, 1, generator):
        for slot, region in state:
            slots += [slot] * len(region.candidates)
            candidates += region.candidates
            ranks += region.ranks
        starts.append(len(slots))
    return Trajectory(*(np.array(values, dtype=np.int64) for values in (steps, starts, slots, candidates, ranks)))


def _states(
    known: _Regions, steps: list[int], given: int, generator: np.random.Generator | None
) -> Iterator[list[tuple[int, _JudgedRegion]]]:
    """Yields the slots and regions of all partial trees; writes the step of each insertion into ``steps``."""
    target = known.oracle.target
    # Each inserted node takes the next slot numbers, four of them.
    taken = [KINDS if node < given else 0 for node in range(len(target))]
    # All of the target is below the root that decoding begins with.
    regions = [known[Region(DESCENDANT, 0)]]
    for node in range(1, given):
        whole = next(region for region in regions if node in region.candidates)
        regions.remove(whole)
        regions += known.parts(whole, node)
    # A number for each node that is drawn, in the order of insertion.
    numbers = iter([] if generator is None else generator.random(len(target)).tolist())
    for step in itertools.count(1):
        before = [0, *itertools.accumulate(taken)]
        slots = ((before[region.anchor] + region.offset, region) for region in regions)
        state = sorted(slots, key=operator.itemgetter(0))
        yield state
        if not state:
            return
        regions = []
        for _, region in state:
            chosen = region.best[0 if generator is None else int(next(numbers) * len(region.best))]
            taken[chosen] = KINDS
            steps[chosen] = step
            regions += known.parts(region, chosen)
