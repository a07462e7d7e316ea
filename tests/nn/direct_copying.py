"""The mixture of generating and copying, written from its equation with loops: the twin of the fast one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tests.nn.tiny import PAD
from tree_fairseq.data_bin.symbol_dictionary import texts_of


def direct_mixture(
    logits: Tensor, weights: Tensor, gate: Tensor, source: Sequence[Sequence[str | None]], target: Sequence[str | None]
) -> Tensor:
    """Probabilities ``[R, T, V]``: p P_vocab(y), and (1 - p) a_i for the symbols of the text of each token.

    Symbols with the same text share it as P_vocab would generate them. What no symbol has is generated.

    Args:
        logits, weights, gate: ``[R, T, V]``, ``[R, T, N]`` and ``[R, T, 1]``
        source: the text of each token of the R sources; None for none
        target: the text of each of the V symbols
    """
    rows = []
    for row, texts in enumerate(source):
        columns = []
        for column in range(logits.size(1)):
            generated = logits[row, column].exp() / logits[row, column].exp().sum()
            p = 1 / (1 + (-gate[row, column, 0]).exp())
            mixed = [p * generated[symbol] for symbol in range(len(target))]
            for token, text in enumerate(texts):
                mass = (1 - p) * weights[row, column, token]
                symbols = [symbol for symbol, other in enumerate(target) if text is not None and text == other]
                for symbol in symbols or range(len(target)):
                    among = sum(generated[other] for other in (symbols or range(len(target))))
                    mixed[symbol] = mixed[symbol] + mass * generated[symbol] / among
            columns.append(torch.stack(mixed))
        rows.append(torch.stack(columns))
    return torch.stack(rows)


def direct_copying(model, states: Tensor, memory: Tensor, tokens: Tensor, *embedded: Tensor) -> Tensor:
    """Probabilities ``[R, T, V]`` of a model whose pointer is one head of attention.

    Args:
        states, memory: ``[R, T, D]`` of the decoder and ``[R, N, D']`` of the encoder
        tokens: ``[R, N]``, the sources
        embedded: ``[R, T, D]``, the symbols before those of the states, if the gate sees them
    """
    weights = dict(model.decoder.pointer.attention.named_parameters())

    def projected(name: str, vectors: Tensor) -> Tensor:
        return vectors @ weights[f"{name}_proj.weight"].T + weights[f"{name}_proj.bias"]

    query, key, value = projected("q", states), projected("k", memory), projected("v", memory)
    scores = (query @ key.transpose(1, 2) / query.size(2) ** 0.5).exp() * ~tokens.eq(PAD)[:, None]  # R x T x N
    attention = scores / scores.sum(2, keepdim=True)
    gate = model.decoder.pointer.gate(torch.cat([projected("out", attention @ value), states, *embedded], 2))
    words, symbols = texts_of(model.encoder.dictionary), texts_of(model.decoder.dictionary)
    source = [[words[token] for token in row] for row in tokens.tolist()]
    return direct_mixture(model.decoder.output_layer(states), attention, gate, source, symbols)


def assert_equal_gradients(fast: Tensor, direct: Tensor, parameters: Sequence[Tensor]) -> None:
    """Of the sum of squares of two tensors."""
    found, expected = (
        torch.autograd.grad(each.square().sum(), parameters, retain_graph=True) for each in (fast, direct)
    )
    torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-12)
