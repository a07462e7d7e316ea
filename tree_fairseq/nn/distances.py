"""Relations between tokens of a source: distances along the sentence and in its tree, and common ancestors.

The distance in a tree is the number of edges on the path between two tokens. Token i has a_i ancestors, and i and j
have c_ij ancestors in common. A symbol is a node itself and counts as its own ancestor; a leaf does not. The distances
are

    leaves:  a_i - c_ij + a_j - c_ij + 2, and 0 from a leaf to itself
    symbols: a_i - c_ij + a_j - c_ij

These numbers come from products of matrices of zeros and ones, so that no shape depends on a value.

Other rows of a bias are about the lowest common ancestor of two leaves. Take that of each two neighbours. That of any
two leaves is the highest of those of the neighbours between them, so it comes from a running minimum over keys that
have the depth of a node before its number.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

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
    """Counts the edges between leaves, ``[B, N, N]`` int32: at most ``limit``, and ``limit`` where no tree has both.

    ``covers`` are ``[B, M, N]`` bool: node m covers leaf n.
    """
    with without_autocast(covers):
        # Single precision is exact for counts of nodes.
        below = covers.float()
        common = below.mT @ below
    path = _path(common) + 2
    itself = torch.eye(path.size(1), dtype=torch.bool, device=path.device)
    return _limited(path, common, limit).masked_fill(itself, 0)


def symbol_distances(parents: Tensor, limit: int) -> Tensor:
    """Counts the edges between symbols, ``[B, N, N]`` int32: at most ``limit``, and ``limit`` where no tree has both.

    ``parents`` are ``[B, N]`` int64, the column of each symbol's parent; negative for roots and for other tokens.
    """
    column = torch.arange(parents.size(1), device=parents.device)
    with without_autocast(parents):
        # Each token is its own ancestor. Every product doubles the number of generations.
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


def lowest_common_ancestors(batch: TreeBatch) -> Tensor:
    """Finds the lowest node above two leaves, ``[B, N, N]`` int64: M if there is none, and for a leaf and itself."""
    covers = leaves_covered(batch)
    rows, num_nodes, num_leaves = covers.shape
    if num_nodes == 0:
        return torch.zeros(rows, num_leaves, num_leaves, dtype=torch.int64, device=covers.device)
    number = torch.arange(num_nodes, device=covers.device)
    key = batch.depth * num_nodes + number + 1  # B x M; 0 stands for no node
    both = covers & covers.roll(1, dims=2)
    # The common ancestors of each leaf and the leaf before it. The entry of the first leaf is not read.
    before = (both * key.unsqueeze(2)).amax(1)  # B x N
    column = torch.arange(num_leaves, device=covers.device)
    is_later, greatest = column > column[:, None], torch.iinfo(torch.int64).max
    lowest = before.unsqueeze(1).expand(-1, num_leaves, -1).masked_fill(~is_later, greatest).cummin(2).values
    lowest = torch.minimum(lowest, lowest.mT).masked_fill(column == column[:, None], 0)
    return torch.where(lowest > 0, (lowest - 1) % num_nodes, num_nodes)


def heights(batch: TreeBatch) -> Tensor:
    """Nodes on the longest path from each node down to a leaf, itself included: ``[B, M]`` int64, 0 at padding."""
    covers = leaves_covered(batch)
    levels = covers.sum(1).unsqueeze(1) - batch.depth.unsqueeze(2)  # of each leaf below each node: B x M x N
    return levels.masked_fill(~covers, 0).amax(2)


def leaf_relations(tables: Collection[str], batch: TreeBatch, limit: int, label_pad: int) -> dict[str, Tensor]:
    """Rows of the ``tables`` of a bias that are about trees, ``[B, N, N]`` each, by the names of ``BiasRows``.

    Distances and heights are at most ``limit``. Leaves without a common ancestor have the height ``limit``
    and the label ``label_pad``. A leaf and itself have the height 0 and that label.
    """
    found = {"tree": leaf_distances(leaves_covered(batch), limit)} if "tree" in tables else {}
    if "label" not in tables and "height" not in tables:
        return found
    ancestors = lowest_common_ancestors(batch)

    def of_ancestors(values: Tensor, otherwise: int) -> Tensor:
        padded = functional.pad(values, (0, 1), value=otherwise)
        return padded.gather(1, ancestors.flatten(1)).view_as(ancestors)

    if "label" in tables:
        found["label"] = of_ancestors(batch.label, label_pad)
    if "height" in tables:
        itself = torch.eye(ancestors.size(1), dtype=torch.bool, device=ancestors.device)
        found["height"] = of_ancestors(heights(batch).clamp(max=limit), limit).masked_fill(itself, 0)
    return found
