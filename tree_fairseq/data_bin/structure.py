"""Whether stored arrays are trees: spans nest, children tile their parents, and every leaf has its preterminal."""

from __future__ import annotations

import numpy as np

from tree_fairseq.data_bin.tree_store import TreeBlock

# Levels are handled one at a time for all lines at once; lines deeper than this are walked node by node instead.
_MANY_LEVELS = 200


def malformed_lines(block: TreeBlock) -> np.ndarray:
    """Which lines of a block are no forests in preorder, ``[lines]`` bool.

    In a forest the preterminals, the nodes without a node below them, are the leaves from left to right. So a node starts
    at the number of preterminals before it, and ends at the number of those before the next node that is not below it.
    """
    counts = block.node_counts.astype(np.int64)
    firsts = np.cumsum(counts) - counts
    line = np.repeat(np.arange(len(counts)), counts)
    start, end, depth = block.rows[:, 1:].T.astype(np.int64)
    is_first = np.zeros(len(depth), bool)
    is_first[firsts[counts > 0]] = True

    bad = np.zeros(len(counts), bool)
    previous = np.concatenate([[-1], depth[:-1]])
    previous[is_first] = -1
    bad[line[(depth < 0) | (depth > previous + 1)]] = True

    childless = np.ones(len(depth), bool)
    childless[:-1] = (depth[1:] <= depth[:-1]) | is_first[1:]
    before = np.cumsum(childless) - childless
    # Preterminals before the first node of the line, and in the whole line.
    offset = before[np.minimum(firsts, max(len(before) - 1, 0))] if len(before) else np.zeros(len(counts), np.int64)
    total = np.bincount(line[childless], minlength=len(counts))
    bad |= total != block.leaf_counts
    bad[line[start != before - offset[line]]] = True

    after = _next_outside(np.where(bad[line], 0, depth), line, counts)
    leaves_before = np.append(before, childless.sum())
    bad[line[end != leaves_before[after] - offset[line]]] = True
    return bad


def _next_outside(depth: np.ndarray, line: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """For every node the index of the next one that is not below it, ``[M]`` int64; the first of the next line ends a line."""
    after = np.empty(len(depth), np.int64)
    deepest = np.zeros(len(counts), np.int64)
    np.maximum.at(deepest, line, depth)
    shallow = deepest < _MANY_LEVELS
    # Below a root nothing of another line can lie, so lines need not be told apart.
    nodes = np.flatnonzero(shallow[line])
    ends = np.cumsum(counts)
    for level in range(int(deepest[shallow].max(initial=-1)), -1, -1):
        levels = depth[nodes]
        here = np.flatnonzero(levels == level)
        following = nodes[np.minimum(here + 1, len(nodes) - 1)]
        # The next node kept may belong to a later line; then this line ends first.
        end_of_line = ends[line[nodes[here]]]
        after[nodes[here]] = np.where(here + 1 < len(nodes), np.minimum(following, end_of_line), end_of_line)
        nodes = nodes[levels < level]
    for deep in np.flatnonzero(~shallow):
        first, last = int(ends[deep] - counts[deep]), int(ends[deep])
        after[first:last] = first + _next_outside_of_line(depth[first:last])
    return after


def _next_outside_of_line(depth: np.ndarray) -> np.ndarray:
    """The same for one line, node by node."""
    after = np.full(len(depth), len(depth), np.int64)
    open_nodes: list[int] = []
    for node, level in enumerate(depth.tolist()):
        while open_nodes and depth[open_nodes[-1]] >= level:
            after[open_nodes.pop()] = node
        open_nodes.append(node)
    return after
