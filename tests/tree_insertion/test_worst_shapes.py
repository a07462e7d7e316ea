"""Chains and stars of thousands of nodes: memory and depth."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tree_fairseq.tree_insertion.target import KINDS
from tree_fairseq.tree_insertion.tree_shapes import TreeShapes, partial_tree_input

NODES = 1000


SHAPES = {"chain": lambda nodes: np.arange(-1, nodes - 1), "star": lambda nodes: np.array([-1] + [0] * (nodes - 1))}


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
