"""Views of the explorer: what a method shows of a sentence, as plain JSON values.

Each method has a subclass of :class:`Views` in its folder, and registers it by :func:`register_views`. A system of the
explorer asks all that fit its task, its models and its search. So a Tree-Transformer that classifies shows both.

A tree is ``{"labels": [...], "children": [...]}``: labels and numbers of children of all nodes in preorder, words
included; a forest has several roots one after the other. A matrix is ``{"shape", "max", "data"}``: bytes in base64,
row by row, each a 255th of the maximum.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Optional, TypeVar, Union

import numpy as np
from torch import Tensor, nn

from tree_fairseq.trees.tree import Forest, Tree


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


@dataclass(frozen=True)
class CrossAttention:
    """The attention of one decoder layer to the memory of one sentence."""

    weights: Tensor  # ``[T, S]``, means over heads
    structure: Any  # that of the memory, as its encoder made it


@dataclass
class Explained:
    """A sentence, and what a system made of it."""

    sample: dict[str, Any]  # a batch of this sentence alone
    tokens: Sequence[str]  # as the model reads them, without EOS
    items: Sequence[str]  # the same with EOS, if the model reads one
    pieces: Any  # tokens by word, as :mod:`tree_fairseq.parsing.pieces` has them
    forest: Forest  # the parse; empty without one
    hypotheses: list[dict]  # of the search, the best first
    ids: list[int]  # of the best hypothesis, without EOS
    rows: list[str] = field(default_factory=list)  # the tokens of the best hypothesis that the first model has read
    # the attention of its decoder's layers while it read them
    cross: list[CrossAttention] = field(default_factory=list)

    @property
    def inputs(self) -> dict[str, Any]:
        """The sources of the batch, without targets."""
        kept = ("src_tokens", "src_lengths", "source_spans", "source_symbol_tree", "sentence_trees")
        return {name: value for name, value in self.sample["net_input"].items() if name in kept}


class Views:
    """The base class of the views that a method shows in the explorer, for one system.

    The ``models`` are an ensemble; views of attention are of its first model.
    """

    method: str  # the name of the method on the page
    rank = 0  # the method of highest rank names the system: encoders have 0, searches 1 and tasks 2

    def __init__(self, task: Any, models: Sequence[nn.Module], generator: Any):
        self.task, self.models, self.generator = task, models, generator

    @classmethod
    def fits(cls, task: Any, models: Sequence[nn.Module], generator: Any) -> bool:
        """Returns whether the method has something to show of a system."""
        raise NotImplementedError

    def begin(self) -> None:
        """Forgets the sentence before, ahead of a search."""

    def recording(self) -> AbstractContextManager:
        """Returns a context in which the first model reads the sentence, to record what happens inside."""
        return contextlib.nullcontext()

    def read_output(self, explained: Explained) -> Optional[list[str]]:
        """Lets the first model read the sentence and its own output; returns the tokens of the output.

        Returns None if the model reads as all models of fairseq do.
        """
        return None

    def columns(self, explained: Explained) -> Optional[tuple[list[dict[str, Any]], Optional[Tensor]]]:
        """Returns the columns of a view of cross-attention after those of tokens, and the places of all in the memory.

        The places are None if the memory is as long as the columns. Returns None if the method has no columns.
        """
        return None

    def views(self, explained: Explained) -> dict[str, Any]:
        """Returns views by name; None for a view that this sentence does not have."""
        return {}


REGISTERED: list[type[Views]] = []

Kind = TypeVar("Kind", bound=type[Views])


def register_views(kind: Kind) -> Kind:
    """Registers the views of a method; a decorator."""
    REGISTERED.append(kind)
    return kind


def views_of(task: Any, models: Sequence[nn.Module], generator: Any) -> list[Views]:
    """Returns the views that fit a system, those of highest rank first."""
    ranked = sorted(REGISTERED, key=lambda kind: -kind.rank)
    return [kind(task, models, generator) for kind in ranked if kind.fits(task, models, generator)]
