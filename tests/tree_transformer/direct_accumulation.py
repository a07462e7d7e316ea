"""Hierarchical accumulation straight from equations 5 to 10: one loop a symbol, no algebra."""

from __future__ import annotations

import torch


def accumulate(leaves, nodes, spans, weights, vertical=None, horizontal=None, count_leaf=True, by_leaf_distance=True):
    """Node representations of one forest and one head.

    Args:
        leaves: ``[n, d]`` values of the leaves
        nodes: ``[m, d]`` values of the nodes, in any order
        spans: m triples (start, end, depth)
        weights: ``[n]``, w
        vertical: table of e^v ``[V, d / 2]``, the row of index 1 first; None without embeddings
        horizontal: table of e^h ``[V', d / 2]``
        count_leaf: the leaf counts in the average of a branch
        by_leaf_distance: meaning of the vertical index

    Returns:
        ``[m, d]``
    """
    n, m = len(leaves), len(nodes)

    def covers(i, j):
        return spans[i][0] <= j < spans[i][1]

    def in_subtree(t, i):
        return spans[i][0] <= spans[t][0] and spans[t][1] <= spans[i][1] and spans[t][2] >= spans[i][2]

    def embedding(t, j):
        if vertical is None:
            return torch.zeros_like(leaves[0])
        ancestors_up_to_t = [u for u in range(m) if in_subtree(u, t) and covers(u, j)]
        height = len(ancestors_up_to_t) if by_leaf_distance else spans[t][2] + 1
        rank = len([k for k in range(n) if covers(t, k) and k <= j])
        row = lambda table, index: table[min(index, len(table)) - 1]
        return torch.cat([row(vertical, height), row(horizontal, rank)])

    rows = []
    for i in range(m):
        total = torch.zeros_like(leaves[0])
        count = 0
        for j in range(n):
            if not covers(i, j):
                continue
            branch = [t for t in range(m) if in_subtree(t, i) and covers(t, j)]
            summed = leaves[j] + sum(nodes[t] + embedding(t, j) for t in branch)
            total = total + weights[j] * summed / (len(branch) + int(count_leaf))
            count += 1
        rows.append(total / max(count, 1))
    return torch.stack(rows)
