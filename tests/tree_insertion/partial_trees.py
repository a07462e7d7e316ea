"""Random partial trees as batches, and slots and insertions of one tree at a time, node by node."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion.dataset import collate_partial_trees
from tree_fairseq.tree_insertion.target import ANCESTOR, DESCENDANT, FIRST_CHILD, KINDS, NEXT_SIBLING
from tree_fairseq.tree_insertion.tree_shapes import TreeShapes

PAD, KEEP, ROOT = 1, 2, 4


def slot_mask(parents: np.ndarray) -> np.ndarray:
    """Which slots a tree with ``parents`` ``[M]`` has, ``[M, 4]`` bool."""
    counts = np.bincount(parents[1:], minlength=len(parents))
    mask = np.ones((len(parents), KINDS), dtype=bool)
    mask[:, FIRST_CHILD] = counts > 0
    mask[0, [ANCESTOR, NEXT_SIBLING]] = False
    mask[1:, ANCESTOR] = counts[parents[1:]] > 1
    return mask


def insert(parents: np.ndarray, slots: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Inserts one node in each of the different slots ``[m]`` of a tree with ``parents`` ``[M]``, all in one step.

    A node in the descendant slot of u takes over the children of u, and also the nodes that the same step inserts
    between them.

    Returns sources ``[M + m]`` int64: for each node of the new tree its index in the old tree, or M + i if the step
    inserts it in the i-th slot; and parents ``[M + m]`` int64 of the new tree.
    """
    count = len(parents)
    inserted = {slot: count + number for number, slot in enumerate(slots)}
    children = _children_after(parents.tolist(), inserted)
    sources, new_parents = [], []
    stack = [(0, -1)]
    while stack:
        node, parent = stack.pop()
        place = len(sources)
        sources.append(node)
        new_parents.append(parent)
        stack.extend((child, place) for child in reversed(children[node]))
    return np.array(sources), np.array(new_parents)


def _children_after(parents: list[int], inserted: dict[int, int]) -> list[list[int]]:
    """The children of the old nodes, then of the inserted ones, after a step."""
    count = len(parents)
    children: list[list[int]] = [[] for _ in range(count + len(inserted))]
    for node, parent in enumerate(parents):
        slot = KINDS * node
        if node:
            upper = inserted.get(slot + ANCESTOR, node)
            if upper != node:
                children[upper].append(node)
            children[parent].append(upper)
            if slot + NEXT_SIBLING in inserted:
                children[parent].append(inserted[slot + NEXT_SIBLING])
        if slot + FIRST_CHILD in inserted:
            children[node].append(inserted[slot + FIRST_CHILD])
    for node in range(count):
        lower = inserted.get(KINDS * node + DESCENDANT)
        if lower is not None:
            children[lower], children[node] = children[node], [lower]
    return children


def random_parents(generator: np.random.Generator, count: int) -> np.ndarray:
    """Parents of a random tree of ``count`` nodes in preorder: the parent is the node before, or an ancestor of it."""
    parents, path = [-1], [0]
    for node in range(1, count):
        del path[int(generator.integers(1, len(path) + 1)) :]
        parents.append(path[-1])
        path.append(node)
    return np.array(parents)


def random_batch(seed: int, sizes: list[int], labels: int = 9) -> dict[str, Tensor]:
    """A batch of random trees and their slots; labels are from `ROOT`, which only roots have, up to ``labels``."""
    generator = np.random.default_rng(seed)
    names = [np.concatenate([[ROOT], generator.integers(ROOT + 1, labels + 1, size - 1)]) for size in sizes]
    trees = [SimpleNamespace(labels=own, parents=random_parents(generator, len(own))) for own in names]
    return collate_partial_trees(trees, PAD)


def batches(max_nodes: int = 14) -> st.SearchStrategy[dict[str, Tensor]]:
    sizes = st.lists(st.integers(1, max_nodes), min_size=1, max_size=4)
    return st.builds(random_batch, st.integers(0, 2**32 - 1), sizes)


class ChangedTrees(NamedTuple):
    """Trees after a step, ``[B, M']`` int64; sources are places in the old row, -1 for new nodes and padding."""

    labels: Tensor
    parents: Tensor
    sources: Tensor


def shapes_of(batch: dict[str, Tensor]) -> TreeShapes:
    return TreeShapes.of_parents([np.array(parents) for parents in rows(batch)])


def _changed(batch: dict[str, Tensor], after: TreeShapes, sources: np.ndarray, new: Tensor) -> ChangedTrees:
    old, before = batch["labels"], shapes_of(batch)
    labels = np.concatenate([old[old != PAD].numpy(), new.numpy()])[sources]
    columns = before.nodes - before.starts
    places = np.concatenate([columns, np.full(len(new), -1)])[sources]
    found = (after.padded(labels, PAD), after.padded_parents(), after.padded(places, -1))
    return ChangedTrees(*map(torch.from_numpy, found))


def inserted(batch: dict[str, Tensor], slots: Tensor, answers: Tensor) -> ChangedTrees:
    slots, new = slots[answers != KEEP], answers[answers != KEEP]
    shapes = shapes_of(batch)
    packed = np.searchsorted(shapes.places, slots.numpy() // KINDS) * KINDS + slots.numpy() % KINDS
    return _changed(batch, *shapes.inserted(packed), new)


def rows(batch: dict[str, Tensor]) -> list[list[int]]:
    counts = (batch["labels"] != PAD).sum(1).tolist()
    return [parents[:count] for parents, count in zip_equal(batch["parents"].tolist(), counts)]


def path_to_root(parents: list[int], node: int) -> list[int]:
    path = [node]
    while parents[path[-1]] >= 0:
        path.append(parents[path[-1]])
    return path


def siblings(parents: list[int], node: int) -> list[int]:
    return [other for other, parent in enumerate(parents) if parent == parents[node]]


def same(left: Tensor, right: Tensor) -> None:
    torch.testing.assert_close(left, right, rtol=0, atol=0)
