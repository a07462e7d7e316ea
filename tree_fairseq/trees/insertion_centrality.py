"""The paper's oracle of insertion-based decoding: the most central node of a slot is inserted first."""

from __future__ import annotations

import numpy as np

from tree_fairseq.trees.insertion import TargetTree
from tree_fairseq.trees.insertion_slots import PartialTree


class CentralityOracle:
    """Closeness centrality (Equation 4): the node with the least sum of distances to its region is inserted first.

    Distances are those of the graph of the region, where neighbouring siblings are joined too, as in the paper's program:
    without these edges subtrees of a region would fall apart. With ``sibling_edges=False`` they are those of the target
    tree, as the paper says.
    """

    def __init__(self, target: TargetTree, sibling_edges: bool = True):
        self.target = target
        depths, ends = np.array(target.depths), np.array(target.ends)
        self.sizes = ends - np.arange(len(target))
        paths = _root_paths(depths)
        meeting = _meeting_depths(depths)
        each = np.arange(len(target))[:, None]
        # [N, N]: the lowest common ancestor
        self.meeting = paths[each, meeting]
        self.inside = depths[:, None] + depths - 2 * meeting
        self.outside = self.inside
        if sibling_edges:
            branches = np.array(target.ranks)[paths[each, meeting + 1]]
            apart = np.abs(branches - branches.T)
            # Of two nodes in one line none branches off: their distance is the difference of their depths.
            forked = (self.meeting != each) & (self.meeting != each.T)
            self.inside = self.inside - (forked & (apart == 1))
            # Where the common ancestor is out of the region the way leads over all siblings between.
            self.outside = np.where(forked, depths[:, None] + depths - 2 * meeting - 2 + apart, self.inside)

    def distance_sums(self, state: PartialTree) -> np.ndarray:
        """[N] int64: for each node, the sum of its distances to the nodes of its region; the inverse of its centrality."""
        same = state.region_of[:, None] == state.region_of
        distances = np.where(self.meeting == state.tops[:, None], self.outside, self.inside)
        return (distances * same).sum(1)

    def keys(self, state: PartialTree) -> np.ndarray:
        """[E] int64: the order of the insertions in each slot: by centrality, then nodes with fewer descendants first.

        Equal numbers in one slot are ties.
        """
        sums = self.distance_sums(state)[state.candidates]
        return sums * (len(self.target) + 1) + self.sizes[state.candidates]

    def ranks(self, state: PartialTree, keys: np.ndarray | None = None) -> np.ndarray:
        """[E] int64: rank of each insertion in its slot from 0 (Equation 5); ties are broken by label, then by place.

        Args:
            keys: of this state, where they are known
        """
        labels = self.target.label_order[state.candidates]
        order = np.lexsort((state.candidates, labels, self.keys(state) if keys is None else keys, state.slots))
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order)) - np.repeat(state.starts[:-1], state.starts[1:] - state.starts[:-1])
        return ranks


def _root_paths(depths: np.ndarray) -> np.ndarray:
    """[N, depth + 2] int64: the ancestor of each node at each depth, itself included; what stands deeper means nothing."""
    levels = np.arange(depths.max() + 2)
    nodes = np.arange(len(depths))[:, None]
    return np.maximum.accumulate(np.where(depths[:, None] == levels, nodes, 0), axis=0)


def _meeting_depths(depths: np.ndarray) -> np.ndarray:
    """[N, N] int64: the depth of the lowest common ancestor of two nodes, in preorder.

    It is one less than the least depth after the first of the nodes, up to the second.
    """
    count = len(depths)
    later = np.arange(count)[:, None] < np.arange(count)
    least = np.minimum.accumulate(np.where(later, depths, count + 1), axis=1) - 1
    upper = np.where(later, least, 0)
    meeting = upper + upper.T
    np.fill_diagonal(meeting, depths)
    return meeting
