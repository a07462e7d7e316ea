"""Distances along sentences and trees, against walks from token to token."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nn.tiny import PAD, random_tree, stack
from tree_fairseq.nn.distance_bias import leaf_distances, linear_distances
from tree_fairseq.nn.tree_batch import NodeArrays, TreeBatch, collate_trees

LIMIT = 6


def batch_of(trees: list[NodeArrays], tokens: torch.Tensor) -> TreeBatch:
    return TreeBatch.from_net_input(collate_trees(trees, PAD), tokens, PAD)


def edges_of(tree: NodeArrays, num_leaves: int) -> dict[object, set]:
    """The neighbours of each node, and of each leaf, by walking up from everything to the smallest node around it."""
    spans = sorted(zip(tree.end - tree.start, -tree.depth, tree.start, tree.end), key=lambda row: row[:2])
    things = [(("leaf", leaf), leaf, leaf + 1) for leaf in range(num_leaves)]
    things += [(("node", number), start, end) for number, (_, _, start, end) in enumerate(spans)]
    edges: dict[object, set] = {name: set() for name, _, _ in things}
    for place, (name, start, end) in enumerate(things):
        for other, low, high in things[max(place + 1, num_leaves) :]:
            if low <= start and end <= high:
                edges[name].add(other)
                edges[other].add(name)
                break
    return edges


def steps(edges: dict[object, set], start: object) -> dict[object, int]:
    found, border = {start: 0}, [start]
    while border:
        border = [each for name in border for each in edges[name] if each not in found]
        found.update((each, 1 + min(found[near] for near in edges[each] if near in found)) for each in border)
    return found


def on_random_trees(test):
    """Calls a test with the lengths of up to three sentences, a seed, and the side of padding."""
    lengths = st.lists(st.integers(1, 12), min_size=1, max_size=3)
    return settings(deadline=None, max_examples=30)(
        given(lengths=lengths, seed=st.integers(0, 99), left_pad=st.booleans())(test)
    )


def random_trees(
    lengths: list[int], seed: int, left_pad: bool, num_labels: int
) -> tuple[list[NodeArrays], torch.Tensor]:
    """Trees over sentences of these lengths, and the tokens of the sentences ``[B, N]``."""
    random = np.random.default_rng(seed)
    trees = [random_tree(random, length, num_labels) for length in lengths]
    return trees, stack([np.full(length, 5) for length in lengths], left_pad)


@on_random_trees
def test_distances_of_leaves_are_the_lengths_of_paths(lengths, seed, left_pad):
    trees, tokens = random_trees(lengths, seed, left_pad, num_labels=6)
    got = leaf_distances(batch_of(trees, tokens).covers(), LIMIT)
    assert got.dtype == torch.int32 and got.shape == (len(lengths), tokens.size(1), tokens.size(1))
    for row, (tree, length) in enumerate(zip(trees, lengths)):
        first = int(tokens[row].ne(PAD).int().argmax())
        edges = edges_of(tree, length)
        expected = torch.full(got.shape[1:], LIMIT, dtype=torch.int32).fill_diagonal_(0)
        for leaf in range(length):
            for other, count in steps(edges, ("leaf", leaf)).items():
                if other[0] == "leaf":
                    expected[first + leaf, first + other[1]] = min(count, LIMIT)
        assert torch.equal(got[row], expected)


def test_linear_distances():
    assert linear_distances(4, 2, torch.device("cpu")).tolist() == [2, 2, 1, 0, 1, 2, 2]


def test_a_batch_without_nodes_has_no_paths():
    tokens = torch.tensor([[5, 2]])
    batch = batch_of([random_tree(np.random.default_rng(0), 1, 6)], tokens)
    assert leaf_distances(batch.covers(), LIMIT).tolist() == [[[0, LIMIT], [LIMIT, 0]]]
