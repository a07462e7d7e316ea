"""The chart as the paper's algorithm 1 has it: for every length, for every start, for every split."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def encode(tokens: Tensor, weight: Tensor, query: Tensor, height: int) -> dict[tuple[int, int], Tensor]:
    """Vectors of all phrases of one sentence.

    Args:
        tokens: ``[n, D]``
        weight: ``[D, 2 * D]``
        query: ``[D]``
        height: of the longest phrases

    Returns:
        (start, length) to ``[D]``
    """
    return _levels(tokens, weight, query, height)[0]


def split_weights(tokens: Tensor, weight: Tensor, query: Tensor, height: int) -> dict[tuple[int, int], Tensor]:
    """(start, length) of phrases to ``[length - 1]``, how much each split counts; see :func:`encode`."""
    return _levels(tokens, weight, query, height)[1]


def _levels(tokens, weight, query, height):
    n, width = tokens.shape
    encoded = {(start, 1): tokens[start] for start in range(n)}
    weights = {}
    for length in range(2, min(height, n) + 1):
        for start in range(n - length + 1):
            composed = [
                weight @ torch.cat([encoded[start, split], encoded[start + split, length - split]])
                for split in range(1, length)
            ]
            shares = torch.stack([query @ vector / math.sqrt(width) for vector in composed]).softmax(0)
            weights[start, length] = shares
            encoded[start, length] = sum(share * vector for share, vector in zip(shares, composed))
    return encoded, weights
