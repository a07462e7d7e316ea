"""The tree itself: immutable, and traversed without recursion, so that only memory bounds its depth.

Below it are functions that check and build trees, and change their shape and labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from tree_fairseq.errors import MixedChildrenError, OutsideTreeError
from tree_fairseq.python_versions import zip_equal

INTERMEDIATE = "@"  # begins the labels of the nodes that binarization inserts

Result = TypeVar("Result")


class Tree:
    """A labelled, ordered tree.

    A tree without children is a *leaf* and its label is a word. In a constituency tree every leaf is the only child of
    its parent, the *preterminal*, whose label is the tag of the word. The class itself does not require that; the
    bracket writer and the span encoding do.
    """

    __slots__ = ("label", "children")

    label: str
    children: tuple[Tree, ...]

    def __init__(self, label: str, children: Iterable[Tree] = ()):
        children = tuple(children)
        if not isinstance(label, str):
            raise TypeError(f"a label is a string, not {type(label).__name__}")
        for child in children:
            if not isinstance(child, Tree):
                raise TypeError(f"a child is a Tree, not {type(child).__name__}")
        _set_label(self, label)
        _set_children(self, children)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Tree is immutable, cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Tree is immutable, cannot delete {name!r}")

    @property
    def is_leaf(self) -> bool:
        """Whether this is a word."""
        return not self.children

    @property
    def is_preterminal(self) -> bool:
        """Whether the node has exactly one child and that child is a leaf."""
        return len(self.children) == 1 and not self.children[0].children

    def preorder(self) -> Iterator[Tree]:
        """All nodes, leaves included, each before its children, from left to right."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def postorder(self) -> Iterator[Tree]:
        """All nodes, leaves included, each after its children, from left to right."""
        backwards = []
        stack = [self]
        while stack:
            node = stack.pop()
            backwards.append(node)
            stack.extend(node.children)
        return reversed(backwards)

    def fold(self, function: Callable[[Tree, list[Result]], Result]) -> Result:
        """Computes a value from the leaves up: ``function`` gets each node and the values of its children."""
        values: list[Result] = []
        for node in self.postorder():
            first = len(values) - len(node.children)
            arguments = values[first:]
            del values[first:]
            values.append(function(node, arguments))
        return values[0]

    def leaves(self) -> list[str]:
        """The words from left to right."""
        return [node.label for node in self.preorder() if not node.children]

    def height(self) -> int:
        """Number of edges between the root and the leaf farthest from it; 0 for a leaf."""
        return self.fold(lambda node, heights: 1 + max(heights) if heights else 0)

    def map_leaves(self, words: Sequence[str]) -> Tree:
        """The same tree over other words, one for each leaf; raises ValueError for another number of words."""
        leaf_count = len(self.leaves())
        if len(words) != leaf_count:
            raise ValueError(f"{len(words)} words for a tree of {leaf_count} leaves")
        remaining = iter(words)
        return self.fold(lambda node, children: Tree(node.label, children) if children else Tree(next(remaining)))

    def map_labels(self, function: Callable[[str], str]) -> Tree:
        """The same tree with ``function`` applied to every label that is not a word."""
        return self.fold(lambda node, children: Tree(function(node.label), children) if children else node)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        stack = [(self, other)]
        while stack:
            left, right = stack.pop()
            if left is right:
                continue
            if left.label != right.label or len(left.children) != len(right.children):
                return False
            stack.extend(zip_equal(left.children, right.children))
        return True

    def __hash__(self) -> int:
        # Labels and numbers of children in preorder determine the tree.
        return hash(tuple((node.label, len(node.children)) for node in self.preorder()))

    def __repr__(self) -> str:
        parts = []
        stack: list[Tree | str] = [self]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                parts.append(item)
            elif not item.children:
                parts.append(f"Tree({item.label!r})")
            else:
                parts.append(f"Tree({item.label!r}, [")
                first, *others = item.children
                stack += ["])", *(piece for child in reversed(others) for piece in (child, ", ")), first]
        return "".join(parts)

    def __reduce__(self):
        # Flat lists, because pickle and copy follow nested children by recursion and overflow on deep trees.
        nodes = list(self.preorder())
        return tree_from_preorder, ([node.label for node in nodes], [len(node.children) for node in nodes])


