"""Computes the chart by a gather of the children of all splits of a level, a first version for GPUs."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional


def encode(states: Tensor, weight: Tensor, query: Tensor, height: int, project_once: bool) -> Tensor:
    """Computes the vectors of all phrases of sentences without padding.

    Args:
        states: ``[N, B, D]`` of tokens
        weight: ``[D, 2 * D]``
        query: ``[D]``
        height: length of the longest phrases, at most N
        project_once: multiply each cell once by both halves of the matrix and gather the products, as section 3.2 of
            the paper suggests; otherwise gather the cells and multiply every pair of them

    Returns:
        ``[B, C, D]``, shorter phrases first, from left to right
    """
    columns, _, width = states.shape
    device = states.device

    def ready(level: Tensor) -> Tensor:
        if not project_once:
            return level
        return torch.cat([level @ weight[:, :width].t(), level @ weight[:, width:].t()], dim=-1)

    levels = [states.transpose(0, 1)]  # B x N x D
    operands = ready(levels[0])  # B x cells so far x D, or 2 * D
    offsets = torch.zeros(1, dtype=torch.long, device=device)  # of each level among the cells
    for length in range(2, height + 1):
        start = torch.arange(columns - length + 1, device=device).unsqueeze(1)
        split = torch.arange(1, length, device=device)
        left = operands[:, offsets[split - 1] + start]  # B x cells x splits x D, or 2 * D
        right = operands[:, offsets[length - split - 1] + start + split]
        if project_once:
            composed = left[..., :width] + right[..., width:]
        else:
            composed = functional.linear(torch.cat([left, right], dim=-1), weight)
        shares = (composed @ query / math.sqrt(width)).softmax(-1)
        levels.append((shares.unsqueeze(-1) * composed).sum(2))
        offsets = torch.cat([offsets, offsets[-1:] + levels[-2].size(1)])
        operands = torch.cat([operands, ready(levels[-1])], dim=1)
    return torch.cat(levels, dim=1)
