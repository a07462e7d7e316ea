"""Equality of trees up to the order of some children.

The children of ``and`` and ``or`` mean the same in any order, so most work on ATIS, GEO and JOBS compares semantic
parses with these children sorted (Dong & Lapata 2016 and others). JOBS is Prolog, where ``,`` is conjunction and ``;``
disjunction. Nothing else is treated as equal: variables keep their names, and nested conjunctions are not flattened.
"""

from __future__ import annotations

from collections.abc import Iterable

from tree_fairseq.trees.symbols import UNKNOWN_LABEL
from tree_fairseq.trees.tree import Tree

_UNORDERED = ("and", "or")


def unordered_labels(notation: str) -> tuple[str, ...]:
    """The labels whose children have no order in a notation."""
    return (*_UNORDERED, ",", ";") if notation == "prolog" else _UNORDERED


class UnorderedForms:
    """Assigns numbers to trees: two trees get the same number if they differ only in the order of unordered children.

    Subtrees are numbered from the leaves up, so sorting compares numbers and never whole subtrees. Equal children are
    all kept: ``and(a, a, b)`` differs from ``and(a, b)``.

    Args:
        unordered: labels of nodes whose children have no order
    """

    def __init__(self, unordered: Iterable[str]):
        self.unordered = frozenset(unordered)
        self._numbers: dict[tuple[str, tuple[int, ...]], int] = {}

    def number(self, tree: Tree) -> int:
        """The number of a tree."""
        return tree.fold(self._number_node)

    def _number_node(self, node: Tree, children: list[int]) -> int:
        if node.label in self.unordered:
            children = sorted(children)
        return self._numbers.setdefault((node.label, tuple(children)), len(self._numbers))


def exact_matches(
    outputs: Iterable[Tree | None], references: Iterable[Tree], unordered: Iterable[str] = ()
) -> list[bool]:
    """Whether each output equals its reference, up to the order of the children of nodes with these labels.

    An output that is not a tree (None) and a tree with an unknown symbol are never a match.
    """
    forms = UnorderedForms(unordered)
    return [
        output is not None
        and all(node.label != UNKNOWN_LABEL for node in output.preorder())
        and forms.number(output) == forms.number(reference)
        for output, reference in zip(outputs, references, strict=True)
    ]
