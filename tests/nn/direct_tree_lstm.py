"""LSTMs over trees, computed node by node from the papers' equations."""

from __future__ import annotations

import torch
from torch import Tensor

from tree_fairseq.nn.tree_lstm import TreeLSTM
from tree_fairseq.tree_positional.lstm_model import TopDownLSTM


def direct_tree_lstm(
    lstm: TreeLSTM, features: Tensor, parents: list[int], branches: list[int], node: int, states: dict
) -> None:
    """Tai et al. (2015), eqs. 9 to 14, for a node and all below it."""
    width, degree = lstm.hidden_dim, lstm.degree
    zero = features.new_zeros(width)
    below = dict.fromkeys(range(degree), (zero, zero))
    for child, parent in enumerate(parents):
        if parent == node:
            direct_tree_lstm(lstm, features, parents, branches, child, states)
            below[branches[child]] = states[child]
    w_i, w_o, w_u, w_f = lstm.from_features.weight.split(width)
    b_i, b_o, b_u, b_f = lstm.from_features.bias.split(width)
    # U_i, U_o, U_u and those of forget gates
    matrices = [list(weight.split(width)) for weight in lstm.from_children.weight]
    x, (u_i, u_o, u_u) = features[node], ([matrices[k][gate] for k in range(degree)] for gate in range(3))

    def of_children(weights: list[Tensor]) -> Tensor:
        return sum(weights[k] @ below[k][0] for k in range(degree))

    i = torch.sigmoid(w_i @ x + of_children(u_i) + b_i)
    o = torch.sigmoid(w_o @ x + of_children(u_o) + b_o)
    u = torch.tanh(w_u @ x + of_children(u_u) + b_u)
    c = i * u
    for k in range(degree):
        if lstm.full_forget_gates:
            seen = of_children([matrices[other][3 + k] for other in range(degree)])
        else:
            seen = matrices[k][3] @ below[k][0]
        c = c + torch.sigmoid(w_f @ x + seen + b_f) * below[k][1]
    states[node] = (o * torch.tanh(c), c)


def direct_attention(lstm: TopDownLSTM, h: Tensor, source: Tensor) -> Tensor:
    """e of a state ``[D]``, over the states ``[N, D]`` of a source."""
    weights = torch.stack([torch.exp(s @ lstm.query.weight @ h) for s in source])
    seen = sum(weight / weights.sum() * s for weight, s in zip(weights, source))
    w_1, w_2 = lstm.output.weight.split(len(h), dim=1)
    return torch.tanh(w_1 @ seen + w_2 @ h)


def direct_child(
    lstm: TopDownLSTM, state: tuple[Tensor, Tensor, Tensor], embedded: Tensor, branch: int
) -> tuple[Tensor, Tensor]:
    """(h, c) of the child on a branch of a node with (h, c, e), by torch's own cell."""
    h, c, e = state
    inputs = torch.cat([embedded, e])
    # Ours has the symbol, the state and e side by side.
    symbol, recurrent, fed = lstm.cells.weight[branch].tensor_split([len(embedded), len(embedded) + len(h)], dim=1)
    h, c = torch.lstm_cell(
        inputs[None],
        (h[None], c[None]),
        *_in_torch_s_order(torch.cat([symbol, fed], dim=1), recurrent),
        *_in_torch_s_order(lstm.cells.bias[branch], torch.zeros_like(lstm.cells.bias[branch])),
    )
    return h[0], c[0]


def _in_torch_s_order(*weights: Tensor) -> list[Tensor]:
    """Gates i, f, o, u as i, f, u, o."""
    return [torch.cat([weight.chunk(4)[gate] for gate in (0, 1, 3, 2)]) for weight in weights]
