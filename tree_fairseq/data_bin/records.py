"""The records of sides in ``tree.json``, of constituency trees and of symbol trees, and what all records share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.source_code.registry import notation_of
from tree_fairseq.trees.notations import Notation
from tree_fairseq.trees.symbols import SymbolEncoding

R = TypeVar("R", bound="Record")


class Record:
    """A part of ``tree.json`` with a record for each split; its subclasses are dataclasses."""

    # class of the records of splits, which have the ``prefix`` of the token files, without extension, such as
    # ``train.en-de.en``, and the names of all ``files``
    split_record: ClassVar[type]
    deciding: ClassVar[tuple[str, ...]] = ()  # fields that decide which files are made of a text
    splits: dict[str, Any]  # by name (``train``, ``valid``, ``valid1``, ...)

    @classmethod
    def from_json(cls: type[R], values: dict[str, Any]) -> R:
        """Restores a record from the result of ``dataclasses.asdict``."""
        splits = {name: cls.split_record(**split) for name, split in values["splits"].items()}
        return cls(**{**values, "splits": splits})

    def differences(self, other: Any) -> list[str]:
        """Returns the differences through which the two turn a text into different files, such as ``seed: 1 and 2``."""
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in self.deciding)
        return [f"{name}: {one} and {another}" for name, one, another in pairs if one != another]


@dataclass
class SplitRecord:
    """The trees of one side of one split."""

    prefix: str  # see :class:`Record`, also for ``files``
    lines: int
    leaves: int  # without EOS
    nodes: int  # of the full forests
    failed: list[int]  # numbers of the lines, from 1, in which a sentence could not be parsed and has a flat tree
    unknown_labels: int  # number of nodes whose label is not in the label dictionary
    files: list[str]


@dataclass
class SideRecord(Record):
    """The trees of one language."""

    split_record = SplitRecord
    deciding = ("identity",)

    side: str  # ``source`` or ``target``
    parser: dict[str, Any]  # the parser's options, for parsing new text in the same way (:attr:`options`)
    identity: dict[str, Any]  # all that decides the trees, such as name, version and model of the parser that ran
    labels: str  # name of the label dictionary
    splits: dict[str, SplitRecord] = field(default_factory=dict)

    @property
    def options(self) -> ParserOptions:
        """How the text of this side was parsed."""
        return ParserOptions.from_json(self.parser)


@dataclass
class SymbolSplitRecord:
    """The symbol trees of one side of one split."""

    prefix: str  # see :class:`Record`, also for ``files``
    lines: int
    symbols: int
    depth: int  # of the deepest tree in the form that was encoded, the root at 0
    unknown: int  # number of symbols that the dictionary does not have
    files: list[str]


@dataclass
class SymbolSideRecord(Record):
    """The symbol trees of one language."""

    split_record = SymbolSplitRecord
    deciding = ("modality", "notation", "traversal", "binarization", "mark", "identity")

    # side, parser, identity: as in :class:`SideRecord`; no parser for trees
    side: str
    modality: str  # ``tree``, or ``constituency`` where the text is sentences whose parses are the trees
    notation: str  # of the text, or of the output
    # traversal, binarization: see :class:`tree_fairseq.trees.symbols.SymbolEncoding`
    traversal: str
    binarization: str
    mark: str  # what separates a label from its arity, which is always the same
    degree: int  # the largest number of branches of a node
    parser: dict[str, Any] | None = None
    identity: dict[str, Any] | None = None
    grammar: str | None = None  # name of the file of symbols seen under each other, if there is one
    # spelling, types: names of the files of a programming language: how leaves are spelled, and what fields hold
    spelling: str | None = None
    types: str | None = None
    splits: dict[str, SymbolSplitRecord] = field(default_factory=dict)

    @property
    def encoding(self) -> SymbolEncoding:
        """How the trees became sequences of symbols."""
        return SymbolEncoding(self.traversal, self.binarization)

    @property
    def options(self) -> ParserOptions | None:
        """How the sentences were parsed."""
        return None if self.parser is None else ParserOptions.from_json(self.parser)

    def notation_in(self, folder: Path) -> Notation:
        """The notation in which lines become the trees of a folder."""
        return notation_of(self.notation, None if self.spelling is None else folder / self.spelling)
