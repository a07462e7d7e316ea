"""Constituency trees from storage to a model: reduced to the nodes that it reads, collated, and viewed as a batch.

A batch of trees travels in ``net_input`` as a plain dict of tensors, because fairseq moves dicts to the GPU and leaves
dataclasses behind. Inside a model it is viewed as a :class:`TreeBatch`. Shape letters: :mod:`tree_fairseq.nn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import Tensor

from tree_fairseq.data_bin.tree_store import StoredTree
from tree_fairseq.nn.tensors import first_tokens
from tree_fairseq.trees.spans import TreeSpans, reduce_spans, reduced_depth

BLOCK = 16
"""Levels of depth in a block of :class:`Branches`. The parse of a sentence of thirty words has a single block."""
MAX_RANKS, MAX_LENGTHS = 100, 50
"""Ranks that collated lists tell apart, and lengths of branches: the usual numbers of embeddings in a table."""


@dataclass(frozen=True)
class Branches:
    """The branches of B forests as lists of numbers, and the ranks of their leaves in the nodes on them.

    A branch leads from a node down to a leaf below it. Hierarchical embeddings (Nguyen et al. 2020, eq. 9) add up
    something for every node of every branch. A list of all nodes of all branches would grow with the cube of the length
    of a deep tree. Here the list of a branch ends where a block of some levels of depth ends. The nodes below that
    level are those of all branches to the leaf that begin in the block, so they are listed once a leaf and block.

    Nodes of a branch that begin at the same leaf are one entry, because the branch's leaf has the same rank in all of
    them. The last embedding of a table is that of all higher ranks or heights, too. Lists leave these out: the last
    embedding counts for all nodes of all branches, and the lists are for the differences from it.

    The P branches are all that have some rank below the last or fewer nodes than the last length. All tensors are
    int32. Nodes are places in flattened ``[B, M]``.
    """

    # ``[P]``, where each branch begins. The branches are in the order of the leaves; those to the same leaf begin with
    # that from the highest node
    node: Tensor
    leaf: Tensor  # ``[P]``, where each branch ends: the column of the leaf in its sentence
    # ``[P]``, the order of the branches by the number of nodes on them, at most the last length, then by node
    by_length: Tensor
    rank_branch: Tensor  # ``[Q]``, ascending, the branch of each entry of the list of ranks
    # ``[Q]``, rank of the branch's leaf, from 0, in nodes on the branch that are in the block of its first node
    rank: Tensor
    rank_times: Tensor  # ``[Q]``, the number of these nodes
    by_rank: Tensor  # ``[Q]``, the order of these entries by rank, then by node
    low_block: Tensor  # ``[U]``, ascending, block, from 1, of each entry of the list of ranks in lower blocks
    low_branch: Tensor  # ``[U]``, ascending in a block, a branch to the leaf whose ranks they are
    low_rank: Tensor  # ``[U]``, rank of the leaf in nodes above it that are in the block
    low_times: Tensor  # ``[U]``, the number of these nodes
    # for each block but the last ``[B, nodes]``, its nodes with lower blocks below them, as places in ``[M]``; M at
    # padding
    upper: list[Tensor]

    def as_dict(self) -> dict[str, Any]:
        """The lists by name, as a batch has them."""
        return dict(vars(self))

    @classmethod
    def list(
        cls,
        start: np.ndarray,
        end: np.ndarray,
        depth: np.ndarray,
        max_ranks: int = MAX_RANKS,
        max_lengths: int = MAX_LENGTHS,
        block: int = BLOCK,
    ) -> Branches:
        """Lists the branches of forests. Nodes are ``[B, M]``; those of padding have an empty span.

        Ranks from ``max_ranks - 1`` and lengths from ``max_lengths`` are left out, and a block has ``block`` levels.
        """
        num_nodes, all_nodes = max(start.shape[1], 1), start.size
        node = np.flatnonzero(end > start)
        first, size, depth = (values.ravel()[node].astype(np.int64) for values in (start, end - start, depth))
        begin = size.cumsum() - size  # of the branches of a node, node by node
        own = np.repeat(np.arange(len(node)), size)
        column = np.arange(len(own)) - begin[own] + first[own]
        width = int(column.max(initial=0)) + 1
        leaf = node[own] // num_nodes * width + column
        above = np.bincount(leaf, minlength=len(start) * width)  # nodes above each leaf
        # All nodes above a node are above its leaves, so its depth is its place on each of its branches.
        place = (above.cumsum() - above)[leaf] + depth[own]
        deepest = np.maximum.reduceat(above[leaf], begin) if len(node) else above[:0]
        own, column, length = (_inverse(values, place) for values in (own, column, above[leaf] - depth[own]))
        level, rank = depth[own], np.minimum(column - first[own], max_ranks - 1)

        # Along the branch to a leaf, runs of nodes in which it has the same rank; runs end with blocks.
        new_block = level % block == 0
        run, run_begin, run_end = _groups(new_block | (np.diff(rank, prepend=-1) != 0))
        in_block, _, block_end = _groups(new_block)
        # Ranks fall on the way down, so that the last rank can only be that of the first run in a block.
        first_run = run + (rank == max_ranks - 1)
        entries = run[block_end - 1][in_block] - first_run + 1
        is_kept = (entries > 0) | (length < max_lengths)
        kept, new_place = np.flatnonzero(is_kept), is_kept.cumsum() - 1
        entries, first_run = entries[kept], first_run[kept]
        branch = np.repeat(np.arange(len(kept)), entries)
        its_run = np.arange(len(branch)) + (first_run - entries.cumsum() + entries)[branch]
        run_rank = rank[run_begin]
        low = np.flatnonzero((level[run_begin] >= block) & (run_rank < max_ranks - 1))
        low = low[_order(level[run_begin[low]] // block)]
        kept_node = node[own[kept]]
        values = {
            "node": kept_node,
            "leaf": column[kept],
            "by_length": _order(np.minimum(length[kept], max_lengths) * all_nodes + kept_node),
            "rank_branch": branch,
            "rank": run_rank[its_run],
            "rank_times": run_end[its_run] - np.maximum(run_begin[its_run], kept[branch]),
            "by_rank": _order(run_rank[its_run] * all_nodes + kept_node[branch]),
            "low_block": level[run_begin[low]] // block,
            "low_branch": new_place[run_begin[low]],
            "low_rank": run_rank[low],
            "low_times": run_end[low] - run_begin[low],
        }
        tensors = {name: torch.from_numpy(each.astype(np.int32)) for name, each in values.items()}
        reach = deepest > (depth // block + 1) * block
        upper = [
            _rows(node[reach & (depth // block == number)], start.shape)
            for number in range(int(level.max(initial=0)) // block)
        ]
        return cls(**tensors, upper=upper)


def _inverse(values: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Moves each value to its place; the places are a permutation."""
    moved = np.empty_like(values)
    moved[place] = values
    return moved


