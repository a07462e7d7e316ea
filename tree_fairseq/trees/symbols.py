r"""Symbol trees (programs, logical forms) as sequences of symbols that carry their arity.

A *symbol* is a label, a mark and an arity: ``next_to:t^2``. Given the order of traversal, the arities determine the
position of each symbol, so the sequence determines the tree (Shiv & Quirk 2019).

========  ==========================================================================================================
form      arity
========  ==========================================================================================================
``lcrs``  of the left-child right-sibling binary tree: 0 without children and next sibling; 1 with a next sibling
          only, which is on branch 1; 2 with children on branch 0 and the next sibling or ``<null>`` on branch 1
``none``  number of children, which are on branches 0, 1, ...
========  ==========================================================================================================

``<unk:a>`` represents any unknown symbol of arity a. In a label ``\s`` is a blank, ``\e`` an empty label and ``\\`` a
backslash.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tree_fairseq.errors import ArityMismatchError, EmptySymbolTreeError, MultipleRootsError
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.text import escape_label, unescape_label
from tree_fairseq.trees.tree import Forest, Tree

TRAVERSALS = ("dfs", "bfs")
BINARIZATIONS = ("lcrs", "none")

NULL = "<null>"  # the symbol, of arity 0, of a missing next sibling
UNKNOWN_LABEL = "<unk>"  # the label of an unknown symbol in a decoded tree
ARITY_MARK = "^"  # separates a label from its arity
_ESCAPED_MARK = r"\u005e"

# Nine digits are enough for the children of any tree.
_ARITY = "0|[1-9][0-9]{0,8}"
_UNKNOWN = re.compile(rf"<unk:({_ARITY})>")


def unknown_symbol(arity: int) -> str:
    """The symbol that represents unknown symbols of this arity."""
    return f"<unk:{arity}>"


def parents_and_branches(arities: Sequence[int], encoding: SymbolEncoding) -> tuple[list[int], list[int]]:
    """The parent and the branch of each symbol of a sequence, given the arities.

    A parent is its index in the sequence; the root has -1 and -1. Raises ArityMismatchError if the sequence ends too
    early, and MultipleRootsError if symbols follow after the tree is complete.
    """
    open_slots = deque([(-1, -1)])
    is_stack = encoding.traversal == "dfs"
    take = open_slots.pop if is_stack else open_slots.popleft
    parents: list[int] = []
    branches: list[int] = []
    for place, arity in enumerate(arities):
        if not open_slots:
            raise MultipleRootsError(f"the tree is complete after {place} of {len(arities)} symbols")
        if arity > len(arities):
            raise ArityMismatchError(f"a symbol has {arity} children in a sequence of {len(arities)} symbols")
        parent, branch = take()
        parents.append(parent)
        branches.append(branch)
        first = encoding.first_branch(arity)
        children = range(first, first + arity)
        open_slots.extend((place, child) for child in (reversed(children) if is_stack else children))
    if open_slots:
        missing = f"{len(open_slots)} more subtrees should follow"
        raise ArityMismatchError(f"the sequence of {len(arities)} symbols ends where {missing}")
    return parents, branches


@dataclass(frozen=True)
class SymbolEncoding:
    """Converts trees to sequences of symbols and back."""

    traversal: str = "dfs"
    binarization: str = "lcrs"

    def join(self, label: str, arity: int) -> str:
        """The symbol of a label and an arity; a mark within the label is escaped."""
        return f"{escape_label(label).replace(ARITY_MARK, _ESCAPED_MARK)}{ARITY_MARK}{arity}"

    def split(self, symbol: str) -> tuple[str, int]:
        """The label and the arity of a symbol; raises ArityMismatchError if it has no arity."""
        if symbol == NULL:
            return NULL, 0
        if unknown := _UNKNOWN.fullmatch(symbol):
            return UNKNOWN_LABEL, int(unknown[1])
        label, mark, arity = symbol.rpartition(ARITY_MARK)
        if not (mark and label and re.fullmatch(_ARITY, arity)):
            raise ArityMismatchError(f"{symbol!r} is not a symbol with an arity, such as 'and{ARITY_MARK}2'")
        return unescape_label(label), int(arity)

    def parts(self, symbol: str) -> tuple[str, int]:
        """The label and the arity of a symbol; itself and -1 if it has no arity, such as EOS and words."""
        try:
            return self.split(symbol)
        except ArityMismatchError:
            return symbol, -1

    def first_branch(self, arity: int) -> int:
        """The branch of a symbol's first child; in the ``lcrs`` form an only child is the next sibling, on branch 1."""
        return 1 if self.binarization == "lcrs" and arity == 1 else 0

    def encode(self, tree: Tree) -> list[str]:
        """The symbols of a tree."""
        symbols: list[str] = []
        # Siblings and the index of the next one to write; the index after the last sibling stands for <null>.
        waiting: deque[tuple[Sequence[Tree], int]] = deque([((tree,), 0)])
        while waiting:
            siblings, place = waiting.pop() if self.traversal == "dfs" else waiting.popleft()
            if place == len(siblings):
                symbols.append(NULL)
                continue
            node = siblings[place]
            below: list[tuple[Sequence[Tree], int]] = []
            if self.binarization == "none":
                below = [(node.children, child) for child in range(len(node.children))]
            elif node.children:
                below = [(node.children, 0), (siblings, place + 1)]
            elif place + 1 < len(siblings):
                below = [(siblings, place + 1)]
            symbols.append(self.join(node.label, len(below)))
            waiting.extend(reversed(below) if self.traversal == "dfs" else below)
        return symbols

    def decode(self, symbols: Sequence[str]) -> Tree:
        """The tree of a sequence of symbols.

        Raises EmptySymbolTreeError or MultipleRootsError for none or several, and ArityMismatchError if the symbols are
        not a complete tree that `encode` returns.
        """
        if not symbols:
            raise EmptySymbolTreeError("there are no symbols, but a tree has at least one")
        if self.binarization == "none" and NULL in symbols:
            raise ArityMismatchError(f"{NULL} in a tree that was not binarized")
        labels, arities = zip(*map(self.split, symbols))
        parents, branches = parents_and_branches(arities, self)
        if self.binarization == "none":
            return tree_of_parents(labels, parents)
        lower: list[deque[Tree]] = [deque() for _ in labels]
        following: list[deque[Tree]] = [deque() for _ in labels]
        # In both traversals every node precedes the nodes below it.
        for place in reversed(range(len(labels))):
            symbol, arity, parent, branch = symbols[place], arities[place], parents[place], branches[place]
            chain = following[place]
            if arity > 2:
                raise ArityMismatchError(f"{symbol!r} has more than the two branches of a binary tree")
            if symbol == NULL and (parent < 0 or branch != 1 or arities[parent] != 2):
                raise ArityMismatchError(f"{NULL} in the place of a symbol")
            if chain and parent < 0:
                raise ArityMismatchError("the root has a sibling")
            if arity == 1 and not chain:
                raise ArityMismatchError(f"no sibling follows {symbol!r}")
            if symbol != NULL:
                chain.appendleft(Tree(labels[place], lower[place]))
            if parent >= 0:
                (following if branch == 1 else lower)[parent] = chain
        return following[0][0]


