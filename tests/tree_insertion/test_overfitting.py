"""A tiny model learns a few trees by heart and generates them from their root."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.tree_insertion.allowed_sets import trajectory
from tests.tree_insertion.insertion_pairs import Examples, build_insertion
from tests.tree_insertion.partial_trees import KEEP, PAD, ROOT, inserted, rows, trees_after
from tests.tree_insertion.slot_batches import tree_slots
from tree_fairseq.tree_insertion.criterion import slot_divergence
from tree_fairseq.tree_insertion.dataset import TargetDistribution, collate_partial_trees
from tree_fairseq.tree_insertion.oracles import ExactOracle
from tree_fairseq.tree_insertion.target import TargetTree
from tree_fairseq.tree_insertion.tree_shapes import read_partial_trees
from tree_fairseq.trees.tree import Tree

SIZES = (9, 4, 7, 2, 10, 6)


def target_of(labels: list[int], parents: list[int]) -> Tree:
    """The tree under the root."""
    below: dict[int, list[Tree]] = {}
    for node in reversed(range(1, len(parents))):
        below.setdefault(parents[node], []).insert(0, Tree(str(labels[node]), tuple(below.get(node, ()))))
    return below[0][0]


def targets() -> list[TargetTree]:
    """Trees of different labels, so that no step can be taken for another."""
    batch = Examples(*SIZES).batch
    made = []
    for parents in rows(batch):
        labels = list(range(ROOT, ROOT + len(parents)))
        # One tree under the root: what came to the root comes to its first child.
        joined = [1 if node > 1 and parent == 0 else parent for node, parent in enumerate(parents)]
        made.append(TargetTree.of(target_of(labels, joined)))
    return made


def states(trees: list[TargetTree]) -> tuple[list[int], list]:
    """Every state of a shortest trajectory of each tree, and the number of the tree.

    Only the nodes of the next state are to be inserted.
    """
    owners, found = [], []
    for number, tree in enumerate(trees):
        labels = np.array([ROOT, *map(int, tree.labels[1:])])
        path = trajectory(ExactOracle(tree))
        for step in range(path.length + 1):
            state = path.partial_tree(labels, np.array(tree.parents), step)
            follows = np.isin(state.insertions, labels[path.steps == step + 1])
            owners.append(number)
            found.append(
                replace(
                    state,
                    slots=state.slots[follows],
                    insertions=state.insertions[follows],
                    ranks=np.zeros(follows.sum(), int),
                )
            )
    return owners, found


@pytest.mark.parametrize("flags", [(), ("--absolute-positions",)], ids=["relations", "absolute"])
def test_trees_are_learned_and_grown_in_the_fewest_steps(flags):
    trees = targets()
    owners, found = states(trees)
    model = build_insertion(*flags, "--dropout", "0").train()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    source = Examples(*SIZES).net_input()
    del source["partial_tree"]
    partial = collate_partial_trees(found, PAD)
    target = tree_slots(found, partial, TargetDistribution())
    for _ in range(80):
        memory = model.encode(**source).select(torch.tensor(owners))
        output = model.decode(memory, partial)
        loss = slot_divergence(output["slot"], output["logits"], target)[0].sum() / len(found)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.05

    model.eval()
    roots = {"labels": torch.full((len(trees), 1), ROOT), "parents": torch.full((len(trees), 1), -1)}
    grown = read_partial_trees(roots, PAD)
    with torch.no_grad():
        memory = model.encode(**source)
        for _ in range(max(trajectory(ExactOracle(tree)).length for tree in trees)):
            output = model.decode(memory, grown)
            grown = trees_after(inserted(grown, output["slot"], output["logits"].argmax(1)))
        assert (model.decode(memory, grown)["logits"].argmax(1) == KEEP).all()
    assert rows(grown) == [tree.parents for tree in trees]
    for row, tree in enumerate(trees):
        assert grown["labels"][row, 1 : len(tree)].tolist() == [int(label) for label in tree.labels[1:]]
    assert (grown["labels"] != PAD).sum().item() == sum(map(len, trees))
