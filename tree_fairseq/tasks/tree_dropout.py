"""Dropped trees: for a share of the training examples a model reads no structure, so that it can do without parses."""

from dataclasses import dataclass

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from omegaconf import II

from tree_fairseq.errors import InputError
from tree_fairseq.nn.tree_batch import NodeArrays
from tree_fairseq.parsing.parsers import FLAT_LABEL
from tree_fairseq.support.options import option

# Beside seed, epoch and number of the example, so that these draws do not depend on others of the same numbers.
_STREAM = 1


# fairseq reads the fields' types, so annotations are not postponed in this file.
@dataclass
class TreeDropoutConfig(FairseqDataclass):
    """Options of tasks whose models read constituency trees."""

    tree_dropout: float = option(
        0.0,
        f"share of the training sentences, others in each epoch, whose trees are replaced by one phrase {FLAT_LABEL} "
        "over all words of a sentence, the tree of a sentence that could not be parsed",
    )
    seed: int = II("common.seed")


class TreeDropout:
    """Replaces the trees of some examples by flat ones, as ``--tree-parser flat`` gives them.

    Seed, epoch and number of an example decide, so a resumed training and any number of loading processes drop the same
    trees. A flat tree never has more nodes than the tree that it replaces, so batches keep within ``--max-tokens``.

    Args:
        share: of the examples, from 0 to 1
        labels: the label dictionary; where it lacks the label of flat trees, as in folders with one symbol at all
            nodes, roots keep their own
        seed: ``--seed``

    Raises:
        InputError: the share is not from 0 to 1
    """

    def __init__(self, share: float, labels: Dictionary, seed: int):
        if not 0 <= share <= 1:
            raise InputError(f"--tree-dropout {share}: give a share from 0 to 1")
        self.share = share
        self.seed = seed
        self._label = labels.index(FLAT_LABEL) if FLAT_LABEL in labels else None
        # Processes that load data outlive an epoch and have copies of the data set, which only share this memory.
        self._epoch = torch.ones(1, dtype=torch.long).share_memory_()

    def set_epoch(self, epoch: int) -> None:
        """Makes the next draws those of another epoch."""
        self._epoch.fill_(epoch)

    def drops(self, index: int) -> bool:
        """Returns whether the trees of an example are dropped in this epoch."""
        key = [self.seed, int(self._epoch), int(index), _STREAM]
        return bool(np.random.default_rng(key).random() < self.share)

    def flat(self, nodes: NodeArrays) -> NodeArrays:
        """Keeps the roots of a forest alone."""
        roots = nodes.depth == 0
        label = nodes.label[roots] if self._label is None else np.full_like(nodes.label[roots], self._label)
        return NodeArrays(label, nodes.start[roots], nodes.end[roots], nodes.depth[roots])
