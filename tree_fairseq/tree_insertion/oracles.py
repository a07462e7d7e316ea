"""The paper's oracle of insertion-based decoding: the most central node of a slot is inserted first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tree_fairseq.tree_insertion.regions import Region
from tree_fairseq.tree_insertion.target import ANCESTOR, DESCENDANT, FIRST_CHILD, KINDS, NEXT_SIBLING, TargetTree


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

    def distance_sums(self, region: Region) -> tuple[np.ndarray, np.ndarray]:
        """The M nodes of a region and the sums of their distances to each other, the inverses of their centralities.

        Returns:
            [M] int64, ascending, and [M] int64
        """
        spans = region.spans(self.target)
        if len(spans) == 1:
            members = np.arange(*spans[0])
            both = (slice(*spans[0]),) * 2
        else:
            members = np.concatenate([np.arange(*span) for span in spans])
            both = members[:, None], members
        return members, np.where(self.meeting[both] == region.top, self.outside[both], self.inside[both]).sum(1)

    def region_keys(self, region: Region, candidates: Sequence[int]) -> list[int]:
        """The order of the insertions in a slot: by centrality, then nodes with fewer descendants first. Equal numbers are ties.

        Args:
            region: of the slot
            candidates: the nodes allowed there
        """
        members, sums = self.distance_sums(region)
        chosen = np.asarray(candidates)
        keys = sums[np.searchsorted(members, chosen)] * (len(self.target) + 1) + self.sizes[chosen]
        return keys.tolist()

    def region_ranks(self, candidates: Sequence[int], keys: Sequence[int]) -> list[int]:
        """The rank of each insertion in a slot from 0 (Equation 5); ties are broken by label, then by place.

        Args:
            candidates: the nodes allowed there
            keys: of these
        """
        labels = self.target.label_places
        order = sorted(range(len(keys)), key=lambda place: (keys[place], labels[candidates[place]], candidates[place]))
        ranks = [0] * len(order)
        for rank, place in enumerate(order):
            ranks[place] = rank
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


# FROM trees/insertion_slots: What fits in the slots of a partial tree: the allowed sets of Lukovnikov & Fischer (2021), Section 3.3.1.
#
# N is the number of nodes of the target, n of the partial tree, E of allowed pairs of a slot and a node.


@dataclass(frozen=True)
class PartialTree:
    """A part of a target: some of its nodes, under their nearest ancestors among them.

    Attributes:
        nodes: [n] int64, the nodes of the target, in preorder of both
        parents: [n] int64, places of the parents in ``nodes``, -1 for the root
        regions: one for each slot that a node is allowed in
        starts: [regions + 1] int64: the allowed insertions of region r are number ``starts[r]`` to ``starts[r + 1]`` of:
        slots: [E] int64, ascending: their slots
        candidates: [E] int64: the nodes of the target to insert there, ascending for each slot
        region_of: [N] int64: the slot through which a node will come; -1 for those that are here
    """

    nodes: np.ndarray
    parents: np.ndarray
    regions: list[Region]
    starts: np.ndarray
    slots: np.ndarray
    candidates: np.ndarray
    region_of: np.ndarray


def partial_tree(target: TargetTree, used: Sequence[bool]) -> PartialTree:
    """The part of a target that has these nodes, and the allowed sets of its slots.

    Args:
        target: the tree to be decoded
        used: [N] which nodes are there already; the root is

    Raises:
        ValueError: no insertions lead from there to the target: the root is missing, or of three siblings two have a parent
            of their own in the target
    """
    if len(used) != len(target) or not used[0]:
        raise ValueError(f"{len(used)} marks, or none for the root, describe no part of a tree of {len(target)} nodes")
    places: dict[int, int] = {}
    parents: list[int] = []
    children: list[list[int]] = []
    # Of each node of the target, its nearest ancestor that is here, or itself.
    nearest = [0] * len(target)
    for node, here in enumerate(used):
        parent = nearest[target.parents[node]] if node else -1
        nearest[node] = node if here else parent
        if here:
            if node:
                children[places[parent]].append(node)
            parents.append(places.get(parent, -1))
            places[node] = len(places)
            children.append([])
    regions = [region for node, place in places.items() for region in _regions(target, node, children[place], places)]
    return _with_candidates(target, list(places), parents, regions)


def _regions(target: TargetTree, node: int, below: list[int], places: dict[int, int]) -> list[Region]:
    """The regions of the slots below a used node whose children in the partial tree are given."""
    slot = KINDS * places[node]
    if not below:
        return [Region(slot + DESCENDANT, node)] if target.children[node] else []
    bottom, branches = _branches(target, node, below)
    regions = [Region(slot + DESCENDANT, node, bottom)] if bottom != node else []
    for child, branch in zip(below, branches, strict=True):
        if child != branch:
            regions.append(Region(KINDS * places[child] + ANCESTOR, bottom, child))
    ranks = [-1, *(target.ranks[branch] for branch in branches), len(target.children[bottom])]
    gaps = [slot + FIRST_CHILD, *(KINDS * places[child] + NEXT_SIBLING for child in below)]
    for gap, before, after in zip(gaps, ranks[:-1], ranks[1:], strict=True):
        if after - before > 1:
            regions.append(Region(gap, bottom, first=before + 1, last=after - 1))
    return regions


def _branches(target: TargetTree, node: int, below: list[int]) -> tuple[int, list[int]]:
    """The node of the target that will be the parent of the children's branches, and those branches."""
    if len(below) == 1:
        return target.parents[below[0]], below
    first, last = below[0], below[-1]
    bottom = target.parents[first]
    while target.ends[bottom] <= last:
        bottom = target.parents[bottom]
    branches = []
    for child in below:
        while target.parents[child] != bottom:
            child = target.parents[child]
        if branches and branches[-1] == child:
            labels = ", ".join(repr(target.labels[each]) for each in below)
            raise ValueError(
                f"{labels} cannot be siblings under {target.labels[node]!r}: some have a parent of their own"
            )
        branches.append(child)
    return bottom, branches


