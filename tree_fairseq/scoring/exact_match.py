"""Whether two trees are the same, in order or up to the order of some children.

The children of ``and`` and ``or`` mean the same in any order; semantic parsers are compared with them sorted (Dong & Lapata
2016, and most others on ATIS, GEO and JOBS). JOBS is Prolog, whose conjunction is ``,`` and whose disjunction is ``;``.
Nothing else is taken for equal: variables keep their names, nested conjunctions their brackets.
"""

from __future__ import annotations

from collections.abc import Iterable

from tree_fairseq.trees.tree import Tree

UNORDERED = ("and", "or")
"""Labels whose children have no order, in most notations."""

UNORDERED_OF = {"prolog": (*UNORDERED, ",", ";")}
"""The same in the notations that have others."""


def unordered_labels(notation: str) -> tuple[str, ...]:
    """The labels whose children have no order in a notation."""
    return UNORDERED_OF.get(notation, UNORDERED)


class UnorderedForms:
    """Numbers for trees: two trees get the same one if they differ in the order of unordered children only.

    Subtrees are numbered from the leaves up, so that sorting compares numbers and never whole subtrees. Equal children
    are all kept: ``and(a, a, b)`` is not ``and(a, b)``.

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
