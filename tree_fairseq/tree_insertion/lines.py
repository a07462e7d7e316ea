"""From lines of text to stored trajectories, which processes read and draw many trees at a time."""

from __future__ import annotations

import hashlib
import itertools
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tree_fairseq.errors import InputError, SymbolTreeError
from tree_fairseq.support.processes import ProcessPool
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_insertion.dictionary import LabelWords
from tree_fairseq.tree_insertion.folder import InsertionRecord
from tree_fairseq.tree_insertion.oracles import CentralityOracle, ExactOracle
from tree_fairseq.tree_insertion.store import InsertionStore, encode_item, write_store
from tree_fairseq.tree_insertion.target import ROOT_LABEL, TargetTree
from tree_fairseq.tree_insertion.trajectories import trajectories
from tree_fairseq.trees.notations import Notation
from tree_fairseq.trees.text import Chunk, TextInput, chunk_lines
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)

_ORACLES = {"centrality": CentralityOracle, "exact": ExactOracle}
_TREES_AT_A_TIME = 64


class EncodedTree(NamedTuple):
    """A target tree as it is stored; two of them are equal if and only if their trees are.

    ``words`` are those of its labels in preorder, separated by blanks; ``parents`` the indices of the parents, under
    the root that decoding begins with, as bytes of ``[M]`` int32.
    """

    words: str
    parents: bytes

    @classmethod
    def of(cls, tree: Tree, words: LabelWords) -> EncodedTree:
        """Encodes a tree; raises ReservedMarkError if a label cannot be a word."""
        return cls(" ".join(words.encode(tree)), np.array(TargetTree.of(tree).parents, np.int32).tobytes())

    @property
    def nodes(self) -> int:
        """Number of nodes, without the root that decoding begins with."""
        return len(self.parents) // 4 - 1

    def target(self, words: LabelWords) -> TargetTree:
        """Returns the tree under the root that decoding begins with."""
        labels = [ROOT_LABEL, *map(words.label, self.words.split(" "))]
        return TargetTree(labels, np.frombuffer(self.parents, np.int32).tolist())


@dataclass(frozen=True)
class LineReader:
    """Reads lines in a notation as trees of at most ``max_nodes`` nodes."""

    notation: Notation
    words: LabelWords
    max_nodes: int

    def chunk(self, path: Path, chunk: Chunk) -> list[EncodedTree]:
        """Reads consecutive lines. The error of a line that is not a tree that can be stored names file and line."""
        found = []
        for number, line in chunk_lines(path, chunk):
            tree = self.notation.read(line, path=path, line_number=number)
            try:
                found.append(EncodedTree.of(tree, self.words))
            except InputError as error:
                raise error.at(path, number) from None
            if (nodes := found[-1].nodes) > self.max_nodes:
                hint = "Leave the line and its parallel line out, or raise --max-target-nodes, which is "
                raise SymbolTreeError(f"a tree of {nodes} nodes", path, number, hint=f"{hint}{self.max_nodes}.")
        return found


@dataclass
class EncodedText:
    """The trees of one file, line by line, and how often each word occurs."""

    lines: list[EncodedTree] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, text: TextInput, reader: LineReader, path: Path, pool: ProcessPool) -> EncodedText:
        """Reads the trees of a file, and writes the words of each as a line of the file ``path``."""
        found = cls()
        known: dict[EncodedTree, EncodedTree] = {}
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            read = partial(reader.chunk, text.path)
            for trees in pool.map(read, text.chunks, f"read {text.path}"):
                for tree in trees:
                    file.write(tree.words + "\n")
                    found.counts.update(tree.words.split(" "))
                    # Equal trees share one object.
                    found.lines.append(known.setdefault(tree, tree))
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
    """Draws the trajectories of trees, ``count`` of each oracle. They depend on the tree and the seed alone."""

    words: LabelWords
    oracles: tuple[str, ...]
    count: int
    seed: int

    @classmethod
    def of(cls, record: InsertionRecord) -> TrajectorySampler:
        """Returns the sampler that a folder was made with."""
        return cls(record.words, tuple(record.oracles), record.trajectories, record.seed)

    def item(self, tree: EncodedTree) -> np.ndarray:
        """Returns a tree with its trajectories as they are stored; those of the first oracle come first."""
        digest = hashlib.sha256(tree.words.encode() + b"\0" + tree.parents).digest()
        generator = np.random.default_rng([self.seed, int.from_bytes(digest[:8], "big")])
        target = tree.target(self.words)
        drawn = [trajectories(_ORACLES[name](target), self.count, generator) for name in self.oracles]
        return encode_item(target.parents, list(itertools.chain(*drawn)))

    def items(self, trees: Sequence[EncodedTree]) -> list[np.ndarray]:
        """Returns the items of several trees, a task for one process."""
        return [self.item(tree) for tree in trees]


def write_stores(texts: Mapping[Path, Sequence[EncodedTree]], sampler: TrajectorySampler, pool: ProcessPool) -> None:
    """Writes the store of each split under its prefix; the trajectories of a tree in several splits are drawn once."""
    begun = time.perf_counter()
    trees = list(dict.fromkeys(itertools.chain(*texts.values())))
    groups = [trees[first : first + _TREES_AT_A_TIME] for first in range(0, len(trees), _TREES_AT_A_TIME)]
    new_items = itertools.chain.from_iterable(pool.map(sampler.items, groups, "looked for trajectories"))
    written: dict[EncodedTree, tuple[InsertionStore, int]] = {}
    for prefix, lines in texts.items():
        numbers = {tree: number for number, tree in enumerate(dict.fromkeys(lines))}
        # New items come in the order in which their trees occur here.
        items = (written[tree][0].item(written[tree][1]) if tree in written else next(new_items) for tree in numbers)
        write_store(prefix, items, [numbers[tree] for tree in lines])
        store = InsertionStore(prefix)
        written |= {tree: (store, line) for tree, line in zip_equal(numbers, store.distinct.tolist())}
    seconds, count = time.perf_counter() - begun, sampler.count * len(sampler.oracles)
    message = "[insertion] %d trajectories of each of %d trees in %.1f s, %.2f ms a tree"
    logger.info(message, count, len(trees), seconds, 1000 * seconds / max(1, len(trees)))
