"""A tiny model learns a few trees by heart and generates them from their root."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.nn.tiny import last_loss
from tests.tree_insertion.allowed_sets import trajectory
from tests.tree_insertion.insertion_pairs import Examples, build_insertion, insertion_task
from tests.tree_insertion.partial_trees import PAD, ROOT, rows
from tests.tree_insertion.slot_batches import tree_slots
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion.criterion import slot_divergence
from tree_fairseq.tree_insertion.dataset import TargetDistribution, collate_partial_trees
from tree_fairseq.tree_insertion.oracles import CentralityOracle
from tree_fairseq.tree_insertion.parallel_search import InsertionLimits
from tree_fairseq.tree_insertion.search import InsertionGenerator
from tree_fairseq.tree_insertion.target import TargetTree
from tree_fairseq.trees.symbols import tree_of_parents

SIZES = (9, 4, 7, 2, 10, 6)


def targets() -> list[TargetTree]:
    """Trees of different labels, so that no step can be taken for another."""
    batch = Examples(*SIZES).batch
    made = []
    for parents in rows(batch):
        labels = list(range(ROOT, ROOT + len(parents)))
        # One tree under the root: what came to the root comes to its first child.
        joined = [1 if node > 1 and parent == 0 else parent for node, parent in enumerate(parents)]
        made.append(TargetTree.of(tree_of_parents(list(map(str, labels[1:])), [parent - 1 for parent in joined[1:]])))
    return made


def states(trees: list[TargetTree]) -> tuple[list[int], list]:
    """Every state of a trajectory of each tree, and the number of the tree.

    Only the nodes of the next state are to be inserted.
    """
    owners, found = [], []
    for number, tree in enumerate(trees):
        labels = np.array([ROOT, *map(int, tree.labels[1:])])
        path = trajectory(CentralityOracle(tree))
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
def test_trees_are_learned_and_grown_in_the_steps_of_the_trajectory(flags):
    trees = targets()
    owners, found = states(trees)
    model = build_insertion(*flags, "--dropout", "0").train()
    source = Examples(*SIZES).net_input()
    del source["partial_tree"]
    partial = collate_partial_trees(found, PAD)
    target = tree_slots(found, partial, TargetDistribution())

    def loss_of() -> torch.Tensor:
        memory = model.encode(**source).select(torch.tensor(owners))
        output = model.decode(memory, partial)
        return slot_divergence(output["slot"], output["logits"], target)[0].sum() / len(found)

    assert last_loss(model, loss_of, updates=80, rate=2e-3) < 0.05

    limits = InsertionLimits(steps=1 + max(trajectory(CentralityOracle(tree)).length for tree in trees))
    found = InsertionGenerator([model], insertion_task().target_dictionary, limits).generate(
        [model], {"net_input": source}
    )
    for tree, (hypothesis,) in zip_equal(trees, found):
        assert hypothesis["is_complete"] and hypothesis["parents"].tolist() == tree.parents
        assert hypothesis["labels"].tolist()[1:] == [int(label) for label in tree.labels[1:]]
