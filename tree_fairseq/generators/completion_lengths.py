"""How many symbols a subtree may have, by the kind of slot that it fills.

A *kind* of slot says which symbols may stand there; the kinds of the slots that a symbol opens depend on the symbol alone.
The smallest and the largest subtree of each kind are fixed points over the kinds.
"""

from __future__ import annotations

import torch
from torch import Tensor

UNBOUNDED = 2**40
"""More symbols than any tree has; sums of a million of them still fit into 64 bits."""


def symbols_below(sizes: Tensor, child_kinds: Tensor, is_child: Tensor) -> Tensor:
    """How many symbols follow each symbol if each of its slots is filled by a subtree of its kind's size.

    Args:
        sizes: ``[Q]``, size of a subtree of each kind
        child_kinds: ``[V, n]``, kind of the slot on each branch
        is_child: ``[V, n]`` bool, branches that a symbol opens

    Returns:
        ``[V]`` int64
    """
    return (sizes[child_kinds] * is_child).sum(dim=1)


def smallest_subtrees(allowed: Tensor, child_kinds: Tensor, is_child: Tensor) -> Tensor:
    """Number of symbols of the smallest subtree of each kind.

    Args:
        allowed: ``[Q, V]`` bool, symbols that may fill a slot of each kind
        child_kinds, is_child: see :func:`symbols_below`

    Returns:
        ``[Q]`` int64; UNBOUNDED where no finite subtree exists
    """
    sizes = torch.full((len(allowed),), UNBOUNDED, device=allowed.device)
    while True:
        with_symbol = 1 + symbols_below(sizes, child_kinds, is_child)
        smaller = with_symbol.where(allowed, torch.tensor(UNBOUNDED)).amin(dim=1)
        smaller = smaller.clamp(max=UNBOUNDED)
        if torch.equal(smaller, sizes):
            return sizes
        sizes = smaller


def largest_subtrees(allowed: Tensor, child_kinds: Tensor, is_child: Tensor) -> Tensor:
    """Number of symbols of the largest subtree of each kind.

    The fixed point is approached from above: kinds below which none recurs become finite, one after the other, others never.

    Args:
        allowed: ``[Q, V]`` bool, symbols that may fill a slot of each kind and can be completed there
        child_kinds, is_child: see :func:`symbols_below`

    Returns:
        ``[Q]`` int64; UNBOUNDED where there is no largest, 0 where no symbol is allowed
    """
    sizes = torch.full((len(allowed),), UNBOUNDED, device=allowed.device)
    while True:
        with_symbol = 1 + symbols_below(sizes, child_kinds, is_child)
        larger = with_symbol.where(allowed, torch.tensor(0)).amax(dim=1).clamp(max=UNBOUNDED)
        if torch.equal(larger, sizes):
            return sizes
        sizes = larger


def next_surpluses(arities: list[int], length: int) -> Tensor:
    """Which numbers of symbols can follow beside the one that each open slot needs.

    Any forest that fills k slots with m symbols has m - k children in sum, and any arities with that sum, filled up with
    leaves, make one: m - k is a sum of arities, whatever k.

    Args:
        arities: of the symbols
        length: up to which surplus

    Returns:
        ``[length + 1]`` int64, for each number the least possible surplus that is not below it; UNBOUNDED if there is none
    """
    steps = sorted({arity for arity in arities if arity > 0})
    possible = [True]
    for surplus in range(1, length + 1 + max(steps, default=0)):
        possible.append(any(step <= surplus and possible[surplus - step] for step in steps))
    following, found = UNBOUNDED, []
    for surplus in range(len(possible) - 1, -1, -1):
        following = surplus if possible[surplus] else following
        found.append(following)
    return torch.tensor(found[::-1][: length + 1])
