"""Folders for insertion-based tree decoding: their record in ``tree.json``, their trajectories, their export."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from tree_fairseq.data_bin.manifest import Export, Manifest, Section, register_section
from tree_fairseq.data_bin.token_files import load_dictionary, token_lengths, token_words
from tree_fairseq.errors import CorruptFileError
from tree_fairseq.tree_insertion.dictionary import tree_of_words
from tree_fairseq.tree_insertion.store import REPAIR, InsertionStore
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

TASK = "tree_insertion"
STORE_SUFFIX = "insertion"  # of the trajectory files, after the prefix of the token files


def open_store(tokens: Path, trajectory_count: int) -> InsertionStore:
    """Opens the trajectories beside token files, given by their prefix, and compares both.

    Raises CorruptFileError if a file is missing or damaged, or if a tree has other numbers of nodes and trajectories.
    """
    store = InsertionStore(f"{tokens}.{STORE_SUFFIX}")
    lengths = token_lengths(tokens)
    if len(lengths) != len(store):
        raise CorruptFileError(f"{tokens} has {len(lengths)} lines, {store.prefix} has {len(store)}. {REPAIR}")
    nodes, trajectories = store.counts
    differing = np.flatnonzero((nodes != lengths + 1) | (trajectories != trajectory_count))
    if len(differing):
        line = int(differing[0])
        raise CorruptFileError(
            f"{store.prefix}, line {line + 1}: {trajectories[line]} trajectories of a tree of {nodes[line] - 1} nodes, "
            f"where there should be {trajectory_count} of {lengths[line]} ({len(differing)} such lines). {REPAIR}"
        )
    return store


@dataclass
class InsertionSplitRecord:
    """The targets of a split. Nodes do not include the roots that decoding begins with."""

    prefix: str  # the name of the token files without extension, such as ``train.nl-lf.lf``
    lines: int
    distinct: int  # different trees
    nodes: int
    largest: int  # nodes of the largest tree
    unknown: int  # nodes whose label the dictionary lacks
    files: list[str]  # token files and trajectories


@register_section("insertion")
@dataclass
class InsertionRecord(Section):
    """The targets of a folder."""

    contents: ClassVar[str] = "trajectories"
    missing: ClassVar[str] = "preprocess with --task tree_insertion"
    split_record = InsertionSplitRecord
    deciding = ("lang", "notation", "numbered", "oracles", "trajectories", "seed")

    lang: str
    notation: str  # that of targets and of output
    # the one whose trajectories are stored; older folders have a second one, which is gone, after it
    oracles: list[str]
    trajectories: int  # number of trajectories of each oracle for a tree
    numbered: bool = True  # whether the labels of token files are numbered, as all are since version 1
    seed: int = 1  # of the choice between equally good nodes
    splits: dict[str, InsertionSplitRecord] = field(default_factory=dict)

    @property
    def trajectory_count(self) -> int:
        """Number of trajectories of each tree, over all oracles."""
        return len(self.oracles) * self.trajectories

    def dictionaries(self, source_lang: str) -> list[str]:
        """Returns the names of the dictionaries of source and targets."""
        return [f"dict.{lang}.txt" for lang in (source_lang, self.lang)]

    def exports(self) -> dict[str, Export]:
        """The targets are trees, although they are no symbols."""
        return {"target": export_insertion_trees}


def insertion_trees(folder: Path, split: str) -> Iterator[Tree]:
    """Yields the targets of a split; labels that the dictionary lacks are ``<unk>``."""
    record = Manifest.load(folder).verify_section(InsertionRecord, folder, [split])
    prefix = folder / record.splits[split].prefix
    stored = open_store(prefix, record.trajectory_count)
    for index, words in enumerate(token_words(prefix, load_dictionary(folder, record.lang))):
        yield tree_of_words(words, stored[index].parents[1:] - 1)


def export_insertion_trees(folder: Path, split: str) -> Iterator[str]:
    """Writes the targets of a split in their notation, line by line."""
    notation = notation_named(Manifest.load(folder).section(InsertionRecord).notation)
    return map(notation.write, insertion_trees(folder, split))
