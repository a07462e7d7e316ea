"""The tree: an immutable node with a label and children.

No function here calls itself, so only memory limits how deep a tree can be.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeVar

from tree_fairseq.errors import MixedChildrenError, OutsideTreeError
from tree_fairseq.support.python_versions import import_library

INTERMEDIATE = "@"  # the first character of the labels of the nodes that `binarize` inserts
_LABEL_COLUMNS = 20  # the columns that a narrow drawing keeps for labels and words

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

    def tagged_words(self) -> list[tuple[str, str]]:
        """Each word that is alone under its tag, with the tag, from left to right."""
        return [(node.children[0].label, node.label) for node in self.preorder() if node.is_preterminal]

    def subtrees(self, *labels: str) -> Iterator[Tree]:
        """The nodes above words in preorder, tags included; with ``labels`` only those that have one of them."""
        return (node for node in self.preorder() if node.children and (not labels or node.label in labels))

    def spans(self) -> Iterator[tuple[Tree, int, int]]:
        """Each node above words, in preorder, with the half-open span ``[start, end)`` of the leaves below it."""
        nodes = list(self.preorder())
        sizes = [1] * len(nodes)
        right: list[int] = []  # the sizes of the subtrees to the right of the current node, the rightmost first
        for number in range(len(nodes) - 1, -1, -1):
            if count := len(nodes[number].children):
                sizes[number] = sum(right[-count:])
                del right[-count:]
            right.append(sizes[number])
        start = 0
        for node, size in zip(nodes, sizes):
            if node.children:
                yield node, start, start + size
            else:
                start += 1

    def height(self) -> int:
        """Number of edges between the root and the leaf farthest from it; 0 for a leaf."""
        return self.fold(lambda node, heights: 1 + max(heights) if heights else 0)

    def map_leaves(self, words: Sequence[str]) -> Tree:
        """Returns the same tree over other words, one for each leaf; raises ValueError for another number of words."""
        leaf_count = len(self.leaves())
        if len(words) != leaf_count:
            raise ValueError(f"{len(words)} words for a tree of {leaf_count} leaves")
        remaining = iter(words)
        return self.fold(lambda node, children: Tree(node.label, children) if children else Tree(next(remaining)))

    def map_labels(self, function: Callable[[str], str]) -> Tree:
        """Returns the same tree with ``function`` applied to every label that is not a word."""
        return self.fold(lambda node, children: Tree(function(node.label), children) if children else node)

    def pretty(self, *, width: int | None = None, max_depth: int = 100) -> str:
        """The tree as text, drawn with lines: see `tree_to_text`."""
        return tree_to_text((self,), width=width, max_depth=max_depth)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """IPython and Jupyter call this to show a tree."""
        printer.text(self.pretty())

    def to_dict(self) -> dict[str, Any]:
        """The tree as nested dictionaries for JSON: ``{"label": "DT", "children": [{"label": "the"}]}``.

        A word has no ``children``. The inverse is `from_dict`.
        """
        return self.fold(
            lambda node, children: {"label": node.label, "children": children} if children else {"label": node.label}
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Tree:
        """The tree that `to_dict` gave; other keys are ignored. Raises ValueError for a node without a label."""

        def parts(node: Any) -> tuple[str, Iterable[Any]]:
            if not isinstance(node, Mapping) or "label" not in node:
                raise ValueError(f"a node is a dictionary with a label, not {str(node)[:60]!r}")
            return node["label"], node.get("children") or ()

        return tree_from_nested(values, parts)

    def to_nltk(self) -> Any:
        """Returns the tree as an ``nltk.Tree`` whose leaves are strings; raises MissingLibraryError without NLTK.

        A tree that is a word becomes an ``nltk.Tree`` without children.
        """
        nltk_tree = import_library("nltk", "nltk", "Tree.to_nltk").Tree
        if not self.children:
            return nltk_tree(self.label, [])
        return self.fold(lambda node, children: nltk_tree(node.label, children) if children else node.label)

    @classmethod
    def from_nltk(cls, tree: Any) -> Tree:
        """The tree of an ``nltk.Tree``; the inverse of `to_nltk`. Raises TypeError for a leaf that is not a string."""
        # A leaf is any object that is not a tree.
        return tree_from_nested(tree, lambda node: (node.label(), node) if hasattr(node, "label") else (node, ()))

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
            stack.extend(zip(left.children, right.children))
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


def tree_from_nested(root: Any, parts: Callable[[Any], tuple[str, Iterable[Any]]]) -> Tree:
    """The tree of other nested objects, without recursion; ``parts`` returns the label and the children of one."""
    labels: list[str] = []
    child_counts: list[int] = []
    stack = [root]
    while stack:
        node = stack.pop()
        label, children = parts(node)
        below = list(children)
        labels.append(label)
        child_counts.append(len(below))
        stack += reversed(below)
    return tree_from_preorder(labels, child_counts)


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
    if len(labels) != len(child_counts):
        raise ValueError(f"{len(labels)} labels for {len(child_counts)} numbers of children")
    for label, count in zip(reversed(labels), reversed(child_counts)):
        first = len(built) - count
        if first < 0:
            raise ValueError(f"the node {label!r} lacks {-first} of its {count} children")
        children = built[first:]
        del built[first:]
        built.append(Tree(label, reversed(children)))
    if len(built) != 1:
        raise ValueError(f"{len(built)} trees where one is described")
    return built[0]


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


def binary_tree(words: Sequence[str], split: Callable[[int, int], int], label: str) -> Tree:
    """The tree of at least one word with a given split point in every phrase of two or more words.

    ``split`` is called with the span ``[start, end)`` of each such phrase, from the root down and from left to right,
    and returns the index of the first word of the right child. All phrases and words have the same label.
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


