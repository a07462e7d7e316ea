"""The check of a folder for insertion-based decoding, and its trees as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary

from tree_fairseq.data_bin.kinds import DataKind, Export, ExportRequest, register_kind
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.token_files import load_dictionary, token_ids, token_words
from tree_fairseq.errors import DataFolderError
from tree_fairseq.tree_insertion.dictionary import require_labels
from tree_fairseq.tree_insertion.record import STORE_SUFFIX, InsertionRecord, InsertionSplitRecord
from tree_fairseq.tree_insertion.store import InsertionStore, StoredInsertions, open_store
from tree_fairseq.tree_insertion.target import insert
from tree_fairseq.tree_insertion.trajectories import Trajectory
from tree_fairseq.trees.notations import notation_named

_PROBLEMS_SHOWN = 5


def insertion_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    """What is wrong with labels and trajectories, one sentence each; nothing where the folder has none.

    Args:
        folder: a preprocessed folder
        manifest: its manifest
    """
    record = manifest.section(InsertionRecord)
    if record is None:
        return
    try:
        dictionary = load_dictionary(folder, record.lang)
        require_labels(dictionary, record.words, str(folder / f"dict.{record.lang}.txt"))
    except DataFolderError as error:
        yield str(error)
        return
    for split in record.splits.values():
        tokens = folder / split.prefix
        try:
            store = open_store(Path(f"{tokens}.{STORE_SUFFIX}"), record.ways)
            for number, ids in enumerate(token_ids(tokens, dictionary), start=1):
                if not _are_labels(ids, dictionary):
                    yield f"{tokens}, line {number}: a token id is that of no label"
        except DataFolderError as error:
            yield str(error)
            continue
        yield from _count_problems(store, split)
        yield from _tree_problems(store)


def _are_labels(ids: np.ndarray, dictionary: Dictionary) -> bool:
    """Whether all ids are those of labels, or of unknown ones; the first label of the dictionary is the root's."""
    return bool(((ids == dictionary.unk()) | ((ids > dictionary.nspecial) & (ids < len(dictionary)))).all())


def _count_problems(store: InsertionStore, split: InsertionSplitRecord) -> Iterator[str]:
    counted = {
        "lines": len(store),
        "nodes": int((store.node_counts - 1).sum(dtype=np.int64)),
        "distinct": len(store.distinct),
    }
    for what, number in counted.items():
        if number != getattr(split, what):
            yield f"{store.prefix} has {number} {what} where {getattr(split, what)} were written"


def _tree_problems(store: InsertionStore) -> Iterator[str]:
    """The first few lines whose trees are none, or whose trajectories do not lead to them."""
    found = 0
    for line in store.distinct.tolist():
        try:
            problem = _problem_of(store[line])
        except (IndexError, ValueError) as error:
            problem = f"its arrays cannot be read ({error})"
        if problem:
            found += 1
            if found <= _PROBLEMS_SHOWN:
                yield f"{store.prefix}, line {line + 1}: {problem}"
    if found > _PROBLEMS_SHOWN:
        yield f"{store.prefix}: {found - _PROBLEMS_SHOWN} more such problems"


def _problem_of(stored: StoredInsertions) -> str | None:
    """What is wrong with the tree of a line or with a trajectory of it."""
    if not _is_tree(stored.parents.tolist()):
        return "its parents are no tree in preorder"
    for number in range(stored.ways):
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


def _leads_to(way: Trajectory, target: np.ndarray) -> bool:
    """Whether insertions into existing slots, one in each in which any is allowed, end in the target."""
    nodes, parents = np.zeros(1, np.int64), np.full(1, -1)
    for step in range(way.length + 1):
        here = slice(int(way.starts[step]), int(way.starts[step + 1]))
        slots, candidates, ranks = way.slots[here], way.candidates[here], way.ranks[here]
        chosen = way.steps[candidates] == step + 1
        # The chosen one is among the best, which ranks put in some order.
        if (
            not np.unique(slots).tolist() == slots[chosen].tolist() == np.unique(slots[ranks == 0]).tolist()
            or (ranks < 0).any()
        ):
            return False
        sources, parents = insert(parents, slots[chosen].tolist())
        nodes = np.concatenate([nodes, candidates[chosen]])[sources]
    return np.array_equal(nodes, np.arange(len(target))) and np.array_equal(parents, target)


def export_insertion_trees(request: ExportRequest) -> Iterator[str]:
    """Writes the targets of a split in their notation, line by line; labels that the dictionary lacks are ``<unk>``.

    Raises:
        DataFolderError: there are no such trees, or a file is damaged.
    """
    folder = request.folder
    record = Manifest.load(folder).verify_section(InsertionRecord, folder, [request.split])
    notation = notation_named(record.notation)
    prefix = folder / record.splits[request.split].prefix
    stored = open_store(Path(f"{prefix}.{STORE_SUFFIX}"), record.ways)
    for index, words in enumerate(token_words(prefix, load_dictionary(folder, record.lang))):
        yield notation.write(record.words.decode(words, stored[index].parents[1:] - 1))


def _exports(manifest: Manifest) -> dict[str, Export]:
    return {} if manifest.section(InsertionRecord) is None else {"target": export_insertion_trees}


register_kind("insertion", DataKind(insertion_problems, _exports))