def tree_of_parents(labels: Sequence[str], parents: Sequence[int]) -> Tree:
    """The tree of nodes that are listed after their parents and after their siblings on the left, the root first.

    ``parents`` are indices; that of the root is ignored.
    """
    children: list[deque[Tree]] = [deque() for _ in labels]
    for place in range(len(labels) - 1, 0, -1):
        children[parents[place]].appendleft(Tree(labels[place], children[place]))
    return Tree(labels[0], children[0])


def tree_of_forest(forest: Forest) -> Tree:
    """One symbol tree of the nodes and words of a line's parses; several sentences get a node above them."""
    if not forest:
        raise EmptySymbolTreeError("the line holds no sentence, and a tree has a root")
    return forest[0] if len(forest) == 1 else Tree("DOCUMENT", forest)


def unordered_labels(notation: str) -> tuple[str, ...]:
    """The labels whose children have no order: conjunction and disjunction, which Prolog writes ``,`` and ``;``."""
    return ("and", "or", ",", ";") if notation == "prolog" else ("and", "or")


def exact_matches(
    outputs: Iterable[Tree | None], references: Iterable[Tree], unordered: Iterable[str] = ()
) -> list[bool]:
    """Whether each output equals its reference, up to the order of the children of nodes with these labels.

    Most work on ATIS, GEO and JOBS compares semantic parses so (Dong & Lapata 2016 and others). Nothing else is treated
    as equal: variables keep their names, nested conjunctions are not flattened, and ``and(a, a, b)`` differs from
    ``and(a, b)``. An output that is not a tree (None) and a tree with an unknown symbol are never a match.
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
        for output, reference in zip_equal(outputs, references)
    ]
