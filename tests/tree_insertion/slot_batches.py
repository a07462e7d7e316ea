"""Batches of partial trees with what belongs in their slots, as the data set of insertions makes them."""

from __future__ import annotations

import numpy as np
from fairseq.data import Dictionary
from torch import Tensor

from tests.tree_insertion.allowed_sets import trajectory
from tree_fairseq.tree_insertion.dataset import TargetDistribution, collate_partial_trees, collate_slots
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary
from tree_fairseq.tree_insertion.oracles import CentralityOracle, PartialTree
from tree_fairseq.tree_insertion.target import KINDS, ROOT_LABEL, TargetTree
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree


def label_dictionary(*labels: str) -> InsertionDictionary:
    dictionary = Dictionary()
    for label in (ROOT_LABEL, *labels):
        dictionary.add_symbol(label)
    return InsertionDictionary(dictionary, notation_named("bracket"))


DICTIONARY = label_dictionary("a", "b", "c", "d", "e")
PAD = DICTIONARY.pad()


def random_tree(random: np.random.Generator, nodes: int) -> Tree:
    """A tree whose nodes hang where chance puts them."""
    children: list[list[int]] = [[] for _ in range(nodes)]
    for node in range(1, nodes):
        children[int(random.integers(node))].append(node)
    labels = random.choice(["a", "b", "c", "d", "e"], nodes).tolist()

    def build(node: int) -> Tree:
        return Tree(labels[node], tuple(map(build, children[node])))

    return build(0)


def random_state(random: np.random.Generator) -> PartialTree:
    target = TargetTree.of(random_tree(random, int(random.integers(1, 12))))
    path = trajectory(CentralityOracle(target), random)
    labels = np.array([DICTIONARY.index(label) for label in target.labels])
    return path.partial_tree(labels, np.array(target.parents), int(random.integers(path.length + 1)))


def tree_slots(states: list[PartialTree], partial: dict, distribution: TargetDistribution) -> dict[str, Tensor]:
    slots_of_row = KINDS * partial["labels"].size(1)
    return collate_slots(states, partial["slots"], slots_of_row, distribution, DICTIONARY.keep)


def random_batch(
    seed: int, rows: int = 3, distribution: TargetDistribution = TargetDistribution("rank", 0.7)
) -> tuple[dict, Tensor]:
    """A batch as the data set makes it, sources aside; and the numbers of its slots."""
    random = np.random.default_rng(seed)
    states = [random_state(random) for _ in range(rows)]
    partial = collate_partial_trees(states, PAD)
    sample = {
        "net_input": {"partial_tree": partial},
        "nsentences": rows,
        "partial_states": rows,
        "ntokens": len(partial["slots"]),
        "slot_target": tree_slots(states, partial, distribution),
    }
    return sample, partial["slots"]
