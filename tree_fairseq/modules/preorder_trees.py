"""Trees whose nodes stand in preorder, as a batch: what their parents say about depths, subtrees and siblings.

B is the number of trees, N of nodes of the largest one; nodes are padded on the right.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class PreorderTrees:
    """The nodes of B trees. Padding nodes are trees of their own.

    Attributes:
        parents: ``[B, N]`` int64 places of the parents, -1 for roots and padding
        is_node: ``[B, N]`` bool, false at padding
        depths: ``[B, N]`` int64, edges to the root
        ends: ``[B, N]`` int64, first place after the subtree of each node
        dominates: ``[B, N, N]`` bool, node j belongs to the subtree of node i, i included
    """

    parents: Tensor
    is_node: Tensor
    depths: Tensor
    ends: Tensor
    dominates: Tensor

    @classmethod
    def of(cls, parents: Tensor, is_node: Tensor) -> PreorderTrees:
        """Works out what the parents say, without a loop over rows or nodes.

        Args:
            parents: ``[B, N]`` int64, each before its children
            is_node: ``[B, N]`` bool, false at padding
        """
        places = torch.arange(parents.size(1), device=parents.device)
        is_later = places > places.unsqueeze(1)  # i x j
        # A subtree ends before the next node whose parent stands before its root.
        is_outside = is_later & (parents.unsqueeze(1) < places.unsqueeze(1))
        ends = torch.where(is_outside, places, parents.size(1)).amin(2)
        dominates = (places >= places.unsqueeze(1)) & (places < ends.unsqueeze(2))
        return cls(parents, is_node, dominates.sum(1) - 1, ends, dominates)

    @functools.cached_property
    def places(self) -> Tensor:
        """``[N]`` int64, 0 to N - 1."""
        return torch.arange(self.parents.size(1), device=self.parents.device)

    @functools.cached_property
    def is_inner(self) -> Tensor:
        """``[B, N]`` bool, which nodes have children."""
        return self.ends > self.places + 1

    @functools.cached_property
    def ranks(self) -> Tensor:
        """``[B, N]`` int64, how many siblings each node has before it."""
        are_siblings = self.parents.unsqueeze(2) == self.parents.unsqueeze(1)
        return are_siblings.tril(-1).sum(2)
