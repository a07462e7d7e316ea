"""Tree positions straight from the paper: node by node, each from its parent by the operator of its branch."""

from __future__ import annotations

import math

import torch


def encode(places, n, k, decays, width):
    """The encodings of the nodes of one tree (Shiv & Quirk 2019, eqs. 1 to 3 and section 3.2).

    Args:
        places: for each node the number of its parent, which comes before it, and its branch; None for the root
        n: branches
        k: levels
        decays: ``[P]``, p; None for the parameter-free scheme
        width: D

    Returns:
        ``[nodes, n * k * P]``
    """
    if decays is None:
        decays, norm = torch.ones(1, dtype=torch.double), torch.ones(1, dtype=torch.double)
    else:
        norm = torch.sqrt(1 - decays**2)
    scale = norm * math.sqrt(width / 2)
    copies = []
    for p, factor in zip(decays, scale):
        stacks = []
        for place in places:
            if place is None:
                stacks.append(torch.zeros(n * k, dtype=decays.dtype))
            else:
                parent, branch = place
                stacks.append(push(stacks[parent], branch, n, p))
        copies.append(torch.stack(stacks) * factor)
    # Copies are the fastest axis.
    return torch.stack(copies, dim=-1).flatten(1)


def push(stack, branch, n, p):
    """D_i: the one-hot vector of the branch before the stack, which loses its oldest step and counts p times what it
    did.
    """
    step = torch.zeros(n, dtype=stack.dtype)
    step[branch] = 1
    return torch.cat([step, p * stack[:-n]])


def path(places, node):
    """The branches from a node up to its root."""
    steps = []
    while places[node] is not None:
        node, branch = places[node]
        steps.append(branch)
    return steps
