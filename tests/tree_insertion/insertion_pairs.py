"""Sources and partial trees for insertion models, without a folder or a task behind them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import torch

from tests.nn.tiny import build, dictionary, random_tree, stack
from tests.tree_insertion.partial_trees import PAD, random_batch
from tests.tree_insertion.slot_batches import label_dictionary
from tree_fairseq.nn.modalities import CONSTITUENCY, Side
from tree_fairseq.nn.tree_batch import collate_trees
from tree_fairseq.tree_insertion import model  # noqa: F401  (registers the architectures)
from tree_fairseq.tree_insertion.tree_shapes import read_partial_trees

TINY = "tree_insertion_transformer_tiny"
LABELS = 9


def insertion_task(words: int = 20, letter: str = "s") -> SimpleNamespace:
    """A task with the attributes that a model reads; ``letter`` begins the words, and ``t`` the labels."""
    return SimpleNamespace(
        source_dictionary=dictionary(*(f"{letter}{k}" for k in range(words))),
        target_dictionary=label_dictionary(*(f"t{k}" for k in range(LABELS))),
        source_side=Side(CONSTITUENCY, labels=dictionary(*(f"L{k}" for k in range(6)))),
        insertion=SimpleNamespace(numbered=True, splits={}),
        cfg=SimpleNamespace(),
    )


class Examples:
    """Sentences with trees of their own, and partial trees.

    Args:
        sizes: nodes of the partial trees, one a sentence
        seed: of everything
    """

    def __init__(self, *sizes: int, seed: int = 0):
        random = np.random.default_rng(seed)
        self.sources = [random.integers(4, 24, int(random.integers(2, 9))) for _ in sizes]
        self.source_trees = [random_tree(random, len(source), 10) for source in self.sources]
        self.batch = random_batch(seed, list(sizes), LABELS + 4)

    def net_input(
        self, rows: list[int] | None = None, left_pad: bool = True, spare: int = 0, trees: bool = False
    ) -> dict:
        rows = list(range(len(self.sources))) if rows is None else rows
        sources = [self.sources[row] for row in rows]
        width = int((self.batch["labels"][rows] != PAD).sum(1).max())
        partial = {name: self.batch[name][rows][:, :width] for name in ("labels", "parents")}
        inputs = {
            "src_tokens": stack(sources, left_pad, width=max(map(len, sources)) + 1 + spare),
            "src_lengths": torch.tensor([len(source) + 1 for source in sources]),
            "partial_tree": read_partial_trees(partial, PAD),
        }
        if trees:
            inputs["source_spans"] = collate_trees([self.source_trees[row] for row in rows], PAD)
        return inputs


def build_insertion(*flags: str, seed: int = 0):
    letter = "t" if "--copy-source" in flags else "s"
    return build(insertion_task(letter=letter), *flags, arch=TINY, seed=seed)
