"""Which outputs of one test set are right, in which respect, and how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.scoring.breakdowns import by_bounds, by_group
from tree_fairseq.trees.notations import Notation
from tree_fairseq.trees.symbols import SymbolEncoding
from tree_fairseq.trees.tree import Tree
from tree_fairseq.trees.unordered import exact_matches

# FROM scoring/ifttt: How IFTTT programs are compared: channels, functions, productions (Quirk, Mooney and Galley 2015, section 6).
#
# A program is ``( ROOT IF ( TRIGGER channel ( FUNC function ... ) ) THEN ( ACTION channel ( FUNC function ... ) ) )``.
#
# ============================  ==================================================================================
# metric                        value
# ============================  ==================================================================================
# ``channel_accuracy``          programs whose two channels are both right
# ``channel_function_accuracy`` programs whose two channels and two functions are all right; parameters do not count
# ``production_f1``             balanced F measure of productions: of all rules ``label -> labels of its children`` of
#                               the outputs and of the references, with their multiplicities, over the whole set
# ============================  ==================================================================================
#
# An output that is no tree, or no program, has no channel, no function and no production.


class Program(NamedTuple):
    """What a program does, as far as it is scored; None for what it does not have."""

    channels: tuple[str, str] | None
    functions: tuple[str, str] | None


def program(tree: Tree | None) -> Program:
    """Channels and functions of trigger and action."""
    parts = [_call(tree, label) for label in ("TRIGGER", "ACTION")]
    channels, functions = zip(*parts)
    return Program(None if None in channels else channels, None if None in functions else functions)


def _call(tree: Tree | None, label: str) -> tuple[str | None, str | None]:
    """Channel and function of the first child with this label."""
    part = _child(tree, label)
    if part is None:
        return None, None
    channel = next((node.label for node in part.children if node.label != "FUNC"), None)
    function = _child(part, "FUNC")
    return channel, function.children[0].label if function is not None and function.children else None


def _child(tree: Tree | None, label: str) -> Tree | None:
    return next((node for node in tree.children if node.label == label), None) if tree is not None else None


def productions(tree: Tree | None) -> Counter[tuple[str, tuple[str, ...]]]:
    """The rules that a tree is made of, with multiplicities; leaves have none."""
    if tree is None:
        return Counter()
    return Counter(
        (node.label, tuple(child.label for child in node.children)) for node in tree.preorder() if node.children
    )


def production_f1(pairs: Iterable[tuple[Tree | None, Tree]]) -> float:
    """Balanced F measure, in percent, of the productions of outputs and references together."""
    common = found = wanted = 0
    for output, reference in pairs:
        ours, theirs = productions(output), productions(reference)
        common += (ours & theirs).total()
        found += ours.total()
        wanted += theirs.total()
    return 200 * common / (found + wanted) if found + wanted else 0.0


VALIDITY = "validity"
STEPS = "steps"

SCHEMES = ("exact", "ifttt")


def read_output(text: str | None, notation: Notation, encoding: SymbolEncoding | None = None) -> Tree | None:
    """The tree of an output, None where it is no complete tree.

    Args:
        text: what was generated; None where nothing was
        notation: how trees are written
        encoding: how symbols make a tree, where the output is symbols (of a stock model) and not text
    """
    if text is None:
        return None
    try:
        return notation.read(text) if encoding is None else encoding.decode(text.split())
    except SymbolTreeError:
        return None


@dataclass(frozen=True)
class Judgement:
    """The outputs of a test set beside its references.

    Attributes:
        outputs: trees, None for those that are none
        references: trees
        unordered: labels whose children have no order
        scheme: ``exact``, or ``ifttt`` for its channels, functions and productions too
        steps: how many steps it took to decode each output; None where that is not known
    """

    outputs: Sequence[Tree | None]
    references: Sequence[Tree]
    unordered: tuple[str, ...]
    scheme: str = "exact"
    steps: Sequence[int] | None = None

    @cached_property
    def outcomes(self) -> dict[str, list[bool]]:
        """By metric, whether each output is right.

        ``accuracy``: the tree is the reference. ``accuracy_unordered``: it is, with the children of some labels in any
        order. ``validity``: it is a complete tree. A tree with an unknown symbol is never right.
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
        """The metrics of all sentences, or of some: validity as a share from 0 to 1, steps as they are, all others in percent."""
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
        """Metrics by a measure of the reference, such as its depth; buckets end at ``bounds``, empty ones are left out."""
        return by_bounds([measure(tree) for tree in self.references], bounds, self.metrics)

    def by_group(self, groups: Sequence[Iterable[str]]) -> dict[str, dict]:
        """Metrics of each group of sentences, given the groups that every sentence belongs to."""
        return by_group(groups, self.metrics)


def size(tree: Tree) -> int:
    """Number of nodes of a tree."""
    return sum(1 for _ in tree.preorder())


def as_digits(outcomes: Mapping[str, Sequence[bool]]) -> dict[str, str]:
    """Outcomes as they are kept in a file: a digit a sentence."""
    return {name: "".join("01"[value] for value in values) for name, values in outcomes.items()}


def from_digits(outcomes: Mapping[str, str]) -> dict[str, list[bool]]:
    """The inverse of :func:`as_digits`."""
    return {name: [digit == "1" for digit in digits] for name, digits in outcomes.items()}
