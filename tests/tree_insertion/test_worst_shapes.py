"""Chains, stars, combs and full binary trees of a thousand nodes: structure, steps and memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tests.tree_insertion.partial_trees import slot_mask
from tree_fairseq.tree_insertion.target import KINDS
from tree_fairseq.tree_insertion.tree_shapes import TreeShapes, partial_tree_input

NODES = 1000


def comb(nodes: int) -> np.ndarray:
    """Every second node is a leaf, the others are a chain."""
    parents = np.arange(-1, nodes - 1)
    parents[2::2] = np.arange(0, nodes - 2, 2)
    return parents


def full_binary(nodes: int) -> np.ndarray:
    parents, stack = [], [(-1, nodes)]
    while stack:
        parent, size = stack.pop()
        place, left = len(parents), size // 2
        parents.append(parent)
        stack += [(place, part) for part in (size - 1 - left, left) if part > 0]
    return np.array(parents)


SHAPES = {
    "chain": lambda nodes: np.arange(-1, nodes - 1),
    "star": lambda nodes: np.array([-1] + [0] * (nodes - 1)),
    "comb": comb,
    "full binary": full_binary,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_structure_of_large_trees(shape):
    parents = SHAPES[shape](NODES)
    shapes = TreeShapes.of_parents([parents])
    assert shapes.parents.tolist() == parents.tolist()
    assert shapes.slots.tolist() == np.flatnonzero(slot_mask(parents)).tolist()
    depths = np.zeros(NODES, int)
    for node, parent in enumerate(parents[1:].tolist(), 1):
        depths[node] = depths[parent] + 1
    assert shapes.depths.tolist() == depths.tolist()
    grown, sources = shapes.inserted(shapes.slots)
    assert sources[sources < NODES].tolist() == list(range(NODES))
    assert len(grown.depths) == NODES + len(shapes.slots) and (grown.depths[sources < NODES] >= depths).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_memory_grows_with_the_pairs_of_nodes_alone(shape):
    shapes = TreeShapes.of_parents([SHAPES[shape](NODES)])
    labels = np.full(NODES, 5)
    tracemalloc.start()
    made = partial_tree_input(shapes, labels, pad=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert made["relations"].shape == (1, NODES, NODES)
    # A pair has 2 bytes of relations; attention has 4 a head for a score alone. Blocks of pairs are below 64 MB.
    assert peak < 12 * NODES**2 + 2**26


def test_a_chain_of_five_thousand_nodes_needs_no_recursion():
    nodes = 5000
    shapes = TreeShapes.of_parents([np.arange(-1, nodes - 1)])
    assert shapes.depths[-1] == nodes - 1 and (shapes.ends == nodes).all()
    assert len(shapes.slots) == 3 * nodes - 2
    grown, _ = shapes.inserted(KINDS * np.arange(nodes))
    assert grown.depths.tolist() == list(range(2 * nodes))
