"""What ``tree.json`` tells of the constituency trees of a language."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tree_fairseq.parsing.base import ParserOptions


@dataclass
class SplitRecord:
    """The trees of one side of one split.

    Attributes:
        prefix: name of the token files without extension, such as ``train.en-de.en``
        lines: lines
        leaves: leaves of all lines, without EOS
        nodes: nodes of all lines' full forests
        failed: numbers of the lines, from 1, in which a sentence could not be parsed and was given a flat tree
        unknown_labels: nodes whose label is not in the label dictionary
        files: names of the token files and tree files
    """

    prefix: str
    lines: int
    leaves: int
    nodes: int
    failed: list[int]
    unknown_labels: int
    files: list[str]


@dataclass
class SideRecord:
    """The trees of one language.

    Attributes:
        side: ``source`` or ``target``
        parser: the parser's options, for parsing new text the same way (:meth:`options`)
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
