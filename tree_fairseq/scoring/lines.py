"""Outputs of models that write text: programs as they are typed, of which no notation of trees is known."""

from __future__ import annotations

from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.notations.base import Notation
from tree_fairseq.trees.tree import Tree

LINES = "lines"
"""Stands in the place of a notation where whole lines are compared."""


class Lines(Notation):
    """Lines of tokens: as trees, the tokens below a root without a name."""

    def write(self, tree: Tree) -> str:
        return " ".join(token.label for token in tree.children)

    def _read(self, line: str) -> Tree:
        return Tree("", [Tree(token) for token in line.split()])


def reader_named(name: str) -> Notation:
    """The notation of that name, or what reads lines."""
    return Lines() if name == LINES else notation_named(name)
