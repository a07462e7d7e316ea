"""The insertion slots of partial trees as vectors of the nodes beside them (Lukovnikov & Fischer 2021, section 3.2.3).

A slot sees its immediate neighbours alone, each through a linear map of its own:

=================  =============================================================
slot of node u     sum of
=================  =============================================================
`DESCENDANT`       u as ancestor
`ANCESTOR`         u as descendant
`FIRST_CHILD`      u as parent, its first child as right neighbour
`NEXT_SIBLING`     u's parent as parent, u as left, its next sibling as right
                   neighbour, if it has one
=================  =============================================================
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.data.insertion_batch import existing_slots
from tree_fairseq.modules.preorder_trees import PreorderTrees
from tree_fairseq.trees.insertion import ANCESTOR, DESCENDANT, FIRST_CHILD, KINDS, NEXT_SIBLING

ROLES = 5
AS_ANCESTOR, AS_DESCENDANT, AS_PARENT, AS_LEFT, AS_RIGHT = range(ROLES)
_NOBODY = -1
# The roles in which a slot sees up to three nodes (`neighbours`), by its kind; where it sees nobody, any.
_SEEN_AS = {
    DESCENDANT: (AS_ANCESTOR, 0, 0), ANCESTOR: (AS_DESCENDANT, 0, 0), FIRST_CHILD: (AS_PARENT, AS_RIGHT, 0),
    NEXT_SIBLING: (AS_PARENT, AS_LEFT, AS_RIGHT),
}  # fmt: skip


class InsertionSlots(nn.Module):
    """Vectors of all slots of a batch.

    Args:
        width: D
    """

    def __init__(self, width: int):
        super().__init__()
        self.maps = nn.Linear(width, ROLES * width)
        for matrix in self.maps.weight.split(width):
            nn.init.xavier_uniform_(matrix)
        nn.init.zeros_(self.maps.bias)
        self.register_buffer("roles", torch.tensor([_SEEN_AS[kind] for kind in range(KINDS)]), persistent=False)

    def forward(self, states: Tensor, trees: PreorderTrees) -> tuple[Tensor, Tensor]:
        """Adds up the neighbours of the slots.

        Args:
            states: ``[B, N, D]`` of the nodes
            trees: of the B rows

        Returns:
            numbers of the Z slots that there are, ``[Z]`` int64, ascending: slot of kind k of node i in row b is
            ``4 · (N · b + i) + k``; and their vectors, ``[Z, D]``
        """
        slots = existing_slots(trees.parents, trees.is_node).flatten().nonzero().squeeze(1)
        nodes = trees.is_node.flatten().nonzero().squeeze(1)
        mapped = self.maps(states.flatten(0, 1).index_select(0, nodes)).view(-1, states.size(2))  # nodes * 5 x D
        # Row 0 is nobody, and is left out of sums.
        mapped = functional.pad(mapped, (0, 0, 1, 0))
        rank = trees.is_node.flatten().cumsum(0) - 1
        node = neighbours(trees).view(-1, self.roles.size(1)).index_select(0, slots)  # Z x 3
        role = self.roles.index_select(0, slots % KINDS)
        rows = (rank[node.clamp(min=0)] * ROLES + role + 1).masked_fill(node == _NOBODY, 0)
        return slots, functional.embedding_bag(rows, mapped, mode="sum", padding_idx=0)


def neighbours(trees: PreorderTrees) -> Tensor:
    """Which nodes the slots see; as what, :class:`InsertionSlots` knows of each kind.

    Returns:
        ``[B, N, 4, 3]`` int64: of each slot up to three nodes, as places in the flattened ``[B * N]`` nodes or -1; of slots that
        there are not, anything
    """
    batch, width = trees.parents.shape
    parents = trees.parents
    own = trees.places.expand(batch, width)
    nobody = own.new_full((1, 1), _NOBODY).expand(batch, width)
    # The next sibling stands where the subtree ends, if the node there has the same parent.
    following = trees.ends.clamp(max=width - 1)
    has_next = (trees.ends < width) & (parents.gather(1, following) == parents)
    seen_by = {
        DESCENDANT: (own, nobody, nobody),
        ANCESTOR: (own, nobody, nobody),
        FIRST_CHILD: (own, (own + 1).clamp(max=width - 1), nobody),
        NEXT_SIBLING: (parents, own, following.masked_fill(~has_next, _NOBODY)),
    }
    nodes = torch.stack([node for kind in range(KINDS) for node in seen_by[kind]], dim=2)
    first = width * torch.arange(batch, device=own.device).view(-1, 1, 1)
    return (nodes + first).masked_fill(nodes == _NOBODY, _NOBODY).unflatten(2, (KINDS, -1))
