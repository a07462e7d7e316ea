"""What to insert first: the most central nodes (the paper's oracle), or those that exact search finds.

Both give each allowed insertion of a partial tree a number, the lower the better.
"""

from __future__ import annotations

import numpy as np

from tree_fairseq.trees.insertion import ANCESTOR, DESCENDANT, TargetTree
from tree_fairseq.trees.insertion_slots import PartialTree, Region


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

    def ranks(self, state: PartialTree) -> np.ndarray:
        """[E] int64: rank of each insertion in its slot from 0 (Equation 5); ties are broken by label, then by place."""
        labels = self.target.label_order[state.candidates]
        order = np.lexsort((state.candidates, labels, self.keys(state), state.slots))
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order)) - np.searchsorted(state.slots, state.slots)
        return ranks


class ExactOracle:
    """The fewest steps in which the slots of a partial tree can be filled, and all insertions that attain them.

    Among the allowed insertions: beside an only child stand nodes under its own parent only, so that no slot needs to know
    what its neighbour does. If nodes from farther up could come there, some trees, of eight nodes or more, would take a step
    less.

    An insertion splits its region into regions that do not influence each other, so that a region takes one step more than
    the longest of the parts that its best insertion leaves. Regions are solved from the leaves up, each once: time grows
    with N · depth² + Σ children³.

    Attributes, lists over the nodes y of the target:
        forest: steps for the strict descendants of y, used and without children
        beside: steps for the siblings left and right of y, under y's parent
        above: for each ancestor p of y by depth, steps for what lies between p and y where y has used siblings under p
        between: for each ancestor u of y by depth, steps for the path from below u to y where u's children will be y's
        gaps: for the children of y from rank a to b, the steps, as ``gaps[y][a][b - a + 1]``; those of none are 0
    """

    def __init__(self, target: TargetTree):
        self.target = target
        count = len(target)
        self.forest = [0] * count
        self.beside = [0] * count
        self.above = [[0] * (depth + 1) for depth in target.depths]
        self.between = [[0] * (depth + 1) for depth in target.depths]
        self.gaps: list[list[list[int]]] = [[[0]] for _ in range(count)]
        for node in range(count - 1, -1, -1):
            if target.children[node]:
                self._solve(node)

    def costs(self, state: PartialTree) -> np.ndarray:
        """[E] int64: the steps that the slot's region takes, this one included, if the insertion is made now.

        The best insertions of a slot are those with the least cost. Another whose cost is at most the steps that the whole
        tree takes delays its slot, but not the tree.
        """
        costs: list[int] = []
        start = 0
        candidates = state.candidates.tolist()
        ends = np.searchsorted(state.slots, [region.slot for region in state.regions], side="right").tolist()
        for region, end in zip(state.regions, ends, strict=True):
            costs.extend(self._costs(region, candidates[start:end]))
            start = end
        return np.array(costs, dtype=np.int64) + 1

    keys = costs

    def ranks(self, state: PartialTree) -> np.ndarray:
        """[E] int64: how many steps each insertion delays its slot; 0 for all that are optimal."""
        costs = self.costs(state)
        firsts = np.flatnonzero(np.diff(state.slots, prepend=-1))
        least = np.minimum.reduceat(costs, firsts) if len(firsts) else costs
        return costs - np.repeat(least, np.diff(firsts, append=len(costs)))

    def steps(self, state: PartialTree) -> int:
        """The fewest steps from a partial tree to the target."""
        return max((self._steps(region) for region in state.regions), default=0)

    def _steps(self, region: Region) -> int:
        top = region.top
        if region.first >= 0:
            return self.gaps[top][region.first][region.last - region.first + 1]
        if region.bottom < 0:
            return self.forest[top]
        table = self.between if region.kind == DESCENDANT else self.above
        return table[region.bottom][self.target.depths[top]]

    def _costs(self, region: Region, candidates: list[int]) -> list[int]:
        """For each insertion, the steps that follow it."""
        top, bottom = region.top, region.bottom
        if region.first >= 0:
            return [self._cost_beside(region, node) for node in candidates]
        if bottom < 0:
            return [self._cost_below(top, node) for node in candidates]
        follow = self._cost_above if region.kind == ANCESTOR else self._cost_between
        return [follow(top, node, bottom) for node in candidates]

    def _cost_below(self, top: int, node: int) -> int:
        parent = self.target.parents[node]
        return max(self.forest[node], self.beside[node], self.between[parent][self.target.depths[top]])

    def _cost_between(self, top: int, node: int, bottom: int) -> int:
        depths = self.target.depths
        upper = self.between[self.target.parents[node]][depths[top]]
        return max(upper, self.beside[node], self.between[bottom][depths[node]])

    def _cost_above(self, top: int, node: int, bottom: int) -> int:
        depths = self.target.depths
        lower = self.between[self.target.parents[bottom]][depths[node]]
        return max(self.above[node][depths[top]], self.beside[bottom], lower)

    def _cost_beside(self, region: Region, node: int) -> int:
        target, (_, top, _, first, last) = self.target, region
        branch = node
        while target.parents[branch] != top:
            branch = target.parents[branch]
        rank = target.ranks[branch]
        gaps = self.gaps[top]
        alone = max(self.forest[node], self.above[node][target.depths[top]])
        return max(alone, gaps[first][rank - first], gaps[rank + 1][last - rank])

    def _solve(self, top: int) -> None:
        """All regions whose top is this node; those of its descendants are known."""
        target, depth = self.target, self.target.depths[top]
        children = target.children[top]
        below = range(top + 1, target.ends[top])
        for node in below:
            if path := target.path(top, node):
                self.above[node][depth] = 1 + min([self._cost_above(top, each, node) for each in path])
        singles = [
            min([max(self.forest[node], self.above[node][depth]) for node in range(child, target.ends[child])])
            for child in children
        ]
        gaps = self.gaps[top] = _interval_steps(singles)
        for rank, child in enumerate(children):
            self.beside[child] = max(gaps[0][rank], gaps[rank + 1][len(children) - rank - 1])
        for node in below:
            inner = min([self._cost_between(top, each, node) for each in (node, *target.path(top, node))])
            self.between[node][depth] = 1 + inner
        self.forest[top] = 1 + min([self._cost_below(top, node) for node in below])


def _interval_steps(singles: list[int]) -> list[list[int]]:
    """Steps for each interval of neighbouring branches, by start and length.

    Args:
        singles: for each branch, the steps that follow the best first insertion in it
    """
    steps = [[0] * (len(singles) - start + 1) for start in range(len(singles) + 1)]
    for length in range(1, len(singles) + 1):
        for start in range(len(singles) - length + 1):
            steps[start][length] = 1 + min([
                max(singles[start + left], steps[start][left], steps[start + left + 1][length - left - 1])
                for left in range(length)
            ])
    return steps


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
