"""Lists of branches against sets and loops."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nn.random_forests import collated, forests
from tree_fairseq.nn.tree_batch import Branches


def expected_ranks(spans, sentence: int, num_nodes: int, max_ranks: int, block: int) -> tuple[Counter, Counter]:
    """For each branch, and for each leaf below the first block, how often a leaf has a rank in nodes of a block."""
    own, low = Counter(), Counter()
    for i, (start, end, depth) in enumerate(spans):
        for leaf in range(start, end):
            for t_start, t_end, t_depth in spans:
                if t_start <= leaf < t_end and t_depth >= depth and t_depth // block == depth // block:
                    own[sentence * num_nodes + i, leaf, leaf - t_start] += 1
            if depth >= block:
                low[depth // block, sentence, leaf, leaf - start] += 1
    own, low = (Counter({key: n for key, n in each.items() if key[-1] < max_ranks - 1}) for each in (own, low))
    return own, low


@settings(max_examples=60, deadline=None)
@given(
    batch_of_forests=st.lists(forests(), min_size=1, max_size=3),
    max_ranks=st.integers(1, 6),
    max_lengths=st.integers(1, 6),
    block=st.integers(1, 4),
)
def test_branches_and_ranks(batch_of_forests, max_ranks, max_lengths, block):
    _, tree = collated(batch_of_forests, 1, False, 0)
    start, end, depth = (tree[name].numpy() for name in ("start", "end", "depth"))
    num_nodes = start.shape[1]
    listed = Branches.list(start, end, depth, max_ranks, max_lengths, block)
    own, low, short, upper = Counter(), Counter(), set(), [set() for _ in range(max(depth.max(initial=0) // block, 0))]
    for b, (_, spans) in enumerate(batch_of_forests):
        of_branches, below = expected_ranks(spans, b, num_nodes, max_ranks, block)
        own, low = own + of_branches, low + below
        for m, (node_start, node_end, level) in enumerate(spans):
            leaves = [j for j in range(node_start, node_end) if nodes_on(spans, m, j) < max_lengths]
            short.update((b * num_nodes + m, j) for j in leaves)
            reach = max(d for s, e, d in spans if node_start <= s and e <= node_end)
            if reach // block > level // block:
                upper[level // block].add((b, m))
    node, leaf = listed.node.numpy(), listed.leaf.numpy()
    sentence = node // max(num_nodes, 1)
    ends = list(zip(node.tolist(), leaf.tolist()))
    assert set(ends) == {(n, j) for n, j, _ in own} | short and len(ends) == len(set(ends))
    # By leaf, then from the highest node.
    order = np.lexsort((depth.ravel()[node], leaf, sentence))
    assert order.tolist() == list(range(len(node)))
    branch, rank = listed.rank_branch.numpy(), listed.rank.numpy()
    found = Counter()
    for p, r, times in zip(branch.tolist(), rank.tolist(), listed.rank_times.tolist()):
        found[int(node[p]), int(leaf[p]), r] += times
    assert found == own and (np.diff(branch) >= 0).all()
    keys = rank.astype(int) * 10_000 + node[branch]
    assert (np.diff(keys[listed.by_rank.numpy()]) >= 0).all()
    found = Counter()
    where = listed.low_branch.numpy()
    for number, p, r, times in zip(
        *(each.tolist() for each in (listed.low_block, where, listed.low_rank, listed.low_times))
    ):
        found[number, int(sentence[p]), int(leaf[p]), r] += times
    assert found == low
    assert (np.diff(listed.low_rank.numpy()[listed.low_by_rank.numpy()]) >= 0).all()
    places = listed.low_block.numpy() * 10_000 + sentence[where] * 100 + leaf[where]
    assert (np.diff(places) >= 0).all()
    rows = [{(b, m) for b, row in enumerate(nodes.tolist()) for m in row if m < num_nodes} for nodes in listed.upper]
    assert rows == upper
    lengths = [nodes_on(batch_of_forests[n // num_nodes][1], n % num_nodes, j) for n, j in ends]
    by_length = (np.minimum(lengths, max_lengths).astype(int) * 10_000 + node)[listed.by_length.numpy()]
    assert (np.diff(by_length) >= 0).all()


def nodes_on(spans, node: int, leaf: int) -> int:
    """Nodes on the branch from a node to a leaf."""
    return sum(start <= leaf < end and depth >= spans[node][2] for start, end, depth in spans)
