"""Folders for insertion-based tree decoding: their record in ``tree.json``, their check and their export."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from tree_fairseq.data_bin.kinds import DataKind, Export, ExportRequest, register_kind
from tree_fairseq.data_bin.manifest import Manifest, Section, register_section
from tree_fairseq.data_bin.token_files import load_dictionary, token_words
from tree_fairseq.tree_insertion.dictionary import LabelWords
from tree_fairseq.tree_insertion.store import InsertionStore, open_store
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


def _exports(manifest: Manifest) -> dict[str, Export]:
    return {} if manifest.section(InsertionRecord) is None else {"target": export_insertion_trees}


register_kind("insertion", DataKind(_exports))
