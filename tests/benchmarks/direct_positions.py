"""Computes tree positions as the paper writes them: n * k * P values for every node, then a dense layer."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from tree_fairseq.tree_positional.positions import TreePositions


class DirectPositions:
    """The baseline of the benchmark: it shares the weights of the fast form and computes the same values.

    The one-hot stacks depend only on the trees. The paper's code reads them with the data, so they are prepared once.
    """

    def __init__(self, module: TreePositions, paths: Tensor):
        self.module = module
        steps = functional.one_hot(paths.long() + 1, module.branches + 1)[..., 1:]  # B x N x L x n
        stacks = torch.zeros(*paths.shape[:2], module.levels, module.branches)
        stacks[:, :, : paths.size(2)] = steps
        self.stacks = stacks.flatten(2)  # B x N x k * n

    def __call__(self) -> Tensor:
        """Returns ``[B, N, D]``, as :meth:`TreePositions.encode`."""
        levels = self.module.level_weights(self.module.levels)  # k x P
        weights = levels.repeat_interleave(self.module.branches, dim=0)  # k * n x P
        encodings = (self.stacks.unsqueeze(-1) * weights).flatten(2)  # B x N x k * n * P
        return self.module.projection(encodings)
