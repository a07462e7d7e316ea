"""Distances between tokens of a source: along the sentence, and along the branches of its tree.

The distance in a tree is the number of edges on the path between two tokens. Token i has a_i ancestors, and i and j
have c_ij ancestors in common. A symbol is a node itself and counts as its own ancestor; a leaf does not. The distances
are

    leaves:  a_i - c_ij + a_j - c_ij + 2, and 0 from a leaf to itself
    symbols: a_i - c_ij + a_j - c_ij

All numbers of a batch come from products of matrices of zeros and ones, so that no shape depends on a value.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tree_fairseq.nn.devices import without_autocast
from tree_fairseq.nn.tree_batch import TreeBatch


@dataclass(frozen=True)
class BiasRows:
    """Rows of the tables of a bias, for all pairs of tokens; None for a table that the bias does not have.

    Attributes:
        linear: ``[2 N - 1]`` int32, distances to tokens from N - 1 places to the left to N - 1 to the right
        tree: ``[B, N, N]`` int32, distances in trees
        label: ``[B, N, N]`` int64, labels of lowest common ancestors
        height: ``[B, N, N]`` int64, their heights
    """

    linear: Tensor | None = None
    tree: Tensor | None = None
    label: Tensor | None = None
    height: Tensor | None = None


def linear_distances(num_tokens: int, limit: int, device: torch.device) -> Tensor:
    """Distances to tokens from N - 1 places on the left to N - 1 on the right, at most ``limit``: ``[2 N - 1]``."""
    steps = torch.arange(1 - num_tokens, num_tokens, dtype=torch.int32, device=device)
    return steps.abs().clamp(max=limit)


def leaf_distances(covers: Tensor, limit: int) -> Tensor:
    """Edges between leaves, at most ``limit``: ``[B, N, N]`` int32; also ``limit`` where no tree has both.

    ``covers`` are ``[B, M, N]`` bool: node m covers leaf n.
    """
    with without_autocast(covers):
        # In single precision, which is exact: 0, 1 and counts of nodes.
        below = covers.float()
        common = below.mT @ below
    path = _path(common) + 2
    itself = torch.eye(path.size(1), dtype=torch.bool, device=path.device)
    return _limited(path, common, limit).masked_fill(itself, 0)


def symbol_distances(parents: Tensor, limit: int) -> Tensor:
    """Edges between symbols, at most ``limit``: ``[B, N, N]`` int32; also ``limit`` where no tree has both.

    ``parents`` are ``[B, N]`` int64, the column of each symbol's parent; negative for roots and for other tokens.
    """
    column = torch.arange(parents.size(1), device=parents.device)
    with without_autocast(parents):
        # Ancestors of up to 2, 4, 8, ... generations, each token being its own.
        ancestors = ((parents.unsqueeze(2) == column) | (column[:, None] == column)).float()
        for _ in range(parents.size(1).bit_length()):
            ancestors = (ancestors @ ancestors).clamp(max=1)
        common = ancestors @ ancestors.mT
    return _limited(_path(common), common, limit)


def _path(common: Tensor) -> Tensor:
    """Counts the ancestors that only one of two tokens has, ``[B, N, N]``, given the number that both have."""
    own = common.diagonal(dim1=1, dim2=2)
    return own.unsqueeze(2) + own.unsqueeze(1) - 2 * common


def _limited(path: Tensor, common: Tensor, limit: int) -> Tensor:
    return path.clamp(max=limit).masked_fill(common == 0, limit).int()


def leaves_covered(batch: TreeBatch) -> Tensor:
    """``[B, M, N]`` bool, whether a node covers a leaf."""
    column = torch.arange(batch.is_leaf.size(1), device=batch.start.device)
    return (batch.start[..., None] <= column) & (column < batch.end[..., None])