def _groups(is_first: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the group of each entry, and where each group begins and ends; ``is_first`` marks first entries."""
    begin = np.flatnonzero(is_first)
    return is_first.cumsum() - 1, begin, np.append(begin[1:], len(is_first))[: len(begin)]


def _order(key: np.ndarray) -> np.ndarray:
    """Sorts by a key and returns the order; entries with the same key keep theirs."""
    # Small numbers are sorted in half the time.
    small = key.max(initial=0) < 2**31
    return torch.from_numpy(key.astype(np.int32 if small else np.int64)).sort(stable=True).indices.numpy()


def _rows(node: np.ndarray, shape: tuple[int, int]) -> Tensor:
    """Converts ascending places in flattened ``[B, M]`` to places in each row, ``[B, nodes]``, padded with M."""
    sentence, column = node // shape[1], node % shape[1]
    count = np.bincount(sentence, minlength=shape[0])
    rows = np.full((shape[0], count.max(initial=0)), shape[1], np.int32)
    rows[sentence, np.arange(len(node)) - (count.cumsum() - count)[sentence]] = column
    return torch.from_numpy(rows)


@dataclass(frozen=True)
class NodeArrays:
    """The nodes of one forest, reduced to those that a model reads: arrays ``[M]`` int32, as of :class:`TreeBatch`."""

    label: np.ndarray
    start: np.ndarray
    end: np.ndarray
    depth: np.ndarray

    def __len__(self) -> int:
        return len(self.label)


def as_stored(forest: TreeSpans, labels: Dictionary) -> StoredTree:
    """A forest as it would be stored."""
    label = np.array([labels.index(label) for label in forest.labels], np.int32)
    return StoredTree(len(forest.leaves), label, *forest.spans.T)


class TreeReader:
    """Drops preterminals and collapses unary chains when an item is loaded, unless it should ``keep_unary`` nodes.

    A node of the result covers at least two leaves, so it has fewer nodes than leaves. A chain of constituents over the
    same leaves becomes one node with the label of the lowest.
    """

    def __init__(self, labels: Dictionary, keep_unary: bool = False):
        self.labels, self.keep_unary = labels, keep_unary

    def __call__(self, tree: StoredTree) -> NodeArrays:
        """Reduces one forest; nodes stay in preorder."""
        if self.keep_unary:
            return NodeArrays(*tree[1:])
        spans = np.stack([tree.start, tree.end], axis=1)
        kept = reduce_spans(spans)
        start, end = spans[kept].T
        return NodeArrays(tree.label[kept], start, end, reduced_depth(start, end))


def collate_trees(trees: Sequence[NodeArrays], pad: int) -> dict[str, Any]:
    """Stacks B forests, padded on the right with nodes of empty span and label ``pad``.

    Returns ``label``, ``start``, ``end`` and ``depth``, each ``[B, M]`` int64, and ``branches``, the lists of
    :class:`Branches` by name. Spans are relative to the sentence, on whichever side its leaves are padded.
    """
    shape = (len(trees), max((len(tree) for tree in trees), default=0))
    batch = {name: np.zeros(shape, np.int64) for name in ("label", "start", "end", "depth")}
    batch["label"].fill(pad)
    for row, tree in enumerate(trees):
        for name, array in batch.items():
            array[row, : len(tree)] = getattr(tree, name)
    branches = Branches.list(batch["start"], batch["end"], batch["depth"]).as_dict()
    return {**{name: torch.from_numpy(array) for name, array in batch.items()}, "branches": branches}


@dataclass(frozen=True)
class TreeBatch:
    """B forests over a padded batch of leaves."""

    label: Tensor  # ``[B, M]`` int64, ids in the label dictionary
    start: Tensor  # ``[B, M]`` int64, column of the first leaf of each span
    end: Tensor  # ``[B, M]`` int64, one past the column of the last leaf; equals ``start`` at padding
    depth: Tensor  # ``[B, M]`` int64, 0 at a root
    is_node: Tensor  # ``[B, M]`` bool, false at padding
    is_leaf: Tensor  # ``[B, N]`` bool, false at padding; true at EOS, which no node covers
    first_leaf: Tensor  # ``[B, 1]`` int64, column of the first leaf of each sentence
    branches: Branches  # as they were collated, with columns of leaves in sentences without padding

    @classmethod
    def from_net_input(cls, source_spans: dict[str, Any], src_tokens: Tensor, pad: int) -> TreeBatch:
        """A batch from what :func:`collate_trees` made, and tokens ``[B, N]``, padded with ``pad`` on either side."""
        is_leaf = src_tokens.ne(pad)
        # Sentences that are padded on the left begin later. No other place has to know it.
        first_leaf = first_tokens(is_leaf)
        return cls(
            label=source_spans["label"],
            start=source_spans["start"] + first_leaf,
            end=source_spans["end"] + first_leaf,
            depth=source_spans["depth"],
            is_node=source_spans["end"] > source_spans["start"],
            is_leaf=is_leaf,
            first_leaf=first_leaf,
            branches=Branches(**source_spans["branches"]),
        )

    def covers(self) -> Tensor:
        """Whether each node covers each leaf, ``[B, M, N]`` bool."""
        column = torch.arange(self.is_leaf.size(1), device=self.start.device)
        return (self.start[..., None] <= column) & (column < self.end[..., None])
