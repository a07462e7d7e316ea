"""The mixture of generating and copying, written from its equation with loops: the twin of the fast one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


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


def direct_pointer(states: Tensor, memory: Tensor, padding: Tensor, weights: dict[str, Tensor]) -> tuple:
    """One head of attention from ``[R, T, D]`` to ``[R, N, D']``: context ``[R, T, D]`` and weights ``[R, T, N]``."""
    contexts, attended = [], []
    for row in range(len(states)):
        of_row, context = [], []
        for state in states[row]:
            query = weights["q_proj.weight"] @ state + weights["q_proj.bias"]
            keys = [weights["k_proj.weight"] @ each + weights["k_proj.bias"] for each in memory[row]]
            values = [weights["v_proj.weight"] @ each + weights["v_proj.bias"] for each in memory[row]]
            scores = torch.stack([query @ key / len(query) ** 0.5 for key in keys]).exp() * ~padding[row]
            of_row.append(scores / scores.sum())
            summed = sum(weight * value for weight, value in zip(of_row[-1], values))
            context.append(weights["out_proj.weight"] @ summed + weights["out_proj.bias"])
        attended.append(torch.stack(of_row))
        contexts.append(torch.stack(context))
    return torch.stack(contexts), torch.stack(attended)
