"""Equality of trees up to the order of some children.

The children of ``and`` and ``or`` mean the same in any order, so most work on ATIS, GEO and JOBS compares semantic
parses with these children sorted (Dong & Lapata 2016 and others). JOBS is Prolog, where ``,`` is conjunction and ``;``
disjunction. Nothing else is treated as equal: variables keep their names, and nested conjunctions are not flattened.
"""

from __future__ import annotations

from collections.abc import Iterable

from tree_fairseq.trees.symbols import UNKNOWN_LABEL
from tree_fairseq.trees.tree import Tree


def unordered_labels(notation: str) -> tuple[str, ...]:
    """The labels whose children have no order in a notation."""
    return ("and", "or", ",", ";") if notation == "prolog" else ("and", "or")


def exact_matches(
    outputs: Iterable[Tree | None], references: Iterable[Tree], unordered: Iterable[str] = ()
) -> list[bool]:
    """Whether each output equals its reference, up to the order of the children of nodes with these labels.

    Equal children are all kept: ``and(a, a, b)`` differs from ``and(a, b)``. An output that is not a tree (None) and a
    tree with an unknown symbol are never a match.
    """
    unordered = frozenset(unordered)
    # Equal subtrees get equal numbers, from the leaves up, so sorting compares numbers and never whole subtrees.
    numbers: dict[tuple[str, tuple[int, ...]], int] = {}

    def number(node: Tree, children: list[int]) -> int:
        key = (node.label, tuple(sorted(children) if node.label in unordered else children))
        return numbers.setdefault(key, len(numbers))

    return [
        output is not None
        and all(node.label != UNKNOWN_LABEL for node in output.preorder())
        and output.fold(number) == reference.fold(number)
        for output, reference in zip(outputs, references, strict=True)
    ]
