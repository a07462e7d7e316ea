"""N-ary Tree-LSTM (Tai, Socher & Manning 2015) over a batch of trees, from the leaves up."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tree_fairseq.modules.branch_linear import BranchLinear, by_branch
from tree_fairseq.modules.tree_levels import TreeLevels


class TreeLSTM(nn.Module):
    r"""States of all nodes of trees whose children stand on n branches (Tai et al. 2015, eqs. 9 to 14).

    For a node with features x and the child (h_k, c_k) on branch k, zero where it is missing::

        i = σ(W_i x + Σ_l U_il h_l + b_i)      f_k = σ(W_f x + Σ_l U_fkl h_l + b_f)
        o = σ(W_o x + Σ_l U_ol h_l + b_o)      c = i ⊙ u + Σ_k f_k ⊙ c_k
        u = tanh(W_u x + Σ_l U_ul h_l + b_u)   h = o ⊙ tanh(c)

    All nodes of a level are computed together, the deepest level first.

    Args:
        input_dim: width I of the features
        hidden_dim: width D of the states
        degree: number of branches n
        full_forget_gates: whether the gate of a child looks at its siblings too; otherwise U_fkl is zero for k ≠ l, as the
            paper proposes for large n. True for binary trees where left out
    """

    def __init__(self, input_dim: int, hidden_dim: int, degree: int, full_forget_gates: bool | None = None):
        super().__init__()
        self.hidden_dim, self.degree = hidden_dim, degree
        self.full_forget_gates = degree <= 2 if full_forget_gates is None else full_forget_gates
        self.from_features = nn.Linear(input_dim, 4 * hidden_dim)
        num_forget_gates = degree if self.full_forget_gates else 1
        self.from_children = BranchLinear(degree, hidden_dim, (3 + num_forget_gates) * hidden_dim, bias=False)

    def forward(self, features: Tensor, parents: Tensor, branches: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Encodes all nodes.

        Args:
            features: ``[B, N, I]``
            parents: ``[B, N]`` int64, column of each node's parent, which is a node; -1 for roots
            branches: ``[B, N]`` int64, branch of each node under its parent, less than n; -1 for roots
            mask: ``[B, N]`` bool, which columns hold nodes

        Returns:
            h and c, each ``[B, N, D]``; zero where there is no node
        """
        levels = TreeLevels.of(parents, branches, mask, self.degree)
        gates = self.from_features(levels.take(features)).split(levels.sizes)
        branches_by_level = levels.branches.split(levels.sizes)
        layers, states, children = self.from_children.layers(), [], None
        for level in reversed(range(len(gates))):
            h, c = self._level(gates[level], children, layers)
            states.append((h, c))
            children = (h, c, levels.above[level], branches_by_level[level], levels.branch_sizes[level])
        if not states:
            nothing = features.new_zeros(*mask.shape, self.hidden_dim)
            return nothing, nothing
        h, c = (torch.cat(kind) for kind in zip(*reversed(states)))
        return levels.put(h), levels.put(c)

    def _level(self, gates: Tensor, children: tuple | None, layers: list) -> tuple[Tensor, Tensor]:
        """h and c of a level from what its features say, ``[nodes, 4 D]``, and the level below."""
        width = self.hidden_dim
        if children is None:
            i, o, u = gates[:, : 3 * width].chunk(3, dim=1)
            c = i.sigmoid() * u.tanh()
            return o.sigmoid() * c.tanh(), c
        h_below, c_below, above, branch, sizes = children
        terms = by_branch(h_below, sizes, layers)  # children x (3 + gates) D
        # Sums begin at zero: two summands then give the same in any order, whatever the device does.
        sums = terms.new_zeros(len(gates), terms.size(1) if self.full_forget_gates else 3 * width)
        sums = sums.index_add(0, above, terms[:, : sums.size(1)])
        i, o, u = (gates[:, : 3 * width] + sums[:, : 3 * width]).chunk(3, dim=1)
        if self.full_forget_gates:
            forget = sums[:, 3 * width :].reshape(-1, width)[above * self.degree + branch]
        else:
            forget = terms[:, 3 * width :]
        forget = (gates[:, 3 * width :][above] + forget).sigmoid()
        kept = torch.zeros_like(i).index_add(0, above, forget * c_below)
        c = i.sigmoid() * u.tanh() + kept
        return o.sigmoid() * c.tanh(), c
