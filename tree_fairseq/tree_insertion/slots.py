"""Slots of partial trees: what they see of the nodes, and their vectors (Lukovnikov & Fischer 2021, section 3.2).

A slot sees only its immediate neighbours, each in a role (section 3.2.3):

=================  =============================================================
slot of node u     neighbours
=================  =============================================================
`DESCENDANT`       u as ancestor
`ANCESTOR`         u as descendant
`FIRST_CHILD`      u as parent, its first child as right neighbour
`NEXT_SIBLING`     u's parent as parent, u as left and, if it has one, its next
                   sibling as right neighbour
=================  =============================================================

In the paper a slot is a token of the decoder, which goes through all layers (:class:`SlotTokens`,
``--as-published``). By default its vector is a sum of linear maps of its neighbours' last states
(:class:`SlotVectors`), so that the layers have nodes alone, about a quarter of the positions.

n is the number of all nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.tree_insertion.target import ANCESTOR, DESCENDANT, FIRST_CHILD, KINDS, NEXT_SIBLING
from tree_fairseq.tree_insertion.tree_shapes import NO_NEIGHBOUR, ROLES

_TOKENS = {DESCENDANT: 0, ANCESTOR: 1, FIRST_CHILD: 2, NEXT_SIBLING: 2}  # the tokens v, ^ and - of the kinds of slots


class SlotVectors(nn.Module):
    """Vectors of all slots of a batch, of width D."""

    def __init__(self, width: int):
        super().__init__()
        self.maps = nn.Linear(width, ROLES * width)
        for matrix in self.maps.weight.split(width):
            nn.init.xavier_uniform_(matrix)
        nn.init.zeros_(self.maps.bias)

    def forward(self, states: Tensor, neighbours: Tensor) -> Tensor:
        """Adds up the mapped states ``[n, D]`` of the neighbours ``[Z, 3]`` of each slot; returns ``[Z, D]``.

        See :func:`tree_fairseq.tree_insertion.tree_shapes.slot_neighbours`.
        """
        mapped = self.maps(states).view(-1, states.size(1))  # (n, 5 D) -> (5 n, D)
        return functional.embedding_bag(neighbours, mapped, mode="sum", padding_idx=NO_NEIGHBOUR)


@dataclass(frozen=True)
class SlotNeighbours:
    """The neighbours that slots attend to in a layer, as states that its self-attention reads, ``[n, 1, D]``."""

    states: Tensor  # of all nodes
    # node, role: ``[Z, 3]`` int64, the neighbours and how the slot sees them
    node: Tensor
    role: Tensor
    missing: Tensor  # ``[Z, 3]`` bool, where a slot has fewer
    # keys, values: ``[5, D / H]``, added to keys and values of neighbours in each role
    keys: Tensor
    values: Tensor


class SlotTokens(nn.Module):
    """Slots as tokens of the decoder, as in the paper: each kind has a vector, and each role of a neighbour a relation.

    In every layer slots attend to their neighbours, then to the source, and have the layer's feed-forward part. No node
    sees them, so the nodes are what they are without slots (sections 3.2.2 and 3.2.3).
    """

    def __init__(self, width: int, head_dim: int):
        super().__init__()
        self.embed = nn.Parameter(torch.empty(_TOKENS[NEXT_SIBLING] + 1, width))
        self.keys, self.values = (nn.Parameter(torch.empty(ROLES, head_dim)) for _ in range(2))
        for table in (self.embed, self.keys, self.values):
            nn.init.normal_(table, std=table.size(1) ** -0.5)
        self.register_buffer("token_of", torch.tensor([_TOKENS[kind] for kind in range(KINDS)]), persistent=False)

    def tokens(self, slots: Tensor) -> Tensor:
        """The tokens of slots ``[Z]``, from 0."""
        return self.token_of[slots % KINDS]

    def neighbours(self, states: Tensor, neighbours: Tensor) -> SlotNeighbours:
        """Returns what slots with neighbours ``[Z, 3]`` see of nodes, whose states in a layer are ``[n, 1, D]``."""
        node, role = neighbours // ROLES, neighbours % ROLES
        return SlotNeighbours(states, node, role, neighbours == NO_NEIGHBOUR, self.keys, self.values)
