r"""Relations between the nodes of a tree (Lukovnikov & Fischer 2021, section 3.2.1), for all pairs of a batch at once.

The way from node i to node j goes ``up`` to below their lowest common ancestor, ``across`` its children and ``down`` again; where
one is the ancestor of the other it only goes up or down. From a parent to its child and back there is no such way but the relation
"k-th child" or "k-th child of". Numbers from 9 on are one. With A(k, j) = "j belongs to the subtree of k", lowest common ancestors
and the branches below them are counted by products of matrices:

    common ancestors (i, j) = sum_k A(k, i) A(k, j)
    rank of i's branch (i, j) = sum_k rank_k A(k, i) (A(parent of k, j) - A(k, j))

since of the ancestors of i exactly the branch's root is not above j while its parent is.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.modules.preorder_trees import PreorderTrees

STEPS = 10
"""Numbers that are told apart, 0 to 9."""

# Rows of the tables: a row of zeros, then one for each number and kind of relation.
NOTHING = 0
UP = 1
DOWN = UP + STEPS
ACROSS = DOWN + 2 * STEPS - 1  # 0 steps across; those to the left stand before, those to the right after it
CHILD = ACROSS + STEPS
CHILD_OF = CHILD + STEPS
_END = CHILD_OF + STEPS


def pair_relations(trees: PreorderTrees, child_relations: bool = True) -> Tensor:
    """What is between each two nodes.

    Args:
        trees: of B rows and N nodes
        child_relations: false gives parents and children ways like all others, an ablation

    Returns:
        ``[3, B, N, N]`` int64 rows of the tables, whose sum stands for the way from node i to node j; of pairs with padding any
    """
    up, down, across = _ways(trees)
    is_child, is_parent = (up == 0) & (down == 1), (up == 1) & (down == 0)
    crosses = (up > 0) & (down > 0)
    # Of a way across, the step over the branches is neither up nor down.
    most = STEPS - 1
    rows = [
        UP + (up - crosses.long()).clamp(0, most),
        DOWN + (down - crosses.long()).clamp(0, most),
        ACROSS + across.masked_fill(~crosses, 0).clamp(-most, most),
    ]
    if child_relations:
        ranks = trees.ranks.clamp(max=most)
        is_family = is_child | is_parent
        family = torch.where(is_child, CHILD + ranks.unsqueeze(1), CHILD_OF + ranks.unsqueeze(2))
        rows = [torch.where(is_family, family, rows[0]), *(row.masked_fill(is_family, NOTHING) for row in rows[1:])]
    return torch.stack(rows)


def _ways(trees: PreorderTrees) -> tuple[Tensor, Tensor, Tensor]:
    """Edges from i up to and from there down to j, and the difference of ranks of their branches; each ``[B, N, N]`` int64."""
    parents = trees.parents.clamp(min=0).unsqueeze(2).expand_as(trees.dominates)
    # Counts are exact in single precision; half precision would round them.
    with torch.autocast(trees.parents.device.type, enabled=False):
        dominates = trees.dominates.float()
        common = (dominates.transpose(1, 2) @ dominates).long()  # i x j
        is_branch = dominates.gather(1, parents) - dominates
        branch_ranks = ((dominates * trees.ranks.unsqueeze(2)).transpose(1, 2) @ is_branch).long()
    levels = trees.depths + 1
    return levels.unsqueeze(2) - common, levels.unsqueeze(1) - common, branch_ranks.transpose(1, 2) - branch_ranks


@dataclass(frozen=True)
class PairRelations:
    """The relations of a batch as attention reads them, R kinds of them.

    Attributes:
        rows: ``[3, B, N, N]`` int64, of :func:`pair_relations`
        keys: ``[R, D / H]``, embeddings that are added to keys; row 0 is zero
        values: ``[R, D / H]``, those that are added to values
        padding: ``[B, N]`` bool, true at padding
    """

    rows: Tensor
    keys: Tensor
    values: Tensor
    padding: Tensor


class TreeRelations(nn.Module):
    """Embeddings of relations, separate ones for keys and for values, shared by all layers and heads (eq. 3).

    Args:
        head_dim: D / H
        child_relations: as :func:`pair_relations` has it
    """

    def __init__(self, head_dim: int, child_relations: bool = True):
        super().__init__()
        self.child_relations = child_relations
        count = (_END if child_relations else CHILD) - 1
        self.keys, self.values = (nn.Parameter(torch.empty(count, head_dim)) for _ in range(2))
        for table in (self.keys, self.values):
            nn.init.normal_(table, std=head_dim**-0.5)

    def forward(self, trees: PreorderTrees) -> PairRelations:
        """The relations of all pairs of nodes."""
        rows = pair_relations(trees, self.child_relations)
        keys, values = (functional.pad(table, (0, 0, 1, 0)) for table in (self.keys, self.values))
        return PairRelations(rows, keys, values, ~trees.is_node)
