"""Attention with a bias that is learned.

On a CPU, PyTorch's fused attention has no gradient of a bias. The function that takes its place keeps several tensors
of all pairs of tokens, ``[B, H, T, S]``, which long sentences pay for in time and memory. Here blocks of queries fit a
processor's cache, and their weights are computed again for the gradients (Rabe & Staats 2021, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

BLOCK = 1 << 20
"""Most weights of a block: 4 MB in single precision."""

_LEAST = 1 << 16
"""Weights of a sentence from which blocks are faster than all sentences at once (measured at 64 and 128 tokens)."""


def biased_attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, padding: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    """Scaled dot-product attention with an additive bias, ``[B, H, T, D / H]``; each query sees at least one key.

    Args:
        query: ``[B, H, T, D / H]``
        key: ``[B, H, S, D / H]``, as the values
        bias: ``[B, H, T, S]``, where the first two sizes may be 1; -inf where a query does not see a key
        padding: ``[B, S]``, true where a key is padding; None if ``bias`` has it
        dropout: of the weights
    """
    bias = bias.to(query.dtype)
    if _pays(query, key, bias, dropout):
        mask = None if padding is None else query.new_zeros(padding.shape).masked_fill(padding.bool(), float("-inf"))
        return _Blockwise.apply(query, key, value, bias, mask)
    if padding is not None:
        bias = bias.masked_fill(padding[:, None, None].bool(), float("-inf"))
    return functional.scaled_dot_product_attention(query, key, value, bias, dropout)


def _pays(query: Tensor, key: Tensor, bias: Tensor, dropout: float) -> bool:
    is_single = query.dtype in (torch.float32, torch.float64)
    learns = bias.requires_grad and torch.is_grad_enabled()
    is_long = query.size(1) * query.size(2) * key.size(2) >= _LEAST
    is_eager = query.device.type == "cpu" and not torch.compiler.is_compiling()
    return is_eager and is_single and learns and is_long and not dropout


class _Blockwise(torch.autograd.Function):
    """As :func:`biased_attention`, without dropout; ``mask`` ``[B, S]`` or None, -inf for padding, is added."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, bias: Tensor, mask: Tensor | None) -> Tensor:
        output = torch.empty_like(query)
        for row, places in _blocks(query, key):
            output[row, :, places] = _weights(query, key, bias, mask, row, places) @ value[row]
        ctx.save_for_backward(query, key, value, bias, mask, output)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, bias, mask, output = ctx.saved_tensors
        of_query, scale = torch.empty_like(query), query.size(3) ** -0.5
        of_key, of_value, of_bias = torch.zeros_like(key), torch.zeros_like(value), torch.zeros_like(bias)
        # Softmax: the gradient of a logit is its weight times the gradient of the weight less this mean of its query.
        mean = (gradient * output).sum(-1, keepdim=True)
        for row, places in _blocks(query, key):
            weights, own = _weights(query, key, bias, mask, row, places), gradient[row, :, places]
            of_value[row] += weights.mT @ own
            of_logits = (own @ value[row].mT).sub_(mean[row, :, places]).mul_(weights)  # H x block x S
            of_query[row, :, places] = (of_logits @ key[row]).mul_(scale)
            of_key[row] += (of_logits.mT @ query[row, :, places]).mul_(scale)
            of_bias[_of_row(bias, row), :, places] += of_logits.sum_to_size(bias.size(1), *of_logits.shape[1:])
        return of_query, of_key, of_value, of_bias, None


def _blocks(query: Tensor, key: Tensor) -> Iterator[tuple[int, slice]]:
    """Rows of the batch, each with runs of its queries."""
    batch, heads, length, _ = query.shape
    size = max(1, BLOCK // (heads * key.size(2)))
    for row in range(batch):
        for first in range(0, length, size):
            yield row, slice(first, first + size)


def _weights(query: Tensor, key: Tensor, bias: Tensor, mask: Tensor | None, row: int, places: slice) -> Tensor:
    """The weights of a block, ``[H, block, S]``."""
    own = bias[_of_row(bias, row), :, places]
    logits = torch.baddbmm(own, query[row, :, places], key[row].mT, alpha=query.size(3) ** -0.5)
    if mask is not None:
        logits += mask[row]
    return logits.softmax(-1)


def _of_row(bias: Tensor, row: int) -> int:
    return row if bias.size(0) > 1 else 0
