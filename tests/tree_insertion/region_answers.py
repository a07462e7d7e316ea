"""What an oracle says of all slots of a partial tree, from what it says of each region."""

from __future__ import annotations

import numpy as np

from tree_fairseq.tree_insertion.oracles import CentralityOracle, PartialTree


def keys_of(oracle, state: PartialTree) -> np.ndarray:
    """[E] int64: the keys of all allowed insertions; costs where the oracle is exact."""
    return _joined(state, oracle.region_keys)


def ranks_of(oracle, state: PartialTree) -> np.ndarray:
    """[E] int64: the ranks of all allowed insertions."""
    return _joined(state, lambda region, nodes: oracle.region_ranks(nodes, oracle.region_keys(region, nodes)))


def distance_sums(oracle: CentralityOracle, state: PartialTree) -> np.ndarray:
    """[N] int64: the sum of each node's distances to the nodes of its region."""
    sums = np.zeros(len(oracle.target), dtype=np.int64)
    for region in state.regions:
        members, own = oracle.distance_sums(region)
        sums[members] = own
    return sums


def _joined(state: PartialTree, answers) -> np.ndarray:
    found: list[int] = []
    for region, start, end in zip(state.regions, state.starts[:-1], state.starts[1:], strict=True):
        found += answers(region, state.candidates[start:end].tolist())
    return np.array(found, dtype=np.int64)
