"""Attention with a learned bias, by blocks of queries, against attention query by query."""

from __future__ import annotations

import pytest
import torch

from tree_fairseq.nn import biased_attention as blockwise
from tree_fairseq.nn.biased_attention import biased_attention


def direct(query, key, value, bias, padding) -> torch.Tensor:
    """For each query, the softmax over keys of q k / sqrt(d) + b, times the values."""
    batch, heads, length, width = query.shape
    bias, outputs = bias.expand(batch, heads, length, key.size(2)), torch.empty_like(query)
    for b in range(batch):
        seen = torch.arange(key.size(2)) if padding is None else (~padding[b]).nonzero().squeeze(1)
        for h in range(heads):
            for i in range(length):
                logits = key[b, h, seen] @ query[b, h, i] / width**0.5 + bias[b, h, i, seen]
                outputs[b, h, i] = logits.softmax(0) @ value[b, h, seen]
    return outputs


def example(shape, queries, keys, biases, padded, seed=1):
    """Two rows of three heads; the first query sees only the first key."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*sizes):
        return torch.randn(*sizes, generator=generator, dtype=torch.float64, requires_grad=True)

    (batch, heads, width), padding = shape, None
    heads_of = [draw(batch, heads, length, width) for length in (queries, keys, keys)]
    bias = draw(*biases, queries, keys)
    hidden = torch.zeros(queries, keys).index_fill(0, torch.tensor([0]), -torch.inf)
    hidden[:, 0] = 0
    if padded:
        padding = torch.zeros(batch, keys, dtype=torch.bool)
        padding[0, keys // 2 :] = True
    return (*heads_of, bias), hidden, padding, draw(batch, heads, queries, width).detach()


@pytest.mark.parametrize("block", [1, 3 * 7 * 2, 1 << 20], ids=["one query", "two queries", "all queries"])
@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("biases", [(1, 3), (2, 3), (2, 1)])
def test_blocks_equal_attention_query_by_query(monkeypatch, biases, padded, block):
    monkeypatch.setattr(blockwise, "_LEAST", 0)
    monkeypatch.setattr(blockwise, "BLOCK", block)
    inputs, hidden, padding, weights = example((2, 3, 4), 5, 7, biases, padded)
    results = []
    for attend in (biased_attention, direct):
        output = attend(*inputs[:3], inputs[3] + hidden, padding)
        results.append((output, *torch.autograd.grad((output * weights).sum(), inputs)))
    for got, expected in zip(*results):
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
def test_long_and_short_sentences_are_computed_alike(padded):
    inputs, hidden, padding, weights = example((2, 3, 4), 160, 170, (1, 3), padded)
    assert 3 * 160 * 170 >= blockwise._LEAST
    results = []
    # Dropout of nearly no weight takes PyTorch's attention.
    for dropout in (0.0, 1e-12):
        output = biased_attention(*inputs[:3], inputs[3] + hidden, padding, dropout)
        results.append((output, *torch.autograd.grad((output * weights).sum(), inputs)))
    for got, expected in zip(*results):
        torch.testing.assert_close(got, expected)


def test_long_sentences_keep_no_weights_for_the_gradients():
    inputs, hidden, _, _ = example((4, 2, 8), 200, 200, (1, 2), padded=False)
    kept = []
    bias = inputs[3] + hidden
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.numel()) or tensor, lambda it: it):
        biased_attention(*inputs[:3], bias)
    assert kept and max(kept) == bias.numel() < 4 * 2 * 200 * 200
