"""The codes of positions in trees, and the maps between them, as Shiv & Quirk (2019, section 3) write them down.

With n branches and k levels a node's code is a stack of its last k steps from the root, the most recent one first, each a
one-hot vector of n. The step down branch i, D_i, pushes; the step up, U, pops (equations 2 and 3). Both are affine: they
are matrices over codes with a 1 appended, so that a path is a product of matrices, its first step rightmost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Path = tuple[int, ...]
"""The branches on the way from the root to a node, the most recent step last."""


def balanced_tree(depth: int, branches: int = 2) -> list[Path]:
    """The nodes of a tree in which every node above the last level has all its children, in breadth-first order.

    Args:
        depth: steps from the root to the leaves
        branches: of every node
    """
    level: list[Path] = [()]
    nodes = list(level)
    for _ in range(depth):
        level = [(*path, branch) for path in level for branch in range(branches)]
        nodes += level
    return nodes


@dataclass(frozen=True)
class StackCodes:
    """The codes of trees of a degree.

    Attributes:
        branches: n
        levels: k
    """

    branches: int
    levels: int

    @property
    def size(self) -> int:
        """Length of a code, n k."""
        return self.branches * self.levels

    def code(self, path: Path) -> np.ndarray:
        """The code of a node, ``[n k]``: level j holds the step j before the last; the oldest steps may be forgotten."""
        code = np.zeros(self.size)
        for level, branch in enumerate(reversed(path[-self.levels :])):
            code[level * self.branches + branch] = 1
        return code

    def down(self, branch: int) -> np.ndarray:
        """D_i, ``[n k + 1, n k + 1]``: the step to a child."""
        matrix = np.eye(self.size + 1, k=-self.branches)
        matrix[self.size] = 0
        matrix[branch, self.size] = matrix[self.size, self.size] = 1
        return matrix

    def up(self) -> np.ndarray:
        """U, ``[n k + 1, n k + 1]``: the step to the parent."""
        matrix = np.eye(self.size + 1, k=self.branches)
        matrix[:, self.size] = 0
        matrix[self.size, self.size] = 1
        return matrix

    def mean_down(self) -> np.ndarray:
        """(D_1 + ... + D_n) / n: to all children alike."""
        return sum(self.down(branch) for branch in range(self.branches)) / self.branches

    def apply(self, matrix: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """What a map makes of codes, ``[N, n k]``."""
        with_one = np.concatenate([codes, np.ones((len(codes), 1))], axis=1)
        return (with_one @ matrix.T)[:, : self.size]

    def weights(self, decays: Sequence[float], width: float = 2) -> np.ndarray:
        """What each copy of a code counts, ``[P, n k]``: p^j sqrt(1 - p^2) sqrt(D / 2) at level j.

        Args:
            decays: p of each copy, between -1 and 1
            width: D of the model; 2 leaves the last factor out
        """
        p = np.asarray(decays, dtype=float)[:, None]
        by_level = p ** np.arange(self.levels) * np.sqrt(1 - p**2) * np.sqrt(width / 2)  # P x k
        return by_level.repeat(self.branches, axis=1)


def attention(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The softmax over all nodes of query times key.

    Args:
        queries: ``[N, C]``
        keys: ``[N, C]``

    Returns:
        ``[N, N]``, of each query over the keys
    """
    scores = queries @ keys.T
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)
