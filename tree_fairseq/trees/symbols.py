r"""Symbol trees (programs, logical forms) as sequences of symbols that carry their arity.

A *symbol* is a label, a mark and an arity: ``next_to:t^2``. With the order of traversal, the arities alone say where each
symbol stands, so that the sequence is the tree (Shiv & Quirk 2019).

========  ==========================================================================================================
form      arity
========  ==========================================================================================================
``lcrs``  of the left-child right-sibling binary tree: 0 without children and next sibling, 1 with a next sibling
          only, which then stands on branch 1, and 2 with children, where ``<null>`` says that no sibling follows
``none``  number of children, which stand on branches 0, 1, ...
========  ==========================================================================================================

``<unk:a>`` stands for any unknown symbol of arity a. In a label ``\s`` is a blank, ``\e`` an empty label and ``\\`` a
backslash.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from tree_fairseq.errors import ArityMismatchError, EmptySymbolTreeError, MultipleRootsError, ReservedMarkError
from tree_fairseq.trees.tree import Tree

TRAVERSALS = ("dfs", "bfs")
BINARIZATIONS = ("lcrs", "none")

NULL = "<null>"
"""The symbol, of arity 0, of an absent next sibling."""

UNKNOWN_LABEL = "<unk>"
"""The label of an unknown symbol in a decoded tree."""

ARITY_MARK = "^"

# As the encoding writes them; nine digits are more than any tree has children.
_ARITY = "0|[1-9][0-9]{0,8}"
_UNKNOWN = re.compile(rf"<unk:({_ARITY})>")
_TO_ESCAPE = re.compile(r"[\s\\]")
_ESCAPED = re.compile(r"\\(?:u([0-9a-f]{4})|(.))")


def escape_label(label: str) -> str:
    """A label as one word, without blanks and not empty; the inverse is `unescape_label`."""
    return _TO_ESCAPE.sub(lambda found: _escape(found.group()), label) or r"\e"


def unescape_label(word: str) -> str:
    """The label that `escape_label` wrote so."""
    return _ESCAPED.sub(lambda found: _unescape(found[1], found[2]), word)


def unknown_symbol(arity: int) -> str:
    """The symbol that stands for unknown ones of this arity."""
    return f"<unk:{arity}>"


def parents_and_branches(
    arities: Sequence[int], first_branches: Sequence[int], traversal: str
) -> tuple[list[int], list[int]]:
    """Where each symbol of a sequence stands.

    Args:
        arities: of the symbols, in order of traversal
        first_branches: the branch of each symbol's first child
        traversal: ``dfs`` (preorder) or ``bfs`` (level order)

    Returns:
        for each symbol, the place of its parent in the sequence and its branch under it; -1 and -1 for the root

    Raises:
        ArityMismatchError: the sequence ends too early
        MultipleRootsError: symbols follow when the tree is complete
    """
    open_slots = deque([(-1, -1)])
    take = open_slots.pop if traversal == "dfs" else open_slots.popleft
    parents, branches = [], []
    for place, (arity, first) in enumerate(zip(arities, first_branches, strict=True)):
        if not open_slots:
            raise MultipleRootsError(f"the tree is complete after {place} of {len(arities)} symbols")
        if arity > len(arities):
            raise ArityMismatchError(f"a symbol has {arity} children in a sequence of {len(arities)} symbols")
        parent, branch = take()
        parents.append(parent)
        branches.append(branch)
        children = range(first, first + arity)
        open_slots.extend((place, child) for child in (reversed(children) if traversal == "dfs" else children))
    if open_slots:
        missing = f"{len(open_slots)} more subtrees should follow"
        raise ArityMismatchError(f"the sequence of {len(arities)} symbols ends where {missing}")
    return parents, branches


@dataclass(frozen=True)
class SymbolEncoding:
    """Turns trees into sequences of symbols and back.

    Attributes:
        traversal: ``dfs`` or ``bfs``
        binarization: ``lcrs`` or ``none``
        mark: one character that separates a label from its arity
    """

    traversal: str = "dfs"
    binarization: str = "lcrs"
    mark: str = ARITY_MARK

    def __post_init__(self):
        if self.traversal not in TRAVERSALS or self.binarization not in BINARIZATIONS:
            raise ValueError(f"no traversal {self.traversal!r} of trees with binarization {self.binarization!r}")
        if len(self.mark) != 1 or self.mark.isspace() or self.mark.isalnum() or self.mark in "\\<>":
            raise ValueError(
                f"the mark is one character, no letter, digit or blank and none of \\<>, unlike {self.mark!r}"
            )

    def join(self, label: str, arity: int) -> str:
        """The symbol of a label and an arity.

        Raises:
            ReservedMarkError: the label contains the mark
        """
        if self.mark in label:
            raise ReservedMarkError(
                f"the symbol {label!r} contains {self.mark!r}, which separates symbols from their arities",
                hint="Choose a character that no symbol contains, with --arity-mark.",
            )
        return f"{escape_label(label)}{self.mark}{arity}"

    def split(self, symbol: str) -> tuple[str, int]:
        """Label and arity of a symbol.

        Raises:
            ArityMismatchError: it has no arity
        """
        if symbol == NULL:
            return NULL, 0
        if unknown := _UNKNOWN.fullmatch(symbol):
            return UNKNOWN_LABEL, int(unknown[1])
        label, mark, arity = symbol.rpartition(self.mark)
        if not (mark and label and re.fullmatch(_ARITY, arity)):
            raise ArityMismatchError(f"{symbol!r} is no symbol with an arity, such as {self.mark.join(('and', '2'))!r}")
        return unescape_label(label), int(arity)

    def first_branch(self, arity: int) -> int:
        """The branch of the first child of a symbol: an only child of the binary form is a sibling, on branch 1."""
        return 1 if self.binarization == "lcrs" and arity == 1 else 0

    def encode(self, tree: Tree) -> list[str]:
        """The symbols of a tree.

        Raises:
            ReservedMarkError: a label contains the mark
        """
        return self._encode_siblings(tree) if self.binarization == "lcrs" else self._encode_children(tree)

    def decode(self, symbols: Sequence[str]) -> Tree:
        """The tree of a sequence of symbols.

        Raises:
            EmptySymbolTreeError: there are none
            ArityMismatchError: they make no complete tree, or one that no tree is encoded by
            MultipleRootsError: they make more than one
        """
        if not symbols:
            raise EmptySymbolTreeError("there are no symbols, and a tree has at least one")
        if self.binarization == "none" and NULL in symbols:
            raise ArityMismatchError(f"{NULL} stands in a tree that was not binarized")
        labels, arities = zip(*map(self.split, symbols))
        firsts = [self.first_branch(arity) for arity in arities]
        parents, branches = parents_and_branches(arities, firsts, self.traversal)
        return (
            self._join_siblings(symbols, labels, arities, parents, branches)
            if self.binarization == "lcrs"
            else (tree_of_parents(labels, parents))
        )

    def _encode_children(self, tree: Tree) -> list[str]:
        symbols, waiting = [], deque([tree])
        while waiting:
            node = waiting.pop() if self.traversal == "dfs" else waiting.popleft()
            symbols.append(self.join(node.label, len(node.children)))
            waiting.extend(reversed(node.children) if self.traversal == "dfs" else node.children)
        return symbols

    def _encode_siblings(self, tree: Tree) -> list[str]:
        symbols: list[str] = []
        # Siblings and the place among them of the node that is meant; past the last one it is <null>.
        waiting: deque[tuple[Sequence[Tree], int]] = deque([((tree,), 0)])
        while waiting:
            siblings, place = waiting.pop() if self.traversal == "dfs" else waiting.popleft()
            if place == len(siblings):
                symbols.append(NULL)
                continue
            node = siblings[place]
            following = (siblings, place + 1)
            if node.children:
                symbols.append(self.join(node.label, 2))
                children = [(node.children, 0), following]
                waiting.extend(reversed(children) if self.traversal == "dfs" else children)
            elif place + 1 < len(siblings):
                symbols.append(self.join(node.label, 1))
                waiting.append(following)
            else:
                symbols.append(self.join(node.label, 0))
        return symbols

    def _join_siblings(
        self,
        symbols: Sequence[str],
        labels: Sequence[str],
        arities: Sequence[int],
        parents: Sequence[int],
        branches: Sequence[int],
    ) -> Tree:
        lower: list[deque[Tree]] = [deque() for _ in labels]
        following: list[deque[Tree]] = [deque() for _ in labels]
        # Both traversals have every node before what stands below it.
        for place in range(len(labels) - 1, -1, -1):
            parent, branch, is_null = parents[place], branches[place], symbols[place] == NULL
            if arities[place] > 2:
                raise ArityMismatchError(f"{symbols[place]!r} has more than the two branches of a binary tree")
            if is_null and (parent < 0 or branch != 1 or arities[parent] != 2):
                raise ArityMismatchError(f"{NULL} stands where a symbol must be")
            if following[place] and parent < 0 or arities[place] == 1 and not following[place]:
                wrong = "the root has a sibling" if parent < 0 else f"no sibling follows {symbols[place]!r}"
                raise ArityMismatchError(wrong)
            chain = following[place]
            if not is_null:
                chain.appendleft(Tree(labels[place], lower[place]))
            if parent < 0:
                return chain[0]
            (following if branch == 1 else lower)[parent] = chain
        raise AssertionError("a sequence has a root")


def tree_of_parents(labels: Sequence[str], parents: Sequence[int]) -> Tree:
    """The tree of nodes of which each stands after its parent and after its siblings on the left.

    Args:
        labels: of the nodes
        parents: their parents' places; that of the root, which is the first, does not matter
    """
    children: list[deque[Tree]] = [deque() for _ in labels]
    for place in range(len(labels) - 1, 0, -1):
        children[parents[place]].appendleft(Tree(labels[place], children[place]))
    return Tree(labels[0], children[0])


def _escape(character: str) -> str:
    return {" ": r"\s", "\\": r"\\"}.get(character) or f"\\u{ord(character):04x}"


def _unescape(code: str | None, letter: str | None) -> str:
    if code is not None:
        return chr(int(code, 16))
    return {"s": " ", "e": ""}.get(letter, letter)
