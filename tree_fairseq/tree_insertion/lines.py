"""Lines of trees to lines of labels, a chunk of lines at a time and in several processes; equal trees are found."""

from __future__ import annotations

import hashlib
import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tree_fairseq.data_bin.inputs import Chunk, TextInput, chunk_lines
from tree_fairseq.errors import InputError, SymbolTreeError
from tree_fairseq.parsing.worker_pool import map_in_processes
from tree_fairseq.tree_insertion.dictionary import LabelWords
from tree_fairseq.tree_insertion.folder import InsertionRecord
from tree_fairseq.tree_insertion.oracles import CentralityOracle, ExactOracle
from tree_fairseq.tree_insertion.store import InsertionStore, InsertionStoreWriter, encode_item
from tree_fairseq.tree_insertion.target import ROOT_LABEL, TargetTree
from tree_fairseq.tree_insertion.trajectories import trajectories
from tree_fairseq.trees.notations import Notation
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)


class EncodedTree(NamedTuple):
    """A tree in the form in which it is stored; equal trees, and no others, are equal.

    Attributes:
        words: of its labels in preorder, separated by blanks
        parents: the parents' places as bytes of ``[N]`` int32, under the root that decoding begins with
    """

    words: str
    parents: bytes

    @classmethod
    def of(cls, tree: Tree, words: LabelWords) -> EncodedTree:
        """A tree as it is stored.

        Raises:
            ReservedMarkError: a label cannot be a word
        """
        return cls(" ".join(words.encode(tree)), np.array(TargetTree.of(tree).parents, np.int32).tobytes())

    @property
    def nodes(self) -> int:
        """Nodes of the tree itself."""
        return len(self.parents) // 4 - 1

    def target(self, words: LabelWords) -> TargetTree:
        """The tree under the root that decoding begins with."""
        labels = [ROOT_LABEL, *map(words.label, self.words.split(" "))]
        return TargetTree(labels, np.frombuffer(self.parents, np.int32).tolist())


@dataclass(frozen=True)
class LineReader:
    """How lines become trees.

    Attributes:
        notation: how they are written
        words: how labels will be
        most_nodes: that a tree may have
    """

    notation: Notation
    words: LabelWords
    most_nodes: int

    def chunk(self, path: Path, chunk: Chunk) -> list[EncodedTree]:
        """The trees of consecutive lines.

        Raises:
            SymbolTreeError: a line is no tree, or one that cannot be stored; it names the file and the line
        """
        return [self._read(line, path, number) for number, line in chunk_lines(path, chunk)]

    def _read(self, line: str, path: Path, number: int) -> EncodedTree:
        tree = self.notation.read(line, path=path, line_number=number)
        try:
            written = EncodedTree.of(tree, self.words)
        except InputError as error:
            raise error.at(path, number) from None
        if written.nodes > self.most_nodes:
            raise SymbolTreeError(
                f"a tree of {written.nodes} nodes",
                path,
                number,
                hint=f"Leave the line and its parallel line out, or raise --max-target-nodes, which is {self.most_nodes}.",
            )
        return written


@dataclass
class InsertionText:
    """The trees of one file.

    Attributes:
        path: the words of their labels, one tree a line
        lines: for each line, its tree's number in the registry
        counts: how often each word occurs
        largest: nodes of the largest tree
    """

    path: Path
    lines: list[int]
    counts: Counter[str]
    largest: int

    @property
    def nodes(self) -> int:
        """Nodes of all trees."""
        return self.counts.total()


