"""Paths of branches from nodes up to their roots, for all nodes of a batch at once."""

from __future__ import annotations

import logging

import torch
from torch import Tensor

logger = logging.getLogger(__name__)

_warned: set[int] = set()


def branch_paths(parents: Tensor, branches: Tensor, levels: int) -> Tensor:
    """The last steps on the way from the root to each node, the most recent one first (Shiv & Quirk 2019, eq. 1).

    Paths double: the steps 2^s to 2^(s+1) - 1 of a node are the first 2^s of its ancestor 2^s levels up.

    Args:
        parents: ``[B, N]`` int64, column of each node's parent; -1 for roots and for what belongs to no tree
        branches: ``[B, N]`` int64, branch of each node under its parent; -1 as above
        levels: steps that are kept, k; warns once where a tree is deeper

    Returns:
        ``[B, N, L]`` int16, branch of the node, of its parent, of its parent's parent, ...; -1 where the root was passed.
        L is at least 1 and no more than k or than the deepest node of the batch needs
    """
    paths = branches.to(torch.int16).unsqueeze(-1)  # B x N x L
    ancestors = parents  # B x N, L levels up
    while paths.size(-1) < levels and bool((ancestors >= 0).any()):
        here = ancestors.clamp(min=0)
        above = paths.gather(1, here.unsqueeze(-1).expand_as(paths))
        paths = torch.cat([paths, above.masked_fill(ancestors.unsqueeze(-1) < 0, -1)], dim=-1)
        ancestors = ancestors.gather(1, here).masked_fill(ancestors < 0, -1)
    depth = int((paths >= 0).any(0).any(0).sum())
    # Branches tell what is missing: the parent of a node that stands k levels deep is the root's, not forgotten.
    if depth > levels or bool((branches.gather(1, ancestors.clamp(min=0)) >= 0).logical_and(ancestors >= 0).any()):
        warn_of_depth(_deepest(parents), levels)
    return paths[..., : min(max(depth, 1), levels)]


def warn_of_depth(depth: int, levels: int) -> None:
    """Says, once a run, that trees are deeper than what positions remember.

    Args:
        depth: levels from the root to a node
        levels: steps that are kept
    """
    if levels not in _warned:
        _warned.add(levels)
        logger.warning(
            "a tree has a symbol %d levels below its root, and positions remember the last %d steps to it: earlier ones are "
            "forgotten (--tree-levels). This is said once.",
            depth,
            levels,
        )


def _deepest(parents: Tensor) -> int:
    depth, ancestors = 0, parents
    while bool((ancestors >= 0).any()):
        depth += 1
        ancestors = parents.gather(1, ancestors.clamp(min=0)).masked_fill(ancestors < 0, -1)
    return depth
