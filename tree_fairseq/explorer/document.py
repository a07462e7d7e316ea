"""The document that the explorer's page shows: systems, sentences, and views as plain JSON values.

Trees and matrices are written as in :mod:`tree_fairseq.drawing.views`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Optional

import tree_fairseq
from tree_fairseq.explorer.page import FORMAT


@dataclass(frozen=True)
class SystemRecord:
    """A model. ``method`` is one of the package's methods or ``sequence``; ``metric`` compares it with references."""

    name: str
    architecture: str
    task: str
    method: str
    parameters: int
    metric: Optional[str] = None


@dataclass
class OutputRecord:
    """The output of a system for a sentence, and its views."""

    hypothesis: str = ""
    score: Optional[float] = None
    metric: Optional[float] = None  # the sentence's own value, greater if better
    views: dict[str, Any] = field(default_factory=dict)
    error: Optional[str] = None  # why there is no output


@dataclass
class SentenceRecord:
    """A sentence: its source as a person and as a model reads it, its parse, and the outputs of all systems."""

    id: int  # from 0
    source: str
    tokens: list[str]
    reference: Optional[str]
    length: int  # in words
    depth: int  # the height of the parse
    parse: Optional[dict[str, list]]
    systems: list[OutputRecord]
    reference_tree: Optional[dict[str, Any]] = None  # that of a reference that is a tree

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON values."""
        return asdict(self)


@dataclass
class Document:
    """All that a page, or a tab of it, shows of its systems."""

    title: str
    systems: list[SystemRecord]
    sentences: list[SentenceRecord]
    about: str = ""  # a text for readers
    words: list[str] = field(default_factory=list)  # those that the models know; if there are none, any can be typed

    def to_dict(self, live: bool = False) -> dict[str, Any]:
        """The document as JSON values; ``live`` tells the page that a server explains more sentences."""
        package = f"tree-fairseq {tree_fairseq.__version__}"
        return {"format": FORMAT, "package": package, "live": live, **asdict(self)}
