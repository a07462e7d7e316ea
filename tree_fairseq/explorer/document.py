"""The document that the explorer's page shows: systems, sentences, and views as plain JSON values.

A tree is ``{"labels": [...], "children": [...]}``: labels and numbers of children of all nodes in preorder, words
included; a forest has several roots one after the other. A matrix is ``{"shape", "max", "data"}``: bytes in base64,
row by row, each a 255th of the maximum.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Optional, Union

import numpy as np
from torch import Tensor

import tree_fairseq
from tree_fairseq.explorer.page import FORMAT
from tree_fairseq.trees.tree import Tree


def tree_record(forest: Iterable[Tree]) -> dict[str, list]:
    """The labels and numbers of children of all nodes of a forest in preorder."""
    nodes = [node for tree in forest for node in tree.preorder()]
    return {"labels": [node.label for node in nodes], "children": [len(node.children) for node in nodes]}


def matrix_record(values: Union[Tensor, np.ndarray]) -> dict[str, Any]:
    """Weights of any shape, at least 0, in 256 steps up to their maximum; those that are not finite become 0."""
    array = values.detach().cpu().double().numpy() if isinstance(values, Tensor) else np.asarray(values, np.float64)
    array = np.nan_to_num(array, nan=0.0, posinf=0.0, neginf=0.0)
    largest = float(array.max()) if array.size else 0.0
    steps = np.rint(array / largest * 255) if largest > 0 else np.zeros_like(array)
    data = base64.b64encode(steps.clip(0, 255).astype(np.uint8).tobytes()).decode("ascii")
    return {"shape": list(array.shape), "max": round(largest, 6), "data": data}


def matrix_values(record: dict[str, Any]) -> np.ndarray:
    """The weights of a :func:`matrix_record`, up to half a step."""
    steps = np.frombuffer(base64.b64decode(record["data"]), np.uint8)
    return steps.reshape(record["shape"]) * (record["max"] / 255)


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
    """The output of a system for a sentence, and its views.

    ``error`` says why there is no output; ``metric`` is the sentence's own value, greater if better.
    """

    hypothesis: str = ""
    score: Optional[float] = None
    metric: Optional[float] = None
    views: dict[str, Any] = field(default_factory=dict)
    error: Optional[str] = None


@dataclass
class SentenceRecord:
    """A sentence: its source as a person and as a model reads it, its parse, and the outputs of all systems.

    ``id`` counts from 0; ``length`` is in words, ``depth`` is the height of the parse.
    """

    id: int
    source: str
    tokens: list[str]
    reference: Optional[str]
    length: int
    depth: int
    parse: Optional[dict[str, list]]
    systems: list[OutputRecord]

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON values."""
        return asdict(self)


@dataclass
class Document:
    """All that a page shows of one or two systems."""

    title: str
    systems: list[SystemRecord]
    sentences: list[SentenceRecord]

    def to_dict(self, live: bool = False) -> dict[str, Any]:
        """The document as JSON values; ``live`` tells the page that a server explains more sentences."""
        return {
            "format": FORMAT,
            "title": self.title,
            "package": f"tree-fairseq {tree_fairseq.__version__}",
            "live": live,
            "systems": [asdict(system) for system in self.systems],
            "sentences": [sentence.to_dict() for sentence in self.sentences],
        }
