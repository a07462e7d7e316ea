"""Which generated trees of a test set are right, and in which respect.

IFTTT programs are compared as in Quirk, Mooney and Galley (2015, section 6). A program is
``( ROOT IF ( TRIGGER channel ( FUNC function ... ) ) THEN ( ACTION channel ( FUNC function ... ) ) )``.

============================  =====================================================================================
metric                        value
============================  =====================================================================================
``channel_accuracy``          programs with two right channels
``channel_function_accuracy`` programs with two right channels and two right functions; parameters do not count
``production_f1``             balanced F measure of productions, the rules ``label -> labels of its children`` of
                              outputs and references, with multiplicities, over the whole set
============================  =====================================================================================

An output that is not a tree or not a program has no channel, function or production.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.scoring.breakdowns import by_bounds, by_group
from tree_fairseq.trees.notations import Notation
from tree_fairseq.trees.symbols import SymbolEncoding
from tree_fairseq.trees.tree import Tree
from tree_fairseq.trees.unordered import exact_matches

VALIDITY = "validity"
STEPS = "steps"

SCHEMES = ("exact", "ifttt")


class Program(NamedTuple):
    """The scored parts of a program; None for a missing one."""

    channels: tuple[str, str] | None
    functions: tuple[str, str] | None


def program(tree: Tree | None) -> Program:
    """Returns the channels and functions of trigger and action."""
    parts = [_call(tree, label) for label in ("TRIGGER", "ACTION")]
    channels, functions = zip(*parts)
    return Program(None if None in channels else channels, None if None in functions else functions)


def _call(tree: Tree | None, label: str) -> tuple[str | None, str | None]:
    """Returns channel and function of the first child with this label."""
    part = _child(tree, label)
    if part is None:
        return None, None
    channel = next((node.label for node in part.children if node.label != "FUNC"), None)
    function = _child(part, "FUNC")
    return channel, function.children[0].label if function is not None and function.children else None


def _child(tree: Tree | None, label: str) -> Tree | None:
    return next((node for node in tree.children if node.label == label), None) if tree is not None else None


def productions(tree: Tree | None) -> Counter[tuple[str, tuple[str, ...]]]:
    """Returns the productions of a tree with multiplicities; leaves have none."""
    if tree is None:
        return Counter()
    return Counter(
        (node.label, tuple(child.label for child in node.children)) for node in tree.preorder() if node.children
    )


def production_f1(pairs: Iterable[tuple[Tree | None, Tree]]) -> float:
    """Computes the balanced F measure of productions over all outputs and references, in percent."""
    common = found = wanted = 0
    for output, reference in pairs:
        ours, theirs = productions(output), productions(reference)
        common += (ours & theirs).total()
        found += ours.total()
        wanted += theirs.total()
    return 200 * common / (found + wanted) if found + wanted else 0.0


def read_output(text: str | None, notation: Notation, encoding: SymbolEncoding | None = None) -> Tree | None:
    """Reads an output as a tree; returns None if it is not one complete tree.

    Args:
        text: the output; None if the sentence has none
        notation: of outputs that are text
        encoding: of outputs that are symbols, as stock models print them
    """
    if text is None:
        return None
    try:
        return notation.read(text) if encoding is None else encoding.decode(text.split())
    except SymbolTreeError:
        return None


@dataclass(frozen=True)
class Judgement:
    """The outputs of a test set and its references.

    Attributes:
        outputs: trees; None for outputs that are not trees
        references: trees
        unordered: labels whose children have no order
        scheme: ``exact``, or ``ifttt`` to add channels, functions and productions
        steps: number of decoding steps of each output; None if unknown
    """

    outputs: Sequence[Tree | None]
    references: Sequence[Tree]
    unordered: tuple[str, ...]
    scheme: str = "exact"
    steps: Sequence[int] | None = None

    @cached_property
    def outcomes(self) -> dict[str, list[bool]]:
        """Whether each output is right, by metric.

        ``accuracy``: the tree equals the reference. ``accuracy_unordered``: it does if the children of some labels may
        be in any order. ``validity``: it is a complete tree. A tree with an unknown symbol is never right.
        """
        found = {
            "accuracy": exact_matches(self.outputs, self.references),
            "accuracy_unordered": exact_matches(self.outputs, self.references, self.unordered),
            VALIDITY: [output is not None for output in self.outputs],
        }
        if self.scheme == "ifttt":
            found |= self._program_outcomes()
        return found

    def _program_outcomes(self) -> dict[str, list[bool]]:
        pairs = [(program(output), program(reference)) for output, reference in zip(self.outputs, self.references)]
        channels = [ours.channels is not None and ours.channels == theirs.channels for ours, theirs in pairs]
        functions = [ours.functions is not None and ours.functions == theirs.functions for ours, theirs in pairs]
        both = [channel and function for channel, function in zip(channels, functions)]
        return {"channel_accuracy": channels, "channel_function_accuracy": both}

    def metrics(self, indices: Sequence[int] | None = None) -> dict[str, float]:
        """Returns metrics of all sentences or some: validity from 0 to 1, the mean of steps, all others in percent."""
        indices = range(len(self.references)) if indices is None else indices
        values = {}
        for name, outcomes in self.outcomes.items():
            whole = 1 if name == VALIDITY else 100
            values[name] = whole * sum(outcomes[index] for index in indices) / len(indices)
        if self.scheme == "ifttt":
            values["production_f1"] = production_f1((self.outputs[index], self.references[index]) for index in indices)
        if self.steps is not None:
            values[STEPS] = sum(self.steps[index] for index in indices) / len(indices)
        return values

    def by(self, measure: Callable[[Tree], int], bounds: Sequence[int]) -> list[dict]:
        """Returns metrics by a measure of the reference, such as depth; buckets end at ``bounds``."""
        return by_bounds([measure(tree) for tree in self.references], bounds, self.metrics)

    def by_group(self, groups: Sequence[Iterable[str]]) -> dict[str, dict]:
        """Returns metrics of each group, given the groups of every sentence."""
        return by_group(groups, self.metrics)


def size(tree: Tree) -> int:
    """Counts the nodes of a tree."""
    return sum(1 for _ in tree.preorder())
