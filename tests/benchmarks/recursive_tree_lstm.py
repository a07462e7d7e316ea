"""The Tree-LSTM as it is usually written: one call for each node, children first."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.nn.tree_lstm import TreeLSTM

State = tuple[Tensor, Tensor]


class RecursiveTreeLSTM(nn.Module):
    """Computes the same as a Tree-LSTM, with its weights, one node at a time.

    The products with the features are computed for all nodes at once, and all gates of a node in one product for each
    child. Otherwise a node would take several times as long.
    """

    def __init__(self, lstm: TreeLSTM):
        super().__init__()
        self.lstm = lstm

    def forward(
        self, features: Tensor, parents: Tensor, branches: Tensor, mask: Tensor, sizes: np.ndarray | None = None
    ) -> State:
        """Computes :meth:`TreeLSTM.forward` on the CPU, without the ``sizes`` of levels.

        Reads features ``[B, N, I]``, parents and branches ``[B, N]`` int64 and a mask ``[B, N]``. Returns h and c, each
        ``[B, N, D]``, with zeros at positions without a node.
        """
        layers = self.lstm.from_children.layers()
        nothing = features.new_zeros(self.lstm.hidden_dim)
        gates = self.lstm.from_features(features)
        rows = []
        for row, *tree in zip(gates.unbind(0), parents.tolist(), branches.tolist(), mask.tolist()):
            states = _Recursion(self.lstm.hidden_dim, row.unbind(0), layers, *tree).run()
            rows.append([states.get(column, (nothing, nothing)) for column in range(len(row))])
        h, c = (torch.stack([torch.stack([state[kind] for state in row]) for row in rows]) for kind in (0, 1))
        return h, c


class _Recursion:
    """One tree, or several over the same columns.

    ``gates`` are ``[4 D]`` of each column, from its features; ``layers`` the weights ``[5 D, D]`` of each branch.
    """

    def __init__(
        self,
        width: int,
        gates: tuple[Tensor, ...],
        layers: list,
        parents: list[int],
        branches: list[int],
        mask: list[bool],
    ):
        self.width, self.gates, self.layers, self.branches = width, gates, layers, branches
        self.roots: list[int] = []
        self.children: dict[int, list[int]] = defaultdict(list)
        for column, parent in enumerate(parents):
            if mask[column]:
                (self.roots if parent < 0 else self.children[parent]).append(column)
        self.states: dict[int, State] = {}

    def run(self) -> dict[int, State]:
        """Returns h and c of each column that holds a node."""
        for root in self.roots:
            self._node(root)
        return self.states

    def _node(self, column: int) -> State:
        """Computes equations 9 to 14 of Tai et al. (2015)."""
        width, gates = self.width, self.gates[column]
        below = [(self._node(child), self.branches[child]) for child in self.children.get(column, ())]
        inputs, kept = gates[: 3 * width], 0
        if below:
            seen = sum(functional.linear(h, self.layers[branch][0]) for (h, _), branch in below)
            inputs = inputs + seen[: 3 * width]
            for (_, c), branch in below:
                forget = gates[3 * width :] + seen[(3 + branch) * width : (4 + branch) * width]
                kept = kept + forget.sigmoid() * c
        i, o, u = inputs.chunk(3)
        c = i.sigmoid() * u.tanh() + kept
        self.states[column] = o.sigmoid() * c.tanh(), c
        return self.states[column]
