"""Compares the closed form of hierarchical accumulation with the paper's tensor of (M + 1) * N * D values."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Callable

import torch

from tests.benchmarks.direct_tensor import DirectAccumulation
from tests.benchmarks.figures import byte_ratio, time_ratio
from tests.benchmarks.measuring import Settings, keep_freed_memory, peak_bytes, side_by_side
from tests.benchmarks.random_trees import random_tree
from tests.benchmarks.reporting import (
    PEAK_NOTE,
    TIME_HEADINGS,
    Report,
    megabytes,
    memory_note,
    milliseconds,
    time_cells,
)
from tree_fairseq.nn.tree_batch import NodeArrays, TreeBatch, collate_trees
from tree_fairseq.tree_transformer.accumulation import AccumulationConfig, HierarchicalAccumulation
from tree_fairseq.tree_transformer.tree_structure import TreeStructure

BATCH, LEAVES, NODES, WIDTH, HEADS = 32, 40, 35, 512, 8
MEMORY_LIMIT = 8e9
PAD = 1


@dataclass(frozen=True)
class Candidates:
    """Forward and backward pass of one layer's accumulation, on the same weights, values and trees."""

    closed: Callable[[], None]  # the closed form
    direct: Callable[[], None]  # the paper's tensor
    # derives the closed form's indices from the trees, once in a batch for all layers
    structure: Callable[[], TreeStructure]


def candidates(num_leaves: int, num_nodes: int, size: int) -> Candidates:
    torch.manual_seed(0)
    generator = random.Random(0)
    trees = [descendants_first(random_tree(generator, num_leaves, num_nodes, 60)) for _ in range(size)]
    tokens = torch.full((size, num_leaves), 4)
    batch = TreeBatch.from_net_input(collate_trees(trees, PAD), tokens, PAD)
    module = HierarchicalAccumulation(WIDTH, HEADS, AccumulationConfig())
    leaves = torch.randn(num_leaves, size, WIDTH, requires_grad=True)
    values = torch.randn(size, HEADS, num_leaves + num_nodes, WIDTH // HEADS, requires_grad=True)
    gradient = torch.randn_like(values)
    inputs = [leaves, values, *module.parameters()]
    structure = TreeStructure.build(batch, count_leaf=True, mask_subtrees=True)
    direct = DirectAccumulation(module, batch)
    return Candidates(
        closed=lambda: torch.autograd.grad(module(leaves, values, structure), inputs, gradient) and None,
        direct=lambda: torch.autograd.grad(direct(leaves, values), inputs, gradient) and None,
        structure=lambda: TreeStructure.build(batch, count_leaf=True, mask_subtrees=True),
    )


def descendants_first(tree: NodeArrays) -> NodeArrays:
    """Orders nodes as a cumulative sum needs them; the closed form takes any order."""
    return NodeArrays(*(array[::-1] for array in (tree.label, tree.start, tree.end, tree.depth)))


def run(settings: Settings) -> Report:
    """Measures speed and memory at the paper's sizes, then their growth with the length of a sentence."""
    size = settings.choose(BATCH, 2)
    both = candidates(LEAVES, NODES, size)
    works = {"closed": both.closed, "direct": both.direct}
    memory = {name: peak_bytes(work) for name, work in works.items()}
    default = side_by_side(works, settings.choose(5, 1))
    kept = keep_freed_memory(settings)
    timing = side_by_side(works, settings.choose(15, 2), warm_up=3)
    build = side_by_side({"build": both.structure}, settings.choose(15, 2))["build"]
    rows = [("forward + backward", *TIME_HEADINGS, "ms without kept memory", "peak MB")]
    for name, label in (("closed", "closed form"), ("direct", "(m+1)nd tensor")):
        rows.append((label, *time_cells(timing[name]), milliseconds(default[name].median), megabytes(memory[name])))
    rows.append(("structure, once in a batch", *time_cells(build), "", megabytes(peak_bytes(both.structure))))
    what = "closed form, times as fast as the tensor"
    return Report(
        "accumulation",
        f"b={size}, n={LEAVES}, m={NODES}, d={WIDTH}, {HEADS} heads, with hierarchical embeddings",
        [
            time_ratio("speedup", timing["closed"], timing["direct"], 6, what=what, processor=True),
            byte_ratio("memory_saving", memory["closed"], memory["direct"], 10, what="closed form, times less memory"),
        ],
        [rows, growth(settings)],
        [
            PEAK_NOTE
            + "The structure serves all layers of a batch, as masks and indices serve the tensor. The times above "
            "include neither.\n" + memory_note(kept)
        ],
    )


def growth(settings: Settings) -> list[tuple[str, ...]]:
    rows = [("n", "m", "closed ms", "direct ms", "speedup", "closed MB", "direct MB", "saving")]
    previous = None
    for num_leaves in settings.choose((20, 40, 80, 160, 320), (10, 20)):
        num_nodes = num_leaves * NODES // LEAVES
        both = candidates(num_leaves, num_nodes, settings.choose(BATCH, 2))
        # The tensor grows with n * m.
        expected = 0 if previous is None else previous[1] * num_leaves * num_nodes / previous[0]
        fits = expected < MEMORY_LIMIT
        works = {"closed": both.closed, **({"direct": both.direct} if fits else {})}
        timing = side_by_side(works, settings.choose(3, 1))
        memory = {name: peak_bytes(work) for name, work in works.items()}
        closed = (str(num_leaves), str(num_nodes), milliseconds(timing["closed"].median))
        if fits:
            previous = (num_leaves * num_nodes, memory["direct"])
            speedup = f"{timing['direct'].median / timing['closed'].median:.1f}"
            saving = f"{memory['direct'] / memory['closed']:.1f}"
            direct = (milliseconds(timing["direct"].median), speedup, megabytes(memory["closed"]))
            rows.append((*closed, *direct, megabytes(memory["direct"]), saving))
        else:
            needed = f"about {expected / 1e9:.0f} GB, not run"
            rows.append((*closed, "-", "-", megabytes(memory["closed"]), needed, f"{expected / memory['closed']:.0f}"))
    return rows
