"""Terms and their places in logical forms, as the forms of a training set have them.

A *place* is a position below a symbol: ``("next_to:t", 1)`` is the second argument of ``next_to:t``. The form alone
gives the *kind* of a term: ``s`` for the slot ``s0``, ``pd`` for ``morning:pd``, ``c`` for ``( capital:c s0 )``, and
``state:t`` for a variable that ``( state:t $0 )`` restricts, or for ``( argmax $0 ( state:t $0 ) ... )``. A term fits
in a place where the training set has a term of its kind.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Optional

from tree_fairseq.trees.tree import Tree, tree_from_preorder

Path = tuple[int, ...]
"""A node: the indices of children on the way from the root."""
Place = tuple[str, int]

SLOT = re.compile(r"([a-z_]+)(\d+)")
"""An identified argument of an utterance: its kind and its number."""
JUNCTIONS = ("and", "or", "not")
SET, DEFINITE = "lambda", ("argmax", "argmin", "the")
BINDERS = (SET, *DEFINITE, "exists", "count", "sum", "min", "max")
EQUALITIES = ("=", "equals", "equals:t")
"""Whose places say nothing of a kind."""
_NO_TERMS = ("", "e", "t")


def positions(tree: Tree) -> Iterator[tuple[Path, Tree]]:
    """Yields all nodes with their paths, in preorder."""
    stack: list[tuple[Path, Tree]] = [((), tree)]
    while stack:
        path, node = stack.pop()
        yield path, node
        stack += [((*path, index), child) for index, child in reversed(list(enumerate(node.children)))]


def node_at(tree: Tree, path: Path) -> Tree:
    """Returns the node of a path."""
    for index in path:
        tree = tree.children[index]
    return tree


def replaced(tree: Tree, path: Path, new: Tree) -> Tree:
    """Returns the tree with another subtree at a path."""
    above = [node_at(tree, path[:length]) for length in range(len(path))]
    for node, index in zip(reversed(above), reversed(path)):
        new = Tree(node.label, [*node.children[:index], new, *node.children[index + 1 :]])
    return new


def place_of(tree: Tree, path: Path) -> Optional[Place]:
    """Returns the place of a node; the root has none."""
    return (node_at(tree, path[:-1]).label, path[-1]) if path else None


def is_variable(label: str) -> bool:
    """Whether a label is a variable, such as ``$0``."""
    return label.startswith("$")


def bound_variable(node: Tree) -> Optional[str]:
    """Returns the variable that a node binds, or None."""
    first = node.children[0].label if node.children else ""
    return first if node.label in BINDERS and is_variable(first) else None


def is_condition(tree: Tree, path: Path) -> bool:
    """Whether the node is a part of a conjunction, or the body of a binder; other nodes are terms."""
    if not path:
        return False
    parent = node_at(tree, path[:-1])
    if bound_variable(parent) is None:
        return parent.label in JUNCTIONS
    return path[-1] == (2 if parent.label == SET else 1)


def number_variables(tree: Tree) -> Tree:
    """Gives every binder a variable of its own: ``$0``, ``$1`` and so on in preorder."""
    count = 0
    labels, children = [], []
    stack: list[tuple[Tree, dict[str, str]]] = [(tree, {})]
    while stack:
        node, names = stack.pop()
        bound = bound_variable(node)
        if bound is not None:
            names = {**names, bound: f"${count}"}
            count += 1
        labels.append(names.get(node.label, node.label))
        children.append(len(node.children))
        stack += [(child, names) for child in reversed(node.children)]
    return tree_from_preorder(labels, children)


def sorts(tree: Tree) -> dict[str, set[str]]:
    """Returns the conditions on each variable that have no other argument: ``{"$0": {"state:t"}}``."""
    found: dict[str, set[str]] = defaultdict(set)
    for path, node in positions(tree):
        if node.is_preterminal and is_variable(node.children[0].label) and node.label not in JUNCTIONS:
            if is_condition(tree, path):
                found[node.children[0].label].add(node.label)
    return found


def kinds(node: Tree, restricted: dict[str, set[str]]) -> set[str]:
    """Returns the kinds of a term, which are empty for what is not a term.

    Args:
        restricted: the ``sorts`` of the form
    """
    if node.is_leaf and is_variable(node.label):
        return restricted.get(node.label, set())
    if node.label in DEFINITE and bound_variable(node) is not None:
        return restricted.get(node.children[0].label, set())
    if node.is_leaf and (slot := SLOT.fullmatch(node.label)):
        return {slot[1]}
    kind = node.label.rpartition(":")[2] if ":" in node.label else ""
    return set() if kind in _NO_TERMS else {kind}


class Places:
    """The kinds of terms that forms have at each place.

    Args:
        forms: those of the training set, after `number_variables`
    """

    def __init__(self, forms: Iterable[Tree]) -> None:
        self._seen: dict[Place, set[str]] = defaultdict(set)
        for form in forms:
            restricted = sorts(form)
            for path, node in positions(form):
                place = place_of(form, path)
                if place is not None and place[0] not in EQUALITIES:
                    self._seen[place] |= kinds(node, restricted)

    def fits(self, place: Optional[Place], wanted: set[str]) -> bool:
        """Whether the forms have terms of all these kinds at a place; nothing fits in the place of the root."""
        return place is not None and bool(wanted) and wanted <= self._seen.get(place, set())
