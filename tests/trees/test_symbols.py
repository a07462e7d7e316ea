"""Trees as sequences of symbols: inverses, the form of the paper, and sequences that are not trees."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import any_trees, deep_tree, symbol_trees
from tree_fairseq.errors import ArityMismatchError, EmptySymbolTreeError, MultipleRootsError, SymbolTreeError
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.symbols import (
    BINARIZATIONS,
    NULL,
    TRAVERSALS,
    UNKNOWN_LABEL,
    SymbolEncoding,
    parents_and_branches,
    unknown_symbol,
)
from tree_fairseq.trees.tree import Tree

ENCODINGS = [SymbolEncoding(traversal, form) for traversal in TRAVERSALS for form in BINARIZATIONS]
IDS = [f"{encoding.traversal}-{encoding.binarization}" for encoding in ENCODINGS]


@dataclass
class Binary:
    """A node of the left-child right-sibling tree; a missing right child of a node that has a left one is explicit."""

    label: str
    left: Binary | None = None
    right: Binary | None = None

    @property
    def children(self):
        return [child for child in (self.left, self.right) if child is not None]

    @property
    def symbol(self):
        return NULL if self.label == NULL else f"{self.label}^{len(self.children)}"


def binary(node: Tree, following: list[Tree]) -> Binary:
    """The binary tree of a node and the siblings that follow it, as Shiv & Quirk describe it, by recursion."""
    right = binary(following[0], following[1:]) if following else None
    if not node.children:
        return Binary(node.label, None, right)
    first, *others = node.children
    return Binary(node.label, binary(first, others), right or Binary(NULL))


def preorder(node: Binary) -> list[str]:
    return [node.symbol, *(symbol for child in node.children for symbol in preorder(child))]


def level_order(root: Binary) -> list[str]:
    level, symbols = [root], []
    while level:
        symbols += [node.symbol for node in level]
        level = [child for node in level for child in node.children]
    return symbols


def positions(node: Binary | Tree, path: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """The branches from the root to each node, in preorder."""
    if isinstance(node, Tree):
        below = enumerate(node.children)
    else:
        below = [(branch, child) for branch, child in enumerate((node.left, node.right)) if child is not None]
    return [path, *(place for branch, child in below for place in positions(child, (*path, branch)))]


@pytest.mark.parametrize("encoding", ENCODINGS, ids=IDS)
@settings(max_examples=50, deadline=None)
@given(tree=any_trees())
def test_decode_inverts_encode(encoding, tree):
    symbols = encoding.encode(tree)
    assert encoding.decode(symbols) == tree
    assert " ".join(symbols).split() == symbols
    assert [encoding.join(*encoding.split(symbol)) for symbol in symbols if symbol != NULL] == [
        s for s in symbols if s != NULL
    ]


@settings(max_examples=50, deadline=None)
@given(symbol_trees())
def test_binary_form_is_that_of_the_paper(tree):
    expected = binary(tree, [])
    assert SymbolEncoding("dfs").encode(tree) == preorder(expected)
    assert SymbolEncoding("bfs").encode(tree) == level_order(expected)


@pytest.mark.parametrize("encoding", ENCODINGS, ids=IDS)
@settings(max_examples=50, deadline=None)
@given(tree=symbol_trees())
def test_parents_and_branches_lead_to_every_node(encoding, tree):
    arities = [encoding.split(symbol)[1] for symbol in encoding.encode(tree)]
    parents, branches = parents_and_branches(arities, encoding)
    paths = []
    for place, (parent, branch) in enumerate(zip_equal(parents, branches)):
        assert parent < place and (parent < 0) == (branch < 0) == (place == 0)
        paths.append((*paths[parent], branch) if place else ())
    expected = positions(binary(tree, []) if encoding.binarization == "lcrs" else tree)
    if encoding.traversal == "dfs":
        assert paths == expected
    else:
        assert paths == sorted(expected, key=lambda path: (len(path), path))


def all_trees(size: int) -> list[Tree]:
    return [Tree("a", children) for children in forests(size - 1)]


def forests(size: int) -> list[tuple[Tree, ...]]:
    if size == 0:
        return [()]
    return [
        (tree, *rest) for first in range(1, size + 1) for tree in all_trees(first) for rest in forests(size - first)
    ]


@pytest.mark.parametrize("encoding", ENCODINGS, ids=IDS)
def test_exactly_the_encoded_trees_are_decoded(encoding):
    longest = 6
    alphabet = ("a^0", "a^1", "a^2", NULL, "a^3")
    images = {tuple(encoding.encode(tree)): tree for size in range(1, longest + 1) for tree in all_trees(size)}
    accepted = 0
    for length in range(longest + 1):
        for symbols in itertools.product(alphabet, repeat=length):
            try:
                tree = encoding.decode(symbols)
            except SymbolTreeError:
                assert symbols not in images
            else:
                assert images[symbols] == tree
                accepted += 1
    reachable = [s for s in images if len(s) <= longest and set(s) <= set(alphabet)]
    assert accepted == len(reachable) > 10


@pytest.mark.parametrize(
    ("symbols", "error", "words"),
    [
        ("", EmptySymbolTreeError, "no symbols"),
        ("a^1 b^0", ArityMismatchError, "the root has a sibling"),
        ("a^2 b^0 c^0", ArityMismatchError, "the root has a sibling"),
        (NULL, ArityMismatchError, "<null> in the place of"),
        (f"a^2 {NULL} {NULL}", ArityMismatchError, "<null> in the place of"),
        (f"a^2 b^1 {NULL} {NULL}", ArityMismatchError, "<null> in the place of"),
        ("a^2 b^0", ArityMismatchError, "ends where 1 more"),
        ("a^0 b^0", MultipleRootsError, "complete after 1 of 2"),
        ("a^3 b^0 c^0 d^0", ArityMismatchError, "more than the two branches"),
        ("a^999999999", ArityMismatchError, "999999999 children in a sequence of 1"),
        (f"a^{'9' * 5000}", ArityMismatchError, "not a symbol with an arity"),
        ("a", ArityMismatchError, "'a' is not a symbol with an arity, such as 'and.2'"),
        ("a^", ArityMismatchError, "not a symbol with an arity"),
        ("^0", ArityMismatchError, "not a symbol with an arity"),
        ("a^01", ArityMismatchError, "not a symbol with an arity"),
        ("a^²", ArityMismatchError, "not a symbol with an arity"),
        ("<unk>", ArityMismatchError, "not a symbol with an arity"),
    ],
)
def test_symbols_that_are_no_tree_are_refused_with_the_reason(symbols, error, words):
    with pytest.raises(error, match=words):
        SymbolEncoding("dfs", "lcrs").decode(symbols.split())


def test_null_belongs_to_the_binary_form():
    with pytest.raises(ArityMismatchError, match="not binarized"):
        SymbolEncoding("dfs", "none").decode(["a^1", NULL])


def test_example_of_the_binary_form():
    tree = Tree("f", [Tree("x"), Tree("g", [Tree("y")]), Tree("z")])
    assert SymbolEncoding("dfs").encode(tree) == "f^2 x^1 g^2 y^0 z^0 <null>".split()
    assert SymbolEncoding("bfs").encode(tree) == "f^2 x^1 <null> g^2 y^0 z^0".split()
    assert SymbolEncoding("dfs", "none").encode(tree) == "f^3 x^0 g^1 y^0 z^0".split()
    assert SymbolEncoding("bfs", "none").encode(tree) == "f^3 x^0 g^1 z^0 y^0".split()


@pytest.mark.parametrize("encoding", ENCODINGS, ids=IDS)
def test_unknown_symbols_keep_their_place(encoding):
    tree = Tree("f", [Tree("x"), Tree("g", [Tree("y")])])
    symbols = [
        symbol if symbol == NULL else unknown_symbol(encoding.split(symbol)[1]) for symbol in encoding.encode(tree)
    ]
    unknown = tree.fold(lambda node, children: Tree(UNKNOWN_LABEL, children))
    assert encoding.decode(symbols) == unknown


@pytest.mark.parametrize("encoding", ENCODINGS, ids=IDS)
def test_labels_that_look_like_symbols_are_labels(encoding):
    tree = Tree(
        "<unk:2>", [Tree(NULL), Tree("\\s"), Tree(" "), Tree(""), Tree("\\e"), Tree("\u2028\\u2028"), Tree("a 0")]
    )
    symbols = encoding.encode(tree)
    assert encoding.decode(symbols) == tree
    assert symbols[0].startswith("<unk:2>^")


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=6) | st.text(alphabet="^\\u5e", max_size=9), st.integers(0, 99))
def test_split_inverts_join(label, arity):
    symbol = SymbolEncoding().join(label, arity)
    assert SymbolEncoding().split(symbol) == (label, arity) and symbol.count("^") == 1


@pytest.mark.parametrize("encoding", ENCODINGS, ids=IDS)
def test_trees_of_depth_20000_are_read_and_written(encoding):
    tree = deep_tree(20_000)
    assert encoding.decode(encoding.encode(tree)) == tree
    wide = Tree("f", [Tree("x")] * 20_000)
    assert encoding.decode(encoding.encode(wide)) == wide
