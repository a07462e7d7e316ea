"""Draws trajectories of the centrality oracle as Lukovnikov & Fischer's program does: anew for every partial tree.

In each step, edges that would join different slots are cut from the graph of the target, and all distances that are
left are found by passing messages between neighbours for as many rounds as there are nodes. No region is remembered.
"""

from __future__ import annotations

import random

from tests.tree_insertion.allowed_sets import allowed_sets
from tree_fairseq.tree_insertion.target import TargetTree


def trajectory(target: TargetTree, chance: random.Random | None = None) -> list[int]:
    """Returns the step that inserts each node of the target, 0 for the root.

    ``chance`` draws one of the nodes that are equally good; without it, the first in preorder is taken.
    """
    used = [True] + [False] * (len(target) - 1)
    steps = [0] * len(target)
    step = 0
    while True:
        state = allowed_sets(target, used)
        if not len(state.slots):
            return steps
        step += 1
        sums = distance_sums(target, state.region_of.tolist())
        for slot in dict.fromkeys(state.slots.tolist()):
            nodes = [node for where, node in zip(state.slots.tolist(), state.candidates.tolist()) if where == slot]
            keys = {node: (sums[node], target.ends[node] - node) for node in nodes}
            best = [node for node in nodes if keys[node] == min(keys.values())]
            chosen = best[0] if chance is None else chance.choice(best)
            used[chosen], steps[chosen] = True, step


def distance_sums(target: TargetTree, region_of: list[int]) -> list[int]:
    """Returns, for each missing node, the sum of its distances to the nodes that its slot will receive, too.

    Args:
        target: the tree to be decoded
        region_of: the slot of each missing node; -1 for others
    """
    neighbours: dict[int, list[int]] = {node: [] for node in range(len(target))}
    for node, children in enumerate(target.children):
        edges = [(node, child) for child in children] + list(zip(children, children[1:]))
        for one, other in edges:
            if region_of[one] == region_of[other] >= 0:
                neighbours[one].append(other)
                neighbours[other].append(one)
    known: list[dict[int, int]] = [{node: 0} for node in range(len(target))]
    for _ in range(len(target)):
        heard = [dict(distances) for distances in known]
        for node, others in neighbours.items():
            for other in others:
                for far, distance in known[other].items():
                    heard[node][far] = min(heard[node].get(far, distance + 1), distance + 1)
        known = heard
    return [sum(distances.values()) for distances in known]
