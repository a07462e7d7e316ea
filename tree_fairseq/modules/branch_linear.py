"""A linear layer with weights of its own for each branch of a tree."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class BranchLinear(nn.Module):
    """Linear layers for n branches, applied to nodes that are sorted by branch.

    Args:
        degree: number of branches n
        in_features: I
        out_features: O
        bias: whether there are biases
    """

    def __init__(self, degree: int, in_features: int, out_features: int, bias: bool = True):
        super().__init__()
        # One tensor for all branches: a batch without some branch still gives every parameter a gradient.
        self.weight = nn.Parameter(torch.empty(degree, out_features, in_features))
        self.bias = nn.Parameter(torch.empty(degree, out_features)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weights and biases as :class:`torch.nn.Linear` does."""
        bound = self.weight.size(-1) ** -0.5
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def layers(self) -> list[tuple[Tensor, Tensor | None]]:
        """Weight and bias of each branch, taken apart once for all levels of a tree."""
        biases = [None] * len(self.weight) if self.bias is None else self.bias.unbind(0)
        return list(zip(self.weight.unbind(0), biases))


def by_branch(inputs: Tensor, sizes: list[int], layers: list[tuple[Tensor, Tensor | None]]) -> Tensor:
    """Applies to each node the layer of its branch.

    Args:
        inputs: ``[M, I]``, sorted by branch; M is not 0
        sizes: number of nodes on each branch, n of them
        layers: of :meth:`BranchLinear.layers`

    Returns:
        ``[M, O]``
    """
    parts = [functional.linear(part, *layer) for part, layer in zip(inputs.split(sizes), layers) if len(part)]
    return parts[0] if len(parts) == 1 else torch.cat(parts)