@dataclass
class TreeRegistry:
    """All different trees of a command, in the order in which they were met.

    Attributes:
        numbers: number of each
    """

    numbers: dict[EncodedTree, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    def read(self, text: TextInput, reader: LineReader, path: Path, workers: int) -> InsertionText:
        """Reads the trees of a file and writes their words to another.

        Args:
            text: the file
            reader: of its lines
            path: the file to write
            workers: processes

        Raises:
            SymbolTreeError: a line is no tree, or one that cannot be stored; it names the file and the line
            WorkerDiedError: a process was killed
        """
        lines: list[int] = []
        counts: Counter[str] = Counter()
        largest = 0
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            for trees in map_in_processes(partial(reader.chunk, text.path), text.chunks, workers, f"read {text.path}"):
                for tree in trees:
                    file.write(tree.words + "\n")
                    counts.update(tree.words.split(" "))
                    largest = max(largest, tree.nodes)
                    lines.append(self.numbers.setdefault(tree, len(self.numbers)))
        found = InsertionText(path, lines, counts, largest)
        logger.info(
            "[insertion] %s: %d trees, %d of them different, %d nodes, at most %d in a tree",
            text.path,
            len(lines),
            len(set(lines)),
            found.nodes,
            largest,
        )
        return found


_ORACLES = {"centrality": CentralityOracle, "exact": ExactOracle}
_TREES_AT_A_TIME = 64


@dataclass(frozen=True)
class TrajectorySampler:
    """Makes the items of trees.

    Attributes:
        words: how labels are written
        oracles: names, in order
        count: trajectories of each
        seed: of what is drawn
    """

    words: LabelWords
    oracles: tuple[str, ...]
    count: int
    seed: int

    @classmethod
    def of(cls, record: InsertionRecord) -> TrajectorySampler:
        """What a folder's record asks for."""
        return cls(record.words, tuple(record.oracles), record.trajectories, record.seed)

    def item(self, tree: EncodedTree) -> np.ndarray:
        """The item of a tree, with all trajectories of the first oracle first."""
        digest = hashlib.sha256(tree.words.encode() + b"\0" + tree.parents).digest()
        generator = np.random.default_rng([self.seed, int.from_bytes(digest[:8], "big")])
        target = tree.target(self.words)
        drawn = [
            trajectory
            for name in self.oracles
            for trajectory in trajectories(_ORACLES[name](target), self.count, generator)
        ]
        return encode_item(target.parents, drawn)

    def items(self, trees: Sequence[EncodedTree]) -> list[np.ndarray]:
        """The items of some trees."""
        return [self.item(tree) for tree in trees]


def store_distinct(trees: Sequence[EncodedTree], made: TrajectorySampler, prefix: Path, workers: int) -> InsertionStore:
    """Makes the items of all different trees of a command.

    Args:
        trees: each of them once
        made: what is wanted
        prefix: of the store to write
        workers: processes

    Raises:
        WorkerDiedError: a process was killed
    """
    begun = time.perf_counter()
    with InsertionStoreWriter(prefix) as writer:
        for item in _items(trees, made, workers):
            writer.add(item)
    seconds = time.perf_counter() - begun
    logger.info(
        "[insertion] %d trajectories of each of %d trees in %.1f s, %.2f ms a tree",
        made.count * len(made.oracles),
        len(trees),
        seconds,
        1000 * seconds / max(1, len(trees)),
    )
    return InsertionStore(prefix)


def _items(trees: Sequence[EncodedTree], made: TrajectorySampler, workers: int) -> Iterator[np.ndarray]:
    groups = [trees[first : first + _TREES_AT_A_TIME] for first in range(0, len(trees), _TREES_AT_A_TIME)]
    for items in map_in_processes(made.items, groups, workers, "looked for trajectories"):
        yield from items


def write_lines(distinct: InsertionStore, lines: Sequence[int], prefix: Path) -> InsertionStore:
    """Writes the store of a split.

    Args:
        distinct: items of all different trees
        lines: for each line, which of them is its own
        prefix: of the store to write
    """
    own: dict[int, int] = {}
    with InsertionStoreWriter(prefix) as writer:
        for number in lines:
            if number in own:
                writer.repeat(own[number])
            else:
                own[number] = writer.add(distinct.item(number))
    return InsertionStore(prefix)
