"""Folders for insertion-based tree decoding: their record in ``tree.json``, their check and their export."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from tree_fairseq.data_bin.kinds import (
    DataKind,
    Export,
    ExportRequest,
    count_problems,
    first_problems,
    register_kind,
    with_last_error,
)
from tree_fairseq.data_bin.manifest import Manifest, Section, register_section
from tree_fairseq.data_bin.token_files import load_dictionary, token_ids, token_words
from tree_fairseq.tree_insertion.dictionary import LabelWords, require_labels
from tree_fairseq.tree_insertion.slots import insert
from tree_fairseq.tree_insertion.store import InsertionStore, StoredInsertions, open_store
from tree_fairseq.tree_insertion.trajectories import Trajectory
from tree_fairseq.trees.notations import notation_named

TASK = "tree_insertion"
ORACLES = ("centrality", "exact")
STORE_SUFFIX = "insertion"  # of the trajectory files, after the prefix of the token files


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
        notation: in which targets, and the output, are written
        numbered: whether the labels of token files are numbered
        oracles: whose trajectories are stored, in this order
        trajectories: how many trajectories of each oracle a tree has
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

    def open_store(self, tokens: Path) -> InsertionStore:
        """Opens the trajectories beside token files, given by their prefix; see :func:`open_store`."""
        return open_store(Path(f"{tokens}.{STORE_SUFFIX}"), self.trajectory_count)


def export_insertion_trees(request: ExportRequest) -> Iterator[str]:
    """Writes the targets of a split in their notation, line by line; labels that the dictionary lacks are ``<unk>``."""
    folder = request.folder
    record = Manifest.load(folder).verify_section(InsertionRecord, folder, [request.split])
    notation = notation_named(record.notation)
    prefix = folder / record.splits[request.split].prefix
    stored = record.open_store(prefix)
    for index, words in enumerate(token_words(prefix, load_dictionary(folder, record.lang))):
        yield notation.write(record.words.decode(words, stored[index].parents[1:] - 1))


def insertion_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Yields a sentence for each problem of labels and trajectories."""
    record = manifest.section(InsertionRecord)
    if record is None:
        return
    dictionary = load_dictionary(folder, record.lang)
    require_labels(dictionary, record.words, str(folder / f"dict.{record.lang}.txt"))
    for split in record.splits.values():
        yield from with_last_error(_split_problems(folder / split.prefix, record, split, dictionary))


def _split_problems(tokens: Path, record: InsertionRecord, split: InsertionSplitRecord, dictionary) -> Iterator[str]:
    store = record.open_store(tokens)
    for number, ids in enumerate(token_ids(tokens, dictionary), start=1):
        # The first label of the dictionary is that of the root, which targets do not have.
        if not ((ids == dictionary.unk()) | ((ids > dictionary.nspecial) & (ids < len(dictionary)))).all():
            yield f"{tokens}, line {number}: a token id is not that of a label"
    nodes = int((store.node_counts - 1).sum(dtype=np.int64))
    counted = {"lines": len(store), "nodes": nodes, "distinct": len(store.distinct)}
    yield from count_problems(store.prefix, counted, split)
    yield from first_problems(store.prefix, _tree_problems(store))


def _tree_problems(store: InsertionStore) -> Iterator[tuple[int, str]]:
    """Lines whose arrays are not trees, or whose trajectories do not lead to them."""
    for line in store.distinct.tolist():
        try:
            problem = _problem_of(store[line])
        except (IndexError, ValueError) as error:
            problem = f"its arrays cannot be read ({error})"
        if problem:
            yield line + 1, problem


def _problem_of(stored: StoredInsertions) -> str | None:
    if not _is_tree(stored.parents.tolist()):
        return "its parents are not a tree in preorder"
    for number in range(stored.trajectory_count):
        if not _leads_to(stored.trajectory(number), stored.parents):
            return f"trajectory {number + 1} does not lead to its tree"
    return None


def _is_tree(parents: list[int]) -> bool:
    """Whether the nodes are in preorder under a root with one child."""
    path = [0]
    for node, parent in enumerate(parents[1:], start=1):
        while path and path[-1] != parent:
            path.pop()
        if not path or (parent == 0 and node > 1):
            return False
        path.append(node)
    return parents[0] == -1 and len(parents) > 1


def _leads_to(trajectory: Trajectory, target: np.ndarray) -> bool:
    """Whether the steps of a trajectory, each of which fills every slot that has an allowed set, end in the target."""
    nodes, parents = np.zeros(1, np.int64), np.full(1, -1)
    for step in range(trajectory.length + 1):
        slots, candidates, ranks = trajectory.allowed(step)
        chosen = trajectory.steps[candidates] == step + 1
        # The inserted node is among the best of its slot; ranks put these in some order.
        best = np.unique(slots[ranks == 0]).tolist()
        if not np.unique(slots).tolist() == slots[chosen].tolist() == best or (ranks < 0).any():
            return False
        sources, parents = insert(parents, slots[chosen].tolist())
        nodes = np.concatenate([nodes, candidates[chosen]])[sources]
    return np.array_equal(nodes, np.arange(len(target))) and np.array_equal(parents, target)


def _exports(manifest: Manifest) -> dict[str, Export]:
    return {} if manifest.section(InsertionRecord) is None else {"target": export_insertion_trees}


register_kind("insertion", DataKind(insertion_problems, _exports))