def _with_candidates(target: TargetTree, nodes: list[int], parents: list[int], regions: list[Region]) -> PartialTree:
    regions.sort()
    region_of = np.full(len(target), -1)
    starts = [0]
    candidates: list[int] = []
    for region in regions:
        candidates.extend(region.allowed(target))
        starts.append(len(candidates))
        for start, end in region.spans(target):
            region_of[start:end] = region.slot
    bounds = np.array(starts)
    slots = np.repeat(np.array([region.slot for region in regions], dtype=np.int64), bounds[1:] - bounds[:-1])
    allowed_nodes = np.array(candidates, dtype=np.int64)
    return PartialTree(np.array(nodes), np.array(parents), regions, bounds, slots, allowed_nodes, region_of)


# FROM trees/insertion_exact: The exact oracle of insertion-based decoding: all insertions after which the fewest steps are left.


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

    def region_keys(self, region: Region, candidates: Sequence[int]) -> list[int]:
        """The steps that the region of a slot takes, this one included, if each of the insertions that are allowed there is made now.

        The best insertions of a slot are those with the least number. Another whose number is at most the steps that the whole
        tree takes delays its slot, but not the tree.
        """
        return [cost + 1 for cost in self._costs(region, candidates)]

    def region_ranks(self, candidates: Sequence[int], keys: Sequence[int]) -> list[int]:
        """How many steps each insertion delays its slot; 0 for all that are optimal."""
        least = min(keys)
        return [key - least for key in keys]

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

    def _costs(self, region: Region, candidates: Sequence[int]) -> list[int]:
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
        rank = target.ranks[target.branch(top, node)]
        gaps = self.gaps[top]
        alone = max(self.forest[node], self.above[node][target.depths[top]])
        return max(alone, gaps[first][rank - first], gaps[rank + 1][last - rank])

    def _solve(self, top: int) -> None:
        """All regions whose top is this node; those of its descendants are known."""
        target, depth = self.target, self.target.depths[top]
        children = target.children[top]
        below = range(top + 1, target.ends[top])
        for node in below:
            if target.parents[node] != top:
                self.above[node][depth] = 1 + self._best_above(top, node)
        singles = [
            min([max(self.forest[node], self.above[node][depth]) for node in range(child, target.ends[child])])
            for child in children
        ]
        gaps = self.gaps[top] = _interval_steps(singles)
        for rank, child in enumerate(children):
            self.beside[child] = max(gaps[0][rank], gaps[rank + 1][len(children) - rank - 1])
        for node in below:
            self.between[node][depth] = 1 + self._best_between(top, node)
        self.forest[top] = 1 + min([self._cost_below(top, node) for node in below])

    def _best_above(self, top: int, bottom: int) -> int:
        """The least of `_cost_above` on the way; most of the time is spent here, and calls would double it."""
        target, above = self.target, self.above
        parents, depths = target.parents, target.depths
        depth = depths[top]
        node = parents[bottom]
        lower = self.between[node]
        least = len(parents)
        while node != top:
            upper, under = above[node][depth], lower[depths[node]]
            cost = upper if upper > under else under
            if cost < least:
                least = cost
            node = parents[node]
        return max(least, self.beside[bottom])

    def _best_between(self, top: int, bottom: int) -> int:
        """The least of `_cost_between` on the way, likewise."""
        target, between, beside = self.target, self.between, self.beside
        parents, depths = target.parents, target.depths
        depth, lower = depths[top], between[bottom]
        node, least = bottom, len(parents)
        while node != top:
            parent = parents[node]
            cost, under, sides = between[parent][depth], lower[depths[node]], beside[node]
            if under > cost:
                cost = under
            if sides > cost:
                cost = sides
            if cost < least:
                least = cost
            node = parent
        return least


def _interval_steps(singles: list[int]) -> list[list[int]]:
    """Steps for each interval of neighbouring branches, by start and length.

    Args:
        singles: for each branch, the steps that follow the best first insertion in it
    """
    steps = [[0] * (len(singles) - start + 1) for start in range(len(singles) + 1)]
    for length in range(1, len(singles) + 1):
        for start in range(len(singles) - length + 1):
            steps[start][length] = 1 + min(
                [
                    max(singles[start + left], steps[start][left], steps[start + left + 1][length - left - 1])
                    for left in range(length)
                ]
            )
    return steps
