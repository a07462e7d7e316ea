"""Folders for insertion-based tree decoding: how their targets are written, and the record of that in ``tree.json``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tree_fairseq.data_bin.manifest import register_section
from tree_fairseq.tree_insertion.dictionary import LabelWords

TASK = "tree_insertion"
"""The task of such folders."""

ORACLES = ("centrality", "exact")

STORE_SUFFIX = "insertion"
"""What the names of trajectory files have after those of token files."""


@dataclass
class InsertionSplitRecord:
    """The targets of a split.

    Attributes:
        prefix: name of the token files without extension, such as ``train.nl-lf.lf``
        lines: trees
        distinct: different trees
        nodes: nodes of all lines' trees, without the root that decoding begins with
        largest: nodes of the largest tree, without it
        unknown: nodes whose label is not in the dictionary
        files: names of the token files and of the trajectory files
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
class InsertionRecord:
    """The targets of a folder.

    Attributes:
        lang: their language
        notation: how they, and the output, are written
        numbered: whether the labels of token files are numbered
        oracles: those whose trajectories are stored, in the order in which they are
        trajectories: how many of each
        seed: of what was drawn
        splits: by name
    """

    contents: ClassVar[str] = "trajectories"
    missing: ClassVar[str] = "preprocess with --task tree_insertion"

    lang: str
    notation: str
    numbered: bool
    oracles: list[str]
    trajectories: int
    seed: int
    splits: dict[str, InsertionSplitRecord] = field(default_factory=dict)

    @property
    def words(self) -> LabelWords:
        """How labels are written in token files."""
        return LabelWords(self.numbered)

    @property
    def ways(self) -> int:
        """How many trajectories a tree has."""
        return len(self.oracles) * self.trajectories

    def first_of(self, oracle: str) -> int:
        """The place of an oracle's first trajectory among those of a tree."""
        return self.oracles.index(oracle) * self.trajectories

    def differences(self, other: InsertionRecord) -> list[str]:
        """Where the two would turn the same text into other files."""
        names = ("lang", "notation", "numbered", "oracles", "trajectories", "seed")
        return [
            f"{name}: {getattr(self, name)} and {getattr(other, name)}"
            for name in names
            if getattr(self, name) != getattr(other, name)
        ]

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> InsertionRecord:
        """The record that ``dataclasses.asdict`` took apart."""
        return cls(
            **{**values, "splits": {name: InsertionSplitRecord(**split) for name, split in values["splits"].items()}}
        )

    def dictionaries(self, source_lang: str) -> list[str]:
        """The dictionaries of both languages."""
        return [f"dict.{lang}.txt" for lang in (source_lang, self.lang)]
