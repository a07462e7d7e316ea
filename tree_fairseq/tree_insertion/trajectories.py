"""The way of an oracle from the root alone to a whole tree, as arrays."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tree_fairseq.tree_insertion.regions import Region
from tree_fairseq.tree_insertion.target import DESCENDANT, KINDS, TargetTree


class Oracle(Protocol):
    """What knows which insertions lead to a target soon."""

    target: TargetTree

    def region_keys(self, region: Region, candidates: Sequence[int]) -> list[int]:
        """Of the nodes allowed in a region, those with the least number are inserted; equal ones are ties."""

    def region_ranks(self, candidates: Sequence[int], keys: Sequence[int]) -> list[int]:
        """How far each of them is behind the best, 0 for the best: what a model learns from."""


@dataclass(frozen=True)
class Trajectory:
    """All partial trees from the root to a target, and what fits in their slots: T steps, T + 1 states.

    Attributes:
        steps: [N] int64, the step in which each node of the target comes; 0 for what is given. State t has those up to t
        starts: [T + 2] int64: the allowed insertions of state t are number ``starts[t]`` to ``starts[t + 1]`` of:
        slots: [E] int64, their slots; those of one slot follow each other
        candidates: [E] int64, the nodes of the target
        ranks: [E] int64, their ranks by the oracle, from 0
    """

    steps: np.ndarray
    starts: np.ndarray
    slots: np.ndarray
    candidates: np.ndarray
    ranks: np.ndarray

    @property
    def length(self) -> int:
        """T; decoding takes one more step, in which every slot is left as it is."""
        return len(self.starts) - 2


def trajectory(oracle: Oracle, generator: np.random.Generator | None = None) -> Trajectory:
    """The oracle's way from the root alone to the whole target, all slots filled in each step.

    Args:
        generator: draws one of the nodes that are equally good; without it the first in preorder is taken
    """
    return _trajectory(_Survey(oracle), generator)


def trajectories(oracle: Oracle, count: int, generator: np.random.Generator) -> list[Trajectory]:
    """Some of the oracle's ways; a region that several of them pass is surveyed once."""
    survey = _Survey(oracle)
    return [_trajectory(survey, generator) for _ in range(count)]


def step_count(oracle: Oracle, given: int = 1, generator: np.random.Generator | None = None) -> int:
    """The number of steps that the oracle takes.

    Args:
        given: the first nodes in preorder that are there at the start; 2: the root of the tree asked for is known
        generator: as of `trajectory`
    """
    steps = [0] * len(oracle.target)
    return sum(1 for _ in _states(_Survey(oracle), steps, given, generator)) - 1


class _Surveyed:
    """A region, and what the oracle says of it."""

    def __init__(self, oracle: Oracle, region: Region):
        self.region = region
        self.candidates = list(region.allowed(oracle.target))
        keys = oracle.region_keys(region, self.candidates)
        self.ranks = oracle.region_ranks(self.candidates, keys)
        least = min(keys)
        self.best = [node for node, key in zip(self.candidates, keys, strict=True) if key == least]
        self.anchor, self.offset = region.anchor(oracle.target)
        self.parts: dict[int, list[_Surveyed]] = {}


class _Survey:
    """The regions that were passed so far; they are the same wherever their slots stand in a partial tree."""

    def __init__(self, oracle: Oracle):
        self.oracle = oracle
        self._known: dict[Region, _Surveyed] = {}

    def region(self, region: Region) -> _Surveyed:
        """What is known of a region whose slot has the number of its kind."""
        if region not in self._known:
            self._known[region] = _Surveyed(self.oracle, region)
        return self._known[region]

    def parts(self, whole: _Surveyed, node: int) -> list[_Surveyed]:
        """What a region becomes when a node comes."""
        if node not in whole.parts:
            whole.parts[node] = [self.region(part) for part in whole.region.parts(self.oracle.target, node)]
        return whole.parts[node]


def _trajectory(survey: _Survey, generator: np.random.Generator | None) -> Trajectory:
    steps = [0] * len(survey.oracle.target)
    starts, slots, candidates, ranks = [0], [], [], []
    for state in _states(survey, steps, 1, generator):
        for slot, region in state:
            slots += [slot] * len(region.candidates)
            candidates += region.candidates
            ranks += region.ranks
        starts.append(len(slots))
    return Trajectory(*(np.array(values, dtype=np.int64) for values in (steps, starts, slots, candidates, ranks)))


def _states(
    survey: _Survey, steps: list[int], given: int, generator: np.random.Generator | None
) -> Iterator[list[tuple[int, _Surveyed]]]:
    """Yield the slots and regions of the partial trees on the oracle's way; writes to ``steps`` when each node comes."""
    target = survey.oracle.target
    used = [node < given for node in range(len(target))]
    # Below the root that decoding begins with there is the whole tree.
    regions = [survey.region(Region(DESCENDANT, 0))]
    for node in range(1, given):
        whole = next(region for region in regions if node in region.candidates)
        regions.remove(whole)
        regions += survey.parts(whole, node)
    # A number for each node that is drawn, in the order in which they come.
    numbers = iter([] if generator is None else generator.random(len(target)).tolist())
    step = 0
    while True:
        before = [0, *itertools.accumulate(used)]
        state = sorted(
            ((KINDS * before[region.anchor] + region.offset, region) for region in regions), key=operator.itemgetter(0)
        )
        yield state
        if not state:
            return
        step += 1
        regions = []
        for _, region in state:
            best = region.best
            chosen = best[0] if generator is None else best[int(next(numbers) * len(best))]
            used[chosen] = True
            steps[chosen] = step
            regions += survey.parts(region, chosen)