def tree_to_text(forest: Forest, *, max_depth: int = 100, width: int | None = None) -> str:
    """Draws the trees of a line for a terminal, below one another, with the root at the left and a word in each row.

    Constituents below ``max_depth`` are reduced to ``…`` and their words. ``width`` is the number of columns of the
    terminal: constituents that would begin too far to the right are reduced, too, and longer rows are cut with ``…``.
    Raises ValueError for a width below 8.
    """
    if width is not None:
        if width < 8:
            raise ValueError(f"a drawing needs at least 8 columns, not {width}")
        max_depth = min(max_depth, (width - _LABEL_COLUMNS) // 4 if width > _LABEL_COLUMNS else 0)
    lines = []
    for tree in forest:
        # A node, the prefix of its row, the prefix of the rows of its children, and its depth.
        stack = [(tree, "", "", 0)]
        while stack:
            node, before, prefix, depth = stack.pop()
            text = [node.label]
            # A unary chain shares a row.
            while len(node.children) == 1:
                node = node.children[0]
                text.append(node.label)
            if node.children and depth >= max_depth:
                text += ["…", *node.leaves()]
            row = before + _printable(" ".join(text))
            lines.append(row if width is None else _cut(row, width))
            if depth < max_depth:
                for place, child in enumerate(reversed(node.children)):
                    mark, below = ("├── ", "│   ") if place else ("└── ", "    ")
                    stack.append((child, prefix + mark, prefix + below, depth + 1))
    return "\n".join(lines)


def _printable(text: str) -> str:
    """The text without control characters, which could change the terminal."""
    return "".join("\ufffd" if unicodedata.category(character) in ("Cc", "Cs") else character for character in text)


def _cut(row: str, width: int) -> str:
    """The row, or its beginning and ``…`` if it has more columns than ``width``."""
    ends = list(accumulate(map(text_columns, row)))
    if not ends or ends[-1] <= width:
        return row
    return row[: bisect_right(ends, width - 1)] + "…"


def text_columns(text: str) -> int:
    """The number of columns that a text takes in a terminal; characters of East Asian scripts take two."""
    return sum(
        1 + (unicodedata.east_asian_width(character) in ("F", "W"))
        for character in text
        if unicodedata.category(character) not in ("Mn", "Me", "Cf")
    )
