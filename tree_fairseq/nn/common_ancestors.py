"""The lowest common ancestors of all pairs of leaves, and the rows that a bias by distance reads of them.

Take the lowest common ancestor of each two neighbours. That of any two leaves is the highest of those of the neighbours
between them, so it comes from a running minimum over keys that have the depth of a node before its number.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor
from torch.nn import functional

from tree_fairseq.nn.distances import leaf_distances, leaves_covered
from tree_fairseq.nn.tree_batch import TreeBatch


def lowest_common_ancestors(batch: TreeBatch) -> Tensor:
    """The lowest node above both of two leaves, ``[B, N, N]`` int64; M if no node is, and for a leaf and itself."""
    covers = leaves_covered(batch)
    rows, num_nodes, num_leaves = covers.shape
    if num_nodes == 0:
        return torch.zeros(rows, num_leaves, num_leaves, dtype=torch.int64, device=covers.device)
    number = torch.arange(num_nodes, device=covers.device)
    key = batch.depth * num_nodes + number + 1  # B x M; 0 stands for no node
    both = covers & covers.roll(1, dims=2)
    # Of each leaf and the one before it. The first leaf has none before it, and its entry is not read.
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
