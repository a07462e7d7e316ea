"""The way of an oracle from the root alone to a whole tree, as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tree_fairseq.trees.insertion import TargetTree
from tree_fairseq.trees.insertion_slots import PartialTree, partial_tree


class Oracle(Protocol):
    """What knows which insertions lead to a target soon."""

    target: TargetTree

    def keys(self, state: PartialTree) -> np.ndarray:
        """[E] int64: of the insertions in one slot those with the least number are made; equal ones are ties."""

    def ranks(self, state: PartialTree, keys: np.ndarray | None = None) -> np.ndarray:
        """[E] int64: how far each insertion is behind the best of its slot, 0 for the best: what a model learns from."""


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
    steps = np.zeros(len(oracle.target), dtype=np.int64)
    states, ranks = [], []
    for state, keys in _states(oracle, steps, 1, generator):
        states.append(state)
        ranks.append(oracle.ranks(state, keys))
    starts = np.cumsum([0, *map(len, ranks)])
    slots, candidates = (np.concatenate([getattr(state, name) for state in states]) for name in ("slots", "candidates"))
    return Trajectory(steps, starts, slots, candidates, np.concatenate(ranks))


def step_count(oracle: Oracle, given: int = 1, generator: np.random.Generator | None = None) -> int:
    """The number of steps that the oracle takes.

    Args:
        given: the first nodes in preorder that are there at the start; 2: the root of the tree asked for is known
        generator: as of `trajectory`
    """
    steps = np.zeros(len(oracle.target), dtype=np.int64)
    return sum(1 for _ in _states(oracle, steps, given, generator)) - 1


def _states(
    oracle: Oracle, steps: np.ndarray, given: int, generator: np.random.Generator | None
) -> Iterator[tuple[PartialTree, np.ndarray]]:
    """Yield the partial trees on the oracle's way with their keys; writes to ``steps`` in which step each node comes."""
    used = np.arange(len(steps)) < given
    step = 0
    while True:
        state = partial_tree(oracle.target, used.tolist())
        keys = oracle.keys(state)
        yield state, keys
        if not len(keys):
            return
        step += 1
        chosen = state.candidates[_best(state, keys, generator)]
        used[chosen] = True
        steps[chosen] = step


def _best(state: PartialTree, keys: np.ndarray, generator: np.random.Generator | None) -> np.ndarray:
    """The place of one of the least keys of each slot."""
    ties = np.arange(len(keys)) if generator is None else generator.permutation(len(keys))
    return np.lexsort((ties, keys, state.slots))[state.starts[:-1]]
