"""Folders for insertion-based tree decoding: trees with trajectories, their record in ``tree.json``, their export.

Trees and trajectories are in a memory-mapped indexed dataset of fairseq's, int32. ``PREFIX.bin`` has one item for each
different tree. ``PREFIX.idx`` points from each line to its item. Lines with equal trees have the same offset. An item
is

    ``[M, count, place, ..., parent, ..., trajectory, trajectory, ...]``

with M, the number of nodes including the root that decoding begins with; the number of trajectories; the places in the
item at which they begin; M parents in preorder (-1 for the root); and the trajectories
(:class:`tree_fairseq.tree_insertion.trajectories.Trajectory`) of T steps,

    ``[T, M steps, T + 2 starts, Q slots, Q candidates, Q ranks]``
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from tree_fairseq.data_bin.index_files import (
    checker_of,
    data_and_index,
    map_values,
    read_index_with_pointers,
    require_whole_index,
    write_index,
)
from tree_fairseq.data_bin.kinds import DataKind, Export, ExportRequest, register_kind
from tree_fairseq.data_bin.manifest import Manifest, Section, register_section
from tree_fairseq.data_bin.token_files import load_dictionary, token_lengths, token_words
from tree_fairseq.errors import CorruptFileError
from tree_fairseq.tree_insertion.dictionary import LabelWords
from tree_fairseq.tree_insertion.trajectories import Trajectory
from tree_fairseq.trees.notations import notation_named

TASK = "tree_insertion"
ORACLES = ("centrality", "exact")
STORE_SUFFIX = "insertion"  # of the trajectory files, after the prefix of the token files

_HEAD = 2
_BLOCK = 2**16  # trees whose lengths are computed at once
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
    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes of each line's tree, including the first root, and its trajectories; each is ``[lines]`` int32."""
        return self._values[self._starts], self._values[self._starts + 1]

    @functools.cached_property
    def sizes(self) -> np.ndarray:
        """Labels and brackets of each line's tree as :meth:`InsertionDictionary.sequence` writes it, ``[lines]`` int64.

        The root that decoding begins with is left out.
        """
        starts, items = np.unique(self._starts, return_inverse=True)
        blocks = [self._sequence_lengths(starts[at : at + _BLOCK]) for at in range(0, len(starts), _BLOCK)]
        return np.concatenate([np.zeros(0, np.int64), *blocks])[items]

    def _sequence_lengths(self, starts: np.ndarray) -> np.ndarray:
        """Returns the labels and brackets of the items that begin at ``starts``, ``[items]`` int64."""
        nodes = self._values[starts].astype(np.int64)
        firsts = starts + _HEAD + self._values[starts + 1]
        items = np.repeat(np.arange(len(starts)), nodes)
        own = np.arange(len(items)) - (nodes.cumsum() - nodes)[items]
        # In preorder, the parent of a first child is the node before it. The root and its only child do not count.
        is_first_child = (self._values[firsts[items] + own] == own - 1) & (own > 1)
        return nodes - 1 + 2 * np.bincount(items[is_first_child], minlength=len(starts))

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


def open_store(tokens: Path, trajectory_count: int) -> InsertionStore:
    """Opens the trajectories beside token files, given by their prefix, and compares both.

    Raises CorruptFileError if a file is missing or damaged, or if a tree has other numbers of nodes and trajectories.
    """
    store = InsertionStore(f"{tokens}.{STORE_SUFFIX}")
    lengths = token_lengths(tokens)
    if len(lengths) != len(store):
        raise CorruptFileError(f"{tokens} has {len(lengths)} lines, {store.prefix} has {len(store)}. {_REPAIR}")
    nodes, trajectories = store.counts
    differing = np.flatnonzero((nodes != lengths + 1) | (trajectories != trajectory_count))
    if len(differing):
        line = int(differing[0])
        raise CorruptFileError(
            f"{store.prefix}, line {line + 1}: {trajectories[line]} trajectories of a tree of {nodes[line] - 1} nodes, "
            f"where there should be {trajectory_count} of {lengths[line]} ({len(differing)} such lines). {_REPAIR}"
        )
    return store


@dataclass
class InsertionSplitRecord:
    """The targets of a split.

    ``prefix`` is the name of the token files without extension, such as ``train.nl-lf.lf``; ``files`` are their names
    and those of the trajectories. ``distinct`` trees are different. Nodes do not include the roots that decoding begins
    with: all ``nodes``, those of the ``largest`` tree, and those whose label is ``unknown`` to the dictionary.
    """

    prefix: str
    lines: int
    distinct: int
    nodes: int
    largest: int
    unknown: int
    files: list[str]


@register_section("insertion")
@dataclass
class InsertionRecord(Section):
    """The targets of a folder.

    Attributes:
        notation: that of targets and of output
        numbered: whether the labels of token files are numbered
        oracles: those whose trajectories are stored, in this order
        trajectories: number of trajectories of each oracle for a tree
        seed: of the choice between equally good nodes
    """

    contents: ClassVar[str] = "trajectories"
    missing: ClassVar[str] = "preprocess with --task tree_insertion"
    split_record = InsertionSplitRecord
    deciding = ("lang", "notation", "numbered", "oracles", "trajectories", "seed")

    lang: str
    notation: str
    numbered: bool
    oracles: list[str]
    trajectories: int
    seed: int
    splits: dict[str, InsertionSplitRecord] = field(default_factory=dict)

    @property
    def words(self) -> LabelWords:
        """Converts labels to the words of token files, and back."""
        return LabelWords(self.numbered)

    @property
    def trajectory_count(self) -> int:
        """Number of trajectories of each tree, over all oracles."""
        return len(self.oracles) * self.trajectories

    def first_of(self, oracle: str) -> int:
        """The index of an oracle's first trajectory among those of a tree."""
        return self.oracles.index(oracle) * self.trajectories

    def dictionaries(self, source_lang: str) -> list[str]:
        """Returns the names of the dictionaries of source and targets."""
        return [f"dict.{lang}.txt" for lang in (source_lang, self.lang)]


def export_insertion_trees(request: ExportRequest) -> Iterator[str]:
    """Writes the targets of a split in their notation, line by line; labels that the dictionary lacks are ``<unk>``."""
    folder = request.folder
    record = Manifest.load(folder).verify_section(InsertionRecord, folder, [request.split])
    notation = notation_named(record.notation)
    prefix = folder / record.splits[request.split].prefix
    stored = open_store(prefix, record.trajectory_count)
    for index, words in enumerate(token_words(prefix, load_dictionary(folder, record.lang))):
        yield notation.write(record.words.decode(words, stored[index].parents[1:] - 1))


def _exports(manifest: Manifest) -> dict[str, Export]:
    return {} if manifest.section(InsertionRecord) is None else {"target": export_insertion_trees}


register_kind("insertion", DataKind(_exports))
