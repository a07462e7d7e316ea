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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tree_fairseq.trees.symbols import exact_matches
from tree_fairseq.trees.tree import Tree

VALIDITY = "validity"

SCHEMES = ("exact", "ifttt")


class Program(NamedTuple):
    """The scored parts of a program, those of trigger and action; None for a missing one."""

    channels: tuple[str, str] | None
    functions: tuple[str, str] | None


def program(tree: Tree | None) -> Program:
    """Returns the channels and functions of trigger and action."""
    parts = [_child(tree, label) for label in ("TRIGGER", "ACTION")]
    channels = [next((node.label for node in part.children if node.label != "FUNC"), None) for part in parts if part]
    calls = [_child(part, "FUNC") for part in parts]
    functions = [call.children[0].label for call in calls if call and call.children]
    return Program(*(None if None in names or len(names) < 2 else tuple(names) for names in (channels, functions)))


def _child(tree: Tree | None, label: str) -> Tree | None:
    """Returns the first child with this label."""
    return next((node for node in tree.children if node.label == label), None) if tree else None


def productions(tree: Tree | None) -> Counter[tuple[str, tuple[str, ...]]]:
    """Returns the productions of a tree with multiplicities; leaves have none."""
    nodes = tree.preorder() if tree else ()
    return Counter((node.label, tuple(child.label for child in node.children)) for node in nodes if node.children)


def production_f1(pairs: Iterable[tuple[Tree | None, Tree]]) -> float:
    """Computes the balanced F measure of productions over all outputs and references, in percent."""
    common = total = 0
    for output, reference in pairs:
        ours, theirs = productions(output), productions(reference)
        common += sum((ours & theirs).values())
        total += sum(ours.values()) + sum(theirs.values())
    return 200 * common / total if total else 0.0


@dataclass(frozen=True)
class Judgement:
    """The outputs of a test set and its references; an output that is not a tree is None."""

    outputs: Sequence[Tree | None]
    references: Sequence[Tree]
    unordered: tuple[str, ...]  # labels whose children have no order
    scheme: str  # "ifttt" adds channels, functions and productions
    steps: Sequence[int] | None  # number of decoding steps of each output, if known

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
            pairs = [(program(output), program(reference)) for output, reference in zip(self.outputs, self.references)]
            found["channel_accuracy"] = [
                ours.channels is not None and ours.channels == theirs.channels for ours, theirs in pairs
            ]
            found["channel_function_accuracy"] = [None not in ours and ours == theirs for ours, theirs in pairs]
        return found

    def metrics(self, indices: Sequence[int]) -> dict[str, float]:
        """Returns metrics of some sentences: validity from 0 to 1, the mean of steps, all others in percent."""
        values = {}
        for name, outcomes in self.outcomes.items():
            whole = 1 if name == VALIDITY else 100
            values[name] = whole * sum(outcomes[index] for index in indices) / len(indices)
        if self.scheme == "ifttt":
            values["production_f1"] = production_f1((self.outputs[index], self.references[index]) for index in indices)
        if self.steps is not None:
            values["steps"] = sum(self.steps[index] for index in indices) / len(indices)
        return values
