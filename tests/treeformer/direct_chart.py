"""The chart as the paper's algorithm 1 has it: for every length, for every start, for every split."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def encode(tokens: Tensor, weight: Tensor, query: Tensor, height: int) -> dict[tuple[int, int], Tensor]:
    """Vectors of all phrases of one sentence.

    Args:
        tokens: ``[n, D]``
        weight: ``[G, D, 2 * D]``, one W or one for each length from 2 on
        query: ``[H, D]``, one q a head; a head pools its slice of the children
        height: of the longest phrases

    Returns:
        (start, length) to ``[D]``
    """
    return _levels(tokens, weight, query, height)[0]


def split_weights(tokens: Tensor, weight: Tensor, query: Tensor, height: int) -> dict[tuple[int, int], Tensor]:
    """(start, length) of phrases to ``[H, length - 1]``, how much each split counts; see :func:`encode`."""
    return _levels(tokens, weight, query, height)[1]


def _levels(tokens, weight, query, height):
    n, width = tokens.shape
    heads = len(query)
    encoded = {(start, 1): tokens[start] for start in range(n)}
    weights = {}
    for length in range(2, min(height, n) + 1):
        matrix = weight[min(length - 2, len(weight) - 1)]
        for start in range(n - length + 1):
            pairs, composed, scores = [], [], []
            for split in range(1, length):
                pairs.append(torch.cat([encoded[start, split], encoded[start + split, length - split]]))
                composed.append(matrix @ pairs[-1])
                scores.append(query @ composed[-1] / math.sqrt(width))
            shares = torch.stack(scores, dim=1).softmax(-1)  # H x splits
            weights[start, length] = shares
            if heads == 1:
                encoded[start, length] = sum(share * vector for share, vector in zip(shares[0], composed))
            else:
                # A head pools a slice of the children, so that pooling comes before composing.
                spread = shares.repeat_interleave(width // heads, dim=0)  # D x splits
                encoded[start, length] = matrix @ sum(spread[:, k].repeat(2) * pair for k, pair in enumerate(pairs))
    return encoded, weights
