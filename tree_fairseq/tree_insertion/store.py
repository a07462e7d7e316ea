"""Trees with trajectories on disk: lines become trees, an oracle draws their trajectories, and a split is read by line.

Trees and trajectories are in a memory-mapped indexed dataset of fairseq's, int32. ``PREFIX.bin`` has one item for each
different tree. ``PREFIX.idx`` points from each line to its item. Lines with equal trees have the same offset. An item
is

    ``[M, count, place, ..., parent, ..., trajectory, trajectory, ...]``

with M, the number of nodes including the root that decoding begins with; the number of trajectories; the places in the
item at which they begin; M parents in preorder (-1 for the root); and the trajectories
(:class:`tree_fairseq.tree_insertion.oracles.Trajectory`) of T steps,

    ``[T, M steps, T + 2 starts, Q slots, Q candidates, Q ranks]``
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tree_fairseq.data_bin.index_files import data_and_index, map_values, read_index_with_pointers, write_index
from tree_fairseq.errors import CorruptFileError, InputError, SymbolTreeError
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.tree_insertion import oracles
from tree_fairseq.tree_insertion.dictionary import label_of, words_of
from tree_fairseq.tree_insertion.target import ROOT_LABEL, TargetTree
from tree_fairseq.trees.notations import Notation
from tree_fairseq.trees.text import Chunk, FaultyLines, TextInput, chunk_lines, outcome_or_error
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)

ORACLES: dict[str, type[oracles.CentralityOracle]] = {
    "centrality": oracles.CentralityOracle,
    "program": oracles.ProgramOracle,
    "tree-distance": oracles.TreeDistanceOracle,
}

_HEAD = 2
_TREES_AT_A_TIME = 64
REPAIR = "Preprocess again, or run `tree-fairseq check` on the folder to see all problems"


class EncodedTree(NamedTuple):
    """A target tree as it is stored; two of them are equal if and only if their trees are."""

    words: str  # those of its labels in preorder, separated by blanks
    parents: bytes  # indices under the root that decoding begins with, as bytes of ``[M]`` int32

    @classmethod
    def of(cls, tree: Tree) -> EncodedTree:
        """Encodes a tree; raises ReservedMarkError if a label cannot be a word."""
        return cls(" ".join(words_of(tree)), np.array(TargetTree.of(tree).parents, np.int32).tobytes())

    @property
    def nodes(self) -> int:
        """Number of nodes, without the root that decoding begins with."""
        return len(self.parents) // 4 - 1

    def target(self) -> TargetTree:
        """Returns the tree under the root that decoding begins with."""
        labels = [ROOT_LABEL, *map(label_of, self.words.split(" "))]
        return TargetTree(labels, np.frombuffer(self.parents, np.int32).tolist())


def read_chunk(notation: Notation, most_nodes: int, path: Path, chunk: Chunk) -> list[EncodedTree]:
    """Reads consecutive lines. The error names all lines that are not trees that can be stored."""
    found, faults = [], FaultyLines()
    for number, line in chunk_lines(path, chunk):
        try:
            found.append(EncodedTree.of(notation.read(line)))
            if (nodes := found[-1].nodes) > most_nodes:
                message = f"a tree of {nodes} nodes, more than {most_nodes}"
                raise SymbolTreeError(message, hint="Leave the line and its parallel line out.")
        except InputError as error:
            faults.add(error.at(path, number))
    faults.raise_all()
    return found


@dataclass
class EncodedText:
    """The trees of one file, line by line, and how often each word occurs."""

    lines: list[EncodedTree] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, text: TextInput, notation: Notation, most_nodes: int, path: Path, pool: ProcessPool) -> EncodedText:
        """Reads the trees of a file, each of at most ``most_nodes`` nodes; writes their words as lines of ``path``."""
        found, faults = cls(), FaultyLines()
        known: dict[EncodedTree, EncodedTree] = {}
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            read = partial(outcome_or_error, partial(read_chunk, notation, most_nodes, text.path))
            for trees in faults.without_errors(pool.map(read, text.chunks, f"read {text.path}")):
                for tree in trees:
                    file.write(tree.words + "\n")
                    found.counts.update(tree.words.split(" "))
                    # Equal trees share one object.
                    found.lines.append(known.setdefault(tree, tree))
        faults.raise_all()
        counts = len(found.lines), len(known), sum(found.counts.values()), found.largest
        message = "[insertion] %s: %d trees, %d of them different, %d nodes, at most %d in a tree"
        logger.info(message, text.path, *counts)
        return found

    @property
    def largest(self) -> int:
        """The number of nodes of the largest tree; 0 without trees."""
        return max((tree.nodes for tree in self.lines), default=0)


@dataclass(frozen=True)
class TrajectorySampler:
    """Draws ``count`` trajectories of each tree by an oracle. They depend on the tree and the seed alone."""

    oracle: str
    count: int
    seed: int = 1

    def item(self, tree: EncodedTree) -> np.ndarray:
        """Returns a tree with its trajectories as they are stored."""
        digest = hashlib.sha256(tree.words.encode() + b"\0" + tree.parents).digest()
        generator = np.random.default_rng([self.seed, int.from_bytes(digest[:8], "big")])
        target = tree.target()
        return encode_item(target.parents, oracles.trajectories(ORACLES[self.oracle](target), self.count, generator))

    def items(self, trees: Sequence[EncodedTree]) -> list[np.ndarray]:
        """Returns the items of several trees, a task for one process."""
        return [self.item(tree) for tree in trees]


def write_stores(texts: Mapping[Path, Sequence[EncodedTree]], sampler: TrajectorySampler, pool: ProcessPool) -> None:
    """Writes the store of each split under its prefix, with one item for equal trees."""
    begun, total = time.perf_counter(), 0
    for prefix, lines in texts.items():
        numbers = {tree: number for number, tree in enumerate(dict.fromkeys(lines))}
        trees = list(numbers)
        groups = [trees[first : first + _TREES_AT_A_TIME] for first in range(0, len(trees), _TREES_AT_A_TIME)]
        found = pool.map(sampler.items, groups, f"looked for trajectories of {prefix.name}")
        write_store(prefix, itertools.chain.from_iterable(found), [numbers[tree] for tree in lines])
        total += len(trees)
    seconds = time.perf_counter() - begun
    message = "[insertion] %d trajectories of each of %d trees in %.1f s, %.2f ms a tree"
    logger.info(message, sampler.count, total, seconds, 1000 * seconds / max(1, total))


def encode_item(parents: Sequence[int], drawn: Sequence[oracles.Trajectory]) -> np.ndarray:
    """Encodes the parents of a tree, ``[M]``, and its ``drawn`` trajectories as one item, int32."""
    bodies = [np.concatenate([[each.length], *vars(each).values()]) for each in drawn]
    sizes = np.array([_HEAD + len(bodies) + len(parents), *map(len, bodies)])
    places = np.cumsum(sizes)[:-1]
    return np.concatenate([[len(parents), len(bodies)], places, parents, *bodies]).astype(np.int32)


def write_store(prefix: str | os.PathLike, items: Iterable[np.ndarray], lines: Sequence[int]) -> None:
    """Writes the different items and the item of each line of a split, the index last."""
    data_path, index_path = data_and_index(prefix)
    lengths = []
    with open(data_path, "wb") as file:
        for item in items:
            file.write(np.ascontiguousarray(item, np.int32).data)
            lengths.append(len(item))
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
        self._starts = pointers // 4
        # Lines share items, which follow each other without gaps.
        starts, first, item = np.unique(self._starts, return_index=True, return_inverse=True)
        sizes = self._sizes[first]
        is_right = np.array_equal(starts, np.cumsum(sizes) - sizes) and np.array_equal(sizes[item], self._sizes)
        if value_bytes != 4 or (pointers % 4).any() or (self._sizes <= _HEAD).any() or not is_right:
            raise CorruptFileError(f"{index_path} is not the index of a trajectory file. {REPAIR}")
        self._values = map_values(data_path, int((self._starts + self._sizes).max(initial=0)))

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

    def item(self, index: int) -> np.ndarray:
        """Returns the item of a line, counted from 0; raises IndexError beyond the last."""
        start = int(self._starts[index])
        return self._values[start : start + int(self._sizes[index])]


class StoredInsertions:
    """The tree of one line, as ``parents`` ``[M]`` int32 in preorder, -1 for the root, and its trajectories."""

    def __init__(self, item: np.ndarray):
        self._item = item
        nodes, self.trajectory_count = item[:_HEAD].tolist()
        first = _HEAD + self.trajectory_count
        self.parents = item[first : first + nodes]

    def trajectory(self, number: int) -> oracles.Trajectory:
        """Returns one of the trajectories; its arrays are int32."""
        body = self._item[int(self._item[_HEAD + number]) :]
        nodes, length = len(self.parents), int(body[0])
        steps, starts, rest = np.split(body[1:], [nodes, nodes + length + 2])
        slots, candidates, ranks = rest[: 3 * int(starts[-1])].reshape(3, -1)
        return oracles.Trajectory(steps, starts, slots, candidates, ranks)
