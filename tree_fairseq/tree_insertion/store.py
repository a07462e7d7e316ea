"""Trees and their trajectories on disk: a memory-mapped indexed dataset of fairseq's, int32.

``PREFIX.bin`` holds one item for each different tree. ``PREFIX.idx`` points from each line to its item: lines with
equal trees have the same offset. An item is

    ``[M, count, place, ..., parent, ..., trajectory, trajectory, ...]``

with M, the number of nodes including the root that decoding begins with; the number of trajectories; the places in the
item at which they begin; M parents in preorder (-1 for the root); and the trajectories
(:class:`tree_fairseq.tree_insertion.trajectories.Trajectory`) of T steps,

    ``[T, M steps, T + 2 starts, Q slots, Q candidates, Q ranks]``
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tree_fairseq.data_bin.index_files import (
    checker_of,
    data_and_index,
    map_values,
    read_index_with_pointers,
    require_whole_index,
    write_index,
)
from tree_fairseq.data_bin.token_files import token_lengths
from tree_fairseq.errors import CorruptFileError, InputError
from tree_fairseq.tree_insertion.trajectories import Trajectory

logger = logging.getLogger(__name__)

_HEAD = 2
_BLOCK = 2**16  # trees whose lengths are computed at once
_SKIP = "--skip-invalid-size-inputs-valid-test"
_REPAIR = "Preprocess again, or run `tree-fairseq check` on the folder to see all problems"


def encode_item(parents: Sequence[int], trajectories: Sequence[Trajectory]) -> np.ndarray:
    """Encodes the parents of a tree, ``[M]``, and its trajectories as one item, int32."""
    bodies = [np.concatenate([[each.length], *vars(each).values()]) for each in trajectories]
    sizes = np.array([_HEAD + len(bodies) + len(parents), *map(len, bodies)])
    places = np.cumsum(sizes)[:-1]
    return np.concatenate([[len(parents), len(bodies)], places, parents, *bodies]).astype(np.int32)


def write_store(prefix: str | os.PathLike, items: Iterable[np.ndarray], lines: Sequence[int]) -> None:
    """Writes the different items and the item of each line of a split; the index last, when all items are on disk."""
    data_path, index_path = data_and_index(prefix)
    lengths = []
    with open(data_path, "wb") as file:
        for item in items:
            file.write(np.ascontiguousarray(item, np.int32).data)
            lengths.append(len(item))
        file.flush()
        os.fsync(file.fileno())
    sizes, numbers = np.array(lengths, np.int64), np.array(lines, np.int64)
    write_index(index_path, sizes[numbers], (np.cumsum(sizes) - sizes)[numbers])


class InsertionStore:
    """Reads the trees and trajectories of a split by line.

    Opening maps the files, ``prefix`` with ``.bin`` and ``.idx``, and raises CorruptFileError if one is missing, has
    another format, or was cut off. Reading makes views into the map. A store can be pickled; workers of a data loader
    open it again.
    """

    def __init__(self, prefix: str | os.PathLike):
        self.prefix = os.fspath(prefix)
        data_path, index_path = data_and_index(prefix)
        value_bytes, self._sizes, pointers = read_index_with_pointers(index_path)
        if value_bytes != 4 or (pointers % 4).any() or (self._sizes <= _HEAD).any():
            raise CorruptFileError(f"{index_path} is not the index of a trajectory file. {_REPAIR}")
        self._starts = pointers // 4
        self._values = map_values(data_path, int((self._starts + self._sizes).max(initial=0)))
        require_whole_index(index_path)
        self._blocks = checker_of(data_path, self._values)

    def __reduce__(self):
        return type(self), (self.prefix,)

    def __len__(self) -> int:
        return len(self._sizes)

    def __getitem__(self, index: int) -> StoredInsertions:
        return StoredInsertions(self.item(index))

    @property
    def node_counts(self) -> np.ndarray:
        """Nodes of each line's tree, including the root that decoding begins with, ``[lines]`` int32."""
        return self._values[self._starts]

    @functools.cached_property
    def sizes(self) -> np.ndarray:
        """Labels and brackets of each line's tree as :meth:`InsertionDictionary.sequence` writes it, ``[lines]`` int64.

        The root that decoding begins with is left out.
        """
        starts, items = np.unique(self._starts, return_inverse=True)
        blocks = [self._sequence_lengths(starts[at : at + _BLOCK]) for at in range(0, len(starts), _BLOCK)]
        return np.concatenate([np.zeros(0, np.int64), *blocks])[items]

    def _sequence_lengths(self, starts: np.ndarray) -> np.ndarray:
        """The same of the different items that begin at these places, ``[items]`` int64."""
        nodes = self._values[starts].astype(np.int64)
        firsts = starts + _HEAD + self._values[starts + 1]
        items = np.repeat(np.arange(len(starts)), nodes)
        own = np.arange(len(items)) - (nodes.cumsum() - nodes)[items]
        # In preorder, the parent of a first child is the node before it. The root and its only child do not count.
        is_first_child = (self._values[firsts[items] + own] == own - 1) & (own > 1)
        return nodes - 1 + 2 * np.bincount(items[is_first_child], minlength=len(starts))

    @property
    def trajectory_counts(self) -> np.ndarray:
        """Trajectories of each line's tree, ``[lines]`` int32."""
        return self._values[self._starts + 1]

    @property
    def distinct(self) -> np.ndarray:
        """The first line of each different item, in the order of the items, int64."""
        return np.unique(self._starts, return_index=True)[1]

    def item(self, index: int) -> np.ndarray:
        """Returns the item of a line, counted from 0; raises IndexError beyond the last."""
        if not 0 <= index < len(self._sizes):
            raise IndexError(f"line {index} of {len(self._sizes)}")
        start = int(self._starts[index])
        end = start + int(self._sizes[index])
        if self._blocks is not None and self._blocks.unread:
            self._blocks.require(4 * start, 4 * end)
        return self._values[start:end]


