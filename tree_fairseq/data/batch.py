"""The one batch type of trees, and the shape letters that every docstring uses.

======  =======================================================================
letter  meaning
======  =======================================================================
B       sentences in a batch
N       source leaves: subword tokens, EOS and padding included
M       tree nodes (constituents), padding included
S       memory positions: N leaves, then M nodes
T       target length
H       attention heads
D       model width
K       beam size
======  =======================================================================

A batch of trees travels in ``net_input["source_tree"]`` as a plain dict of tensors, because
fairseq moves dicts to the GPU and leaves dataclasses behind; inside a model it is viewed as a
:class:`TreeBatch`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class NodeArrays:
    """The nodes of one forest as arrays, reduced to what a model reads.

    Attributes:
        label: ids in the label dictionary, ``[M]`` int32
        start: first leaf of each span, ``[M]`` int32
        end: one past the last leaf of each span, ``[M]`` int32
        depth: distance from the root, 0 at each root, ``[M]`` int32
    """

    label: np.ndarray
    start: np.ndarray
    end: np.ndarray
    depth: np.ndarray

    def __len__(self) -> int:
        return len(self.label)


def collate_trees(trees: Sequence[NodeArrays], pad: int) -> dict[str, Tensor]:
    """Stacks forests into one batch, padded on the right with nodes of empty span.

    Args:
        trees: B forests
        pad: label id of a padding node

    Returns:
        ``label``, ``start``, ``end`` and ``depth``, each ``[B, M]`` int64; spans are relative to
        the sentence, so the side on which the leaves are padded does not matter here.
    """
    shape = (len(trees), max((len(tree) for tree in trees), default=0))
    batch = {name: np.zeros(shape, np.int64) for name in ("label", "start", "end", "depth")}
    batch["label"].fill(pad)
    for row, tree in enumerate(trees):
        for name, array in batch.items():
            array[row, : len(tree)] = getattr(tree, name)
    return {name: torch.from_numpy(array) for name, array in batch.items()}


@dataclass(frozen=True)
class TreeBatch:
    """Forests over a padded batch of leaves.

    Attributes:
        label: ``[B, M]`` int64, label ids
        start: ``[B, M]`` int64, column of the first leaf of each span
        end: ``[B, M]`` int64, one past the column of the last leaf; equals ``start`` at padding
        depth: ``[B, M]`` int64, 0 at a root
        is_node: ``[B, M]`` bool, false at padding
        is_leaf: ``[B, N]`` bool, false at padding; true at EOS, which no node covers
    """

    label: Tensor
    start: Tensor
    end: Tensor
    depth: Tensor
    is_node: Tensor
    is_leaf: Tensor

    @classmethod
    def from_net_input(cls, source_tree: dict[str, Tensor], src_tokens: Tensor, pad: int) -> TreeBatch:
        """Views the collated dict as a batch over ``src_tokens``.

        Args:
            source_tree: what :func:`collate_trees` returned
            src_tokens: ``[B, N]``, padded on either side
            pad: padding id, the same for leaves and labels
        """
        is_leaf = src_tokens.ne(pad)
        is_node = source_tree["end"] > source_tree["start"]
        # Sentences that are padded on the left begin later: the only place that knows it.
        first_leaf = is_leaf.long().argmax(dim=1, keepdim=True)
        return cls(
            label=source_tree["label"],
            start=source_tree["start"] + first_leaf,
            end=source_tree["end"] + first_leaf,
            depth=source_tree["depth"],
            is_node=is_node,
            is_leaf=is_leaf,
        )
