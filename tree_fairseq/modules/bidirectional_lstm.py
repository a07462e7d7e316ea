"""A bidirectional LSTM over padded texts, in time linear in their length."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

_WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def last_states(lstm: nn.LSTM, texts: Tensor, lengths: Tensor) -> Tensor:
    """The last state of each direction in the upper layer, as torch has them for packed sequences.

    On CPUs the backward pass of a packed sequence takes quadratic time: each step returns a gradient that is as large as the
    inputs of all steps. Documents have thousands.

    Args:
        lstm: bidirectional, with biases
        texts: ``[N, B, D]``, padded at the end
        lengths: ``[B]`` int64, 1 or more

    Returns:
        ``[B, 2 H]``, forward and backward
    """
    if texts.device.type != "cpu":
        return packed_last_states(lstm, texts, lengths)
    num_steps, rows = len(texts), torch.arange(len(lengths), device=texts.device)
    backward = (lengths - 1 - torch.arange(num_steps, device=texts.device).unsqueeze(1)).clamp(min=0)  # N x B
    start = texts.new_zeros(1, len(lengths), lstm.hidden_size)

    def turn(states: Tensor) -> Tensor:
        return states.gather(0, backward.unsqueeze(2).expand_as(states))

    for layer in range(lstm.num_layers):
        if layer:
            texts = functional.dropout(texts, lstm.dropout, lstm.training)
        directions = []
        for suffix, inputs in (("", texts), ("_reverse", turn(texts))):
            weights = [getattr(lstm, f"{name}_l{layer}{suffix}") for name in _WEIGHTS]
            directions.append(torch.lstm(inputs, (start, start), weights, True, 1, 0.0, lstm.training, False, False)[0])
        ahead, behind = directions
        texts = torch.cat([ahead, turn(behind)], dim=2)  # N x B x 2H
    return torch.cat([states[lengths - 1, rows] for states in directions], dim=1)


def packed_last_states(lstm: nn.LSTM, texts: Tensor, lengths: Tensor) -> Tensor:
    """The same by torch's own packed sequences, which are fast where a device has a kernel for them; arguments as above."""
    packed = nn.utils.rnn.pack_padded_sequence(texts, lengths.cpu(), enforce_sorted=False)
    last = lstm(packed)[1][0].view(lstm.num_layers, 2, len(lengths), lstm.hidden_size)
    return torch.cat([last[-1, 0], last[-1, 1]], dim=1)
