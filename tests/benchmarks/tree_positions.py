"""Compares tree positions from rows of a projected table with a vector of n * k * P values for every node."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Callable

import torch
from torch import Tensor

from tests.benchmarks.direct_positions import DirectPositions
from tests.benchmarks.figures import byte_ratio, time_ratio
from tests.benchmarks.measuring import Settings, keep_freed_memory, peak_bytes, side_by_side
from tests.benchmarks.reporting import PEAK_NOTE, TIME_HEADINGS, Report, megabytes, memory_note, time_cells
from tree_fairseq.tree_positional.positions import TreePositions, TreePositionsConfig, branch_paths

BATCH, NODES, BRANCHES, LEVELS, POSITION_WIDTH, WIDTH = 64, 100, 2, 32, 2048, 256


@dataclass(frozen=True)
class Candidates:
    """Forward and backward pass of the positions of a batch, on the same weights and trees."""

    gathered: Callable[[], None]  # from parents and branches to positions, by rows of the table
    direct: Callable[[], None]  # from one-hot stacks to positions
    depth: int  # of the deepest node


def random_places(chance: random.Random, nodes: int) -> tuple[list[int], list[int]]:
    """Returns parents and branches of a binary tree that grows by filling a random open slot."""
    parents, branches, slots = [-1], [-1], [(0, 0), (0, 1)]
    for node in range(1, nodes):
        chosen = chance.randrange(len(slots))
        slots[chosen], slots[-1] = slots[-1], slots[chosen]
        parent, branch = slots.pop()
        parents.append(parent)
        branches.append(branch)
        slots += [(node, 0), (node, 1)]
    return parents, branches


def chain_places(chance: random.Random, nodes: int) -> tuple[list[int], list[int]]:
    """Returns parents and branches of a tree in which every node but the last has one child."""
    return list(range(-1, nodes - 1)), [-1, *(chance.randrange(2) for _ in range(nodes - 1))]


def candidates(places: Callable, size: int, nodes: int) -> Candidates:
    torch.manual_seed(0)
    chance = random.Random(0)
    parents, branches = (torch.tensor(rows) for rows in zip(*(places(chance, nodes) for _ in range(size))))
    config = TreePositionsConfig(tree_levels=LEVELS, tree_position_dim=POSITION_WIDTH)
    module = TreePositions(BRANCHES, WIDTH, config)
    gradient = torch.randn(size, nodes, WIDTH)
    weights = list(module.parameters())
    paths = branch_paths(parents, branches, LEVELS)
    direct = DirectPositions(module, paths)

    def backward(positions: Tensor) -> None:
        torch.autograd.grad(positions, weights, gradient)

    return Candidates(
        gathered=lambda: backward(module.encode(branch_paths(parents, branches, LEVELS))),
        direct=lambda: backward(direct()),
        depth=paths.size(2),
    )


def run(settings: Settings) -> Report:
    """Measures speed and memory on random trees, and on chains, which use all levels."""
    size, nodes = settings.choose((BATCH, NODES), (2, 12))
    shapes = {"random trees": candidates(random_places, size, nodes), "chains": candidates(chain_places, size, nodes)}
    memory = {
        name: {"gathered": peak_bytes(both.gathered), "direct": peak_bytes(both.direct)}
        for name, both in shapes.items()
    }
    kept = keep_freed_memory(settings)
    rows = [("forward + backward", "levels", *TIME_HEADINGS, "peak MB")]
    speedups = {}
    for name, both in shapes.items():
        works = {"gathered": both.gathered, "direct": both.direct}
        timing = side_by_side(works, settings.choose(9, 2), warm_up=2)
        what = "rows of a table, times as fast as the tensor"
        speedups[name] = time_ratio("speedup", timing["gathered"], timing["direct"], 5, what=what, processor=True)
        for work, label in (("gathered", "rows of the table"), ("direct", f"{POSITION_WIDTH} values a node")):
            cells = (str(both.depth), *time_cells(timing[work]), megabytes(memory[name][work]))
            rows.append((f"{name}: {label}", *cells))
    savings = {
        name: byte_ratio(
            "memory_saving", used["gathered"], used["direct"], 10, what="rows of a table, times less memory"
        )
        for name, used in memory.items()
    }
    return Report(
        "tree_positions",
        f"{size} trees of {nodes} nodes, n={BRANCHES}, k={LEVELS}, d_pos={POSITION_WIDTH}, d={WIDTH}",
        [speedups["random trees"], savings["random trees"]],
        [rows],
        [
            f"On chains, whose nodes add up to {LEVELS} steps: {speedups['chains'].value:.1f} times as fast, "
            f"{savings['chains'].value:.1f} times less memory.\n"
            "The time of rows starts with parents and branches, that of values with one-hot stacks.\n"
            + PEAK_NOTE
            + memory_note(kept)
        ],
    )