# These set the slots past __setattr__, faster than object.__setattr__ does.
_set_label, _set_children = Tree.__dict__["label"].__set__, Tree.__dict__["children"].__set__

Forest = tuple[Tree, ...]  # the trees of one line of a corpus, one for each sentence; () for a blank line


def forest_leaves(forest: Forest) -> list[str]:
    """The words of all trees from left to right: the tokens of the line."""
    return [word for tree in forest for word in tree.leaves()]


def check_preterminals(forest: Forest) -> None:
    """Raises OutsideTreeError for a tree that is a bare word, and MixedChildrenError for a word that has siblings."""
    for tree in forest:
        if not tree.children:
            message = f"the word {tree.label!r} is outside of all constituents"
            raise OutsideTreeError(message, hint="Give it a tag.")
        for node in tree.preorder():
            if len(node.children) > 1:
                for child in node.children:
                    if not child.children:
                        message = f"the word {child.label!r} is not alone under {node.label!r}"
                        hint = "Give every word a tag of its own, as in (NP (DT the) (NN man))."
                        raise MixedChildrenError(message, hint=hint)


def tree_from_preorder(labels: Sequence[str], child_counts: Sequence[int]) -> Tree:
    """The tree whose nodes, words included, have these labels and numbers of children in preorder.

    Raises ValueError if the numbers do not describe exactly one tree.
    """
    built: list[Tree] = []  # subtrees to the right of the current node, the rightmost first
    for label, count in zip_equal(reversed(labels), reversed(child_counts)):
        first = len(built) - count
        if first < 0:
            raise ValueError(f"the node {label!r} lacks {-first} of its {count} children")
        children = built[first:]
        del built[first:]
        built.append(Tree(label, reversed(children)))
    if len(built) != 1:
        raise ValueError(f"{len(built)} trees where one is described")
    return built[0]


def binary_tree(words: Sequence[str], split: Callable[[int, int], int], label: str) -> Tree:
    """The tree with a given split point in every phrase of two or more words.

    Args:
        words: at least one word
        split: called with the span ``[start, end)`` of each such phrase, from the root down and from left to right;
            returns the index of the first word of the right child
        label: the label of every phrase and the tag of every word
    """
    labels: list[str] = []
    child_counts: list[int] = []
    stack = [(0, len(words))]
    while stack:
        start, end = stack.pop()
        if end - start == 1:
            labels += (label, words[start])
            child_counts += (1, 0)
        else:
            labels.append(label)
            child_counts.append(2)
            middle = split(start, end)
            stack += ((middle, end), (start, middle))
    return tree_from_preorder(labels, child_counts)


def collapse_unary(tree: Tree) -> Tree:
    """Replaces each chain of only children, preterminals included, by its lowest node."""

    def collapse(node: Tree, children: list[Tree]) -> Tree:
        is_chain = len(children) == 1 and not children[0].is_leaf
        return children[0] if is_chain else Tree(node.label, children)

    return tree.fold(collapse)


def binarize(tree: Tree) -> Tree:
    r"""Gives every node at most two children: ``(A b c d)`` becomes ``(A b (@A c d))``.

    A label that begins with ``@`` or ``\`` already is escaped by ``\``, so that inserted nodes can be removed again.
    """

    def branch(node: Tree, children: list[Tree]) -> Tree:
        while len(children) > 2:
            children[-2:] = [Tree(INTERMEDIATE + node.label, children[-2:])]
        escape = "\\" if node.label.startswith((INTERMEDIATE, "\\")) else ""
        return Tree(escape + node.label, children) if children else node

    return tree.fold(branch)


def strip_function_tags(tree: Tree) -> Tree:
    """Cuts labels and tags at the first ``-`` or ``=``: ``NP-SBJ=2`` becomes ``NP``; ``-NONE-`` and ``-LRB-`` stay."""
    return tree.map_labels(
        lambda label: label if label.startswith(("-", "=")) else re.split("[-=]", label, maxsplit=1)[0]
    )