class StoredInsertions:
    """The tree of one line, as ``parents`` ``[M]`` int32 in preorder, -1 for the root, and its trajectories."""

    def __init__(self, item: np.ndarray):
        self._item = item
        nodes, self.trajectory_count = item[:_HEAD].tolist()
        first = _HEAD + self.trajectory_count
        self.parents = item[first : first + nodes]

    def trajectory(self, number: int) -> Trajectory:
        """Returns one of the trajectories; its arrays are int32."""
        if not 0 <= number < self.trajectory_count:
            raise IndexError(f"trajectory {number} of {self.trajectory_count}")
        body = self._item[int(self._item[_HEAD + number]) :]
        nodes, length = len(self.parents), int(body[0])
        steps, starts, rest = np.split(body[1:], [nodes, nodes + length + 2])
        slots, candidates, ranks = rest[: 3 * int(starts[-1])].reshape(3, -1)
        return Trajectory(steps, starts, slots, candidates, ranks)


def open_store(prefix: Path, trajectory_count: int) -> InsertionStore:
    """Opens the trajectories of a split, of which every tree has so many, and compares them with its token files.

    Raises CorruptFileError if a file is missing or damaged; of files of other trees it names the first line that
    differs.
    """
    tokens = prefix.with_suffix("")
    store = InsertionStore(prefix)
    lengths = token_lengths(tokens)
    if len(lengths) != len(store):
        raise CorruptFileError(f"{tokens} has {len(lengths)} lines, {prefix} has {len(store)}. {_REPAIR}")
    counts = store.trajectory_counts
    differing = np.flatnonzero((store.node_counts != lengths + 1) | (counts != trajectory_count))
    if len(differing):
        line = int(differing[0])
        raise CorruptFileError(
            f"{prefix}, line {line + 1}: {counts[line]} trajectories of a tree of {store.node_counts[line] - 1} nodes, "
            f"where there should be {trajectory_count} of {lengths[line]} ({len(differing)} such lines). {_REPAIR}"
        )
    return store


@dataclass(frozen=True)
class TargetLimit:
    """The positions of a decoder that reads trees as sequences of labels and brackets.

    Attributes:
        positions: how many it has, ``--max-target-positions``
        added: how many of them are for tokens beside those of a tree, such as EOS
    """

    positions: int
    added: int

    @property
    def longest(self) -> int:
        """The largest number of labels and brackets of a tree."""
        return self.positions - self.added

    def check(self, split: str, stores: Sequence[InsertionStore], skips: bool) -> None:
        """Looks for trees of a split that are too long; ``skips`` says whether they are left out.

        If they are, this logs how many there are, else it raises InputError about the first one.
        """
        too_long = [np.flatnonzero(store.sizes > self.longest) for store in stores]
        count = sum(map(len, too_long))
        if not count:
            return
        store, line = next((store, int(found[0])) for store, found in zip(stores, too_long) if len(found))
        path = Path(store.prefix).with_suffix("")  # of the token files
        if skips:
            total = sum(map(len, stores))
            logger.warning(
                "[%s] %d of %d trees have more than %d labels and brackets (--max-target-positions %d) and are "
                "skipped; the first is %s, line %d",
                *(split, count, total, self.longest, self.positions, path, line + 1),
            )
            return
        lines = "1 line is" if count == 1 else f"{count} lines are"
        most = max(int(store.sizes.max(initial=0)) for store in stores) + self.added
        raise InputError(
            f"the tree has {store.sizes[line]} labels and brackets, and the model has positions for {self.longest} "
            f"(--max-target-positions {self.positions}; {lines} too long)",
            path,
            line + 1,
            hint=f"Train with --max-target-positions {most}, or skip them with {_SKIP}.",
        )
