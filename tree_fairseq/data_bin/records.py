"""The records of sides in ``tree.json``: of constituency trees, and of symbol trees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.trees.symbols import SymbolEncoding


def differing_fields(first: object, second: object, names: Iterable[str]) -> list[str]:
    """Returns ``name: value and other value`` for each attribute in which two records differ."""
    pairs = ((name, getattr(first, name), getattr(second, name)) for name in names)
    return [f"{name}: {one} and {other}" for name, one, other in pairs if one != other]


@dataclass
class SplitRecord:
    """The trees of one side of one split.

    Attributes:
        prefix: name of the token files without extension, such as ``train.en-de.en``
        lines: number of lines
        leaves: leaves of all lines, without EOS
        nodes: nodes of all lines' full forests
        failed: numbers of the lines, from 1, in which a sentence could not be parsed and has a flat tree
        unknown_labels: number of nodes whose label is not in the label dictionary
        files: names of the token files and tree files
    """

    prefix: str
    lines: int
    leaves: int
    nodes: int
    failed: list[int]
    unknown_labels: int
    files: list[str]


# Options that change how fast trees are made and what happens to bad input, but not which trees good input gets.
_INDIFFERENT_OPTIONS = ("batch_size", "device", "parser_dir", "on_parse_error", "max_parse_failures")


@dataclass
class SideRecord:
    """The trees of one language.

    Attributes:
        side: ``source`` or ``target``
        parser: the parser's options, for parsing new text in the same way (:attr:`options`)
        identity: name, version and model of the parser that ran
        labels: name of the label dictionary
        splits: by name (``train``, ``valid``, ``valid1``, ...)
    """

    side: str
    parser: dict[str, Any]
    identity: dict[str, Any]
    labels: str
    splits: dict[str, SplitRecord] = field(default_factory=dict)

    @property
    def options(self) -> ParserOptions:
        """How the text of this side was parsed."""
        return ParserOptions.from_json(self.parser)

    def differences(self, other: SideRecord) -> list[str]:
        """Returns what makes the two give different trees to the same text."""
        names = [name for name in {**self.parser, **other.parser} if name not in _INDIFFERENT_OPTIONS]
        options = [
            f"{name}: {self.parser.get(name)} and {other.parser.get(name)}"
            for name in names
            if self.parser.get(name) != other.parser.get(name)
        ]
        return [*differing_fields(self, other, ["identity"]), *options]


@dataclass
class SymbolSplitRecord:
    """The symbol trees of one side of one split.

    Attributes:
        prefix: name of the token files without extension, such as ``train.nl-lf.lf``
        lines: number of trees
        symbols: symbols of all trees
        depth: of the deepest tree in the form that was encoded, the root at 0
        unknown: number of symbols that the dictionary does not have
        files: names of the token files
    """

    prefix: str
    lines: int
    symbols: int
    depth: int
    unknown: int
    files: list[str]


@dataclass
class SymbolSideRecord:
    """The symbol trees of one language.

    Attributes:
        side: ``source`` or ``target``
        modality: ``tree``, or ``constituency`` where the text is sentences whose parses are the trees
        notation: how the text, or the output, is written
        traversal, binarization, mark: see :class:`tree_fairseq.trees.symbols.SymbolEncoding`
        degree: the largest number of branches of a node
        parser: the parser's options, for sentences
        identity: name, version and model of the parser that ran
        grammar: name of the file of symbols seen under each other, if there is one
        splits: by name
    """

    side: str
    modality: str
    notation: str
    traversal: str
    binarization: str
    mark: str
    degree: int
    parser: dict[str, Any] | None = None
    identity: dict[str, Any] | None = None
    grammar: str | None = None
    splits: dict[str, SymbolSplitRecord] = field(default_factory=dict)

    @property
    def encoding(self) -> SymbolEncoding:
        """How the trees became sequences of symbols."""
        return SymbolEncoding(self.traversal, self.binarization, self.mark)

    @property
    def options(self) -> ParserOptions | None:
        """How the sentences were parsed."""
        return None if self.parser is None else ParserOptions.from_json(self.parser)

    def differences(self, other: SymbolSideRecord) -> list[str]:
        """Returns what makes the two turn the same text into different symbols."""
        return differing_fields(self, other, ("modality", "notation", "traversal", "binarization", "mark", "identity"))
