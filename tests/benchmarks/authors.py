"""Compares the package with straight implementations of the formulations that the papers' authors published.

Nothing is copied from their programs. Hierarchical accumulation is a tensor of (M + 1) * N * D values; tree positions
are vectors of n * k * P values for every node, before a dense layer; trajectories of insertion are found anew in every
partial tree, by passing messages.
"""

from __future__ import annotations

import random

import numpy as np
import torch

from tests.benchmarks import accumulation, straight_oracle, tree_positions
from tests.benchmarks.figures import Figure, byte_ratio, time_ratio
from tests.benchmarks.insertion_corpus import made_up
from tests.benchmarks.measuring import Settings, Timing, keep_freed_memory, peak_bytes, side_by_side
from tests.benchmarks.reporting import PEAK_NOTE, TIME_HEADINGS, Report, megabytes, memory_note, time_cells
from tree_fairseq.tree_insertion.oracles import CentralityOracle
from tree_fairseq.tree_insertion.target import TargetTree
from tree_fairseq.tree_insertion.trajectories import trajectories
from tree_fairseq.trees.notations import notation_named

WAYS, TREES = 5, 100


def run(settings: Settings) -> Report:
    """Measures accumulation, positions and the oracle."""
    rows = [("", *TIME_HEADINGS, "peak MB")]
    found = [*accumulations(settings, rows), *positions(settings, rows), oracle(settings, rows)]
    return Report(
        "authors",
        f"accumulation: n={accumulation.LEAVES}, m={accumulation.NODES}, d={accumulation.WIDTH}; positions: "
        f"{tree_positions.NODES} nodes, k={tree_positions.LEVELS}, d_pos={tree_positions.POSITION_WIDTH}; oracle: "
        f"{WAYS} trajectories of a tree of made-up forms",
        found,
        [rows],
        [PEAK_NOTE + memory_note(not settings.quick)],
    )


def accumulations(settings: Settings, rows: list) -> list[Figure]:
    """Compares hierarchical accumulation: forward and backward pass of one layer."""
    size = settings.choose(accumulation.BATCH, 2)
    both = accumulation.candidates(accumulation.LEAVES, accumulation.NODES, size)
    works = {"ours": both.closed, "authors": both.direct}
    memory = {name: peak_bytes(work) for name, work in works.items()}
    keep_freed_memory(settings)
    timing = side_by_side(works, settings.choose(9, 2), warm_up=2)
    add(rows, "accumulation", timing, memory)
    speedup = time_ratio(
        "accumulation", timing["ours"], timing["authors"], 6, what="accumulation, times as fast", processor=True
    )
    saving = byte_ratio("accumulation_memory", memory["ours"], memory["authors"], 10, what="accumulation, less memory")
    return [speedup, saving]


def positions(settings: Settings, rows: list) -> list[Figure]:
    """Compares tree positions, forward and backward pass."""
    size, nodes = settings.choose((tree_positions.BATCH, tree_positions.NODES), (2, 12))
    both = tree_positions.candidates(tree_positions.random_places, size, nodes)
    works = {"ours": both.gathered, "authors": both.direct}
    memory = {name: peak_bytes(work) for name, work in works.items()}
    timing = side_by_side(works, settings.choose(7, 2), warm_up=1)
    add(rows, "tree positions", timing, memory)
    return [
        time_ratio(
            "positions", timing["ours"], timing["authors"], 5, what="tree positions, times as fast", processor=True
        ),
        byte_ratio("positions_memory", memory["ours"], memory["authors"], 10, what="tree positions, less memory"),
    ]


def oracle(settings: Settings, rows: list) -> Figure:
    """Compares the trajectories of the centrality oracle on the trees of a domain."""
    torch.set_num_threads(1)
    notation = notation_named("bracket")
    forms = list(dict.fromkeys(example.target for example in made_up()["train"]))
    targets = [TargetTree.of(notation.read(form)) for form in forms[: settings.choose(TREES, 3)]]

    def ours() -> None:
        generator = np.random.default_rng(0)
        for target in targets:
            trajectories(CentralityOracle(target), WAYS, generator)

    def straight() -> None:
        chance = random.Random(0)
        for target in targets:
            for _ in range(WAYS):
                straight_oracle.trajectory(target, chance)

    timing = side_by_side({"ours": ours}, settings.choose(7, 2)) | side_by_side(
        {"authors": straight}, settings.choose(2, 2), warm_up=0
    )
    timing = {name: taken.per(len(targets)) for name, taken in timing.items()}
    add(rows, f"oracle, {WAYS} trajectories of a tree", timing, {})
    return time_ratio(
        "oracle",
        timing["ours"],
        timing["authors"],
        20,
        what="trajectories of the oracle, times as fast",
        processor=True,
    )


def add(rows: list, what: str, timing: dict[str, Timing], memory: dict[str, int]) -> None:
    """Adds the rows of both candidates."""
    labels = {"ours": "the package", "authors": "straight"}
    for name, taken in timing.items():
        rows.append((f"{what}: {labels[name]}", *time_cells(taken), megabytes(memory[name]) if memory else ""))
