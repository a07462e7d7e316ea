"""Random forests as lists of spans for hypothesis, and their padded batches."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import strategies as st

from tree_fairseq.nn.tree_batch import NodeArrays, collate_trees


@st.composite
def forests(draw, max_leaves: int = 8, unary: bool = False):
    """A forest of one or two trees as (number of leaves, list of (start, end, depth)); the nodes are
    shuffled, since nothing may depend on their order. With ``unary``, also nodes over one leaf, and chains."""
    spans, offset = [], 0
    for _ in range(draw(st.integers(1, 2))):
        size = draw(st.integers(1, max_leaves))
        stack = [(offset, offset + size, 0)]
        while stack:
            start, end, depth = stack.pop()
            if end - start < 2 and not unary:
                continue
            top, depth = depth, depth + (draw(st.integers(1, 2)) if unary else 1)
            spans += [(start, end, level) for level in range(top, depth)]
            if end - start < 2:
                continue
            cuts = draw(st.sets(st.integers(start + 1, end - 1), min_size=1))
            points = [start, *sorted(cuts), end]
            stack.extend((low, high, depth) for low, high in zip(points, points[1:]))
        offset += size
    return offset, draw(st.permutations(spans))


def collated(batch_of_forests, pad: int, left_pad: bool, seed: int):
    """``src_tokens`` with EOS (2) and padding, and collated trees with random labels."""
    random = np.random.default_rng(seed)
    width = max(n for n, _ in batch_of_forests) + 1 + int(random.integers(0, 3))
    tokens = torch.full((len(batch_of_forests), width), pad)
    trees = []
    for row, (n, spans) in enumerate(batch_of_forests):
        sentence = torch.cat([torch.from_numpy(random.integers(4, 9, n)), torch.tensor([2])])
        first = width - len(sentence) if left_pad else 0
        tokens[row, first : first + len(sentence)] = sentence
        start, end, depth = np.array(spans, np.int32).reshape(-1, 3).T
        trees.append(NodeArrays(random.integers(4, 9, len(spans)).astype(np.int32), start, end, depth))
    return tokens, collate_trees(trees, pad)
