"""Equality with unordered children, against all permutations."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import symbol_trees
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.symbols import exact_matches, unordered_labels
from tree_fairseq.trees.tree import Tree

UNORDERED = ("and", "or")
TREES = symbol_trees(labels=("and", "or", "f", "x"), max_children=3, max_leaves=7)


def same(first: Tree, second: Tree) -> bool:
    """Whether some order of the unordered children makes the trees equal, by trying all."""
    if first.label != second.label or len(first.children) != len(second.children):
        return False
    orders = permutations(second.children) if first.label in UNORDERED else [second.children]
    return any(all(same(*pair) for pair in zip(first.children, order)) for order in orders)


def equal(first: Tree, second: Tree, unordered=UNORDERED) -> bool:
    (found,) = exact_matches([first], [second], unordered)
    return found


def shuffled(tree: Tree, generator: random.Random) -> Tree:
    def rebuild(node, children):
        if node.label in UNORDERED:
            generator.shuffle(children)
        return Tree(node.label, children)

    return tree.fold(rebuild)


@given(TREES, TREES)
def test_equality_agrees_with_all_permutations(first, second):
    assert equal(first, second) == same(first, second)
    assert equal(first, second, ()) == (first == second)


@given(TREES, st.randoms(use_true_random=False))
def test_shuffling_changes_nothing(tree, generator):
    assert equal(shuffled(tree, generator), tree)


@pytest.mark.parametrize(
    ("notation", "first", "second", "expected"),
    [
        ("bracket", "( and ( f x ) ( or a b ) )", "( and ( or b a ) ( f x ) )", True),
        ("bracket", "( f a b )", "( f b a )", False),
        ("bracket", "( and a a b )", "( and a b b )", False),
        ("bracket", "( and a a )", "( and a )", False),
        ("prolog", "job ( ANS ) , language ( ANS , l0 )", "language ( ANS , l0 ) , job ( ANS )", True),
        ("prolog", "language ( ANS , l0 )", "language ( l0 , ANS )", False),
        ("prolog", "job ( A ) , \\+ ( a ( A ) ; b ( A ) )", "\\+ ( b ( A ) ; a ( A ) ) , job ( A )", True),
    ],
)
def test_notations(notation, first, second, expected):
    reader = notation_named(notation)
    assert equal(reader.read(first), reader.read(second), unordered_labels(notation)) == expected


def test_deep_trees():
    deep = Tree("x")
    for _ in range(20000):
        deep = Tree("and", (Tree("a"), deep))
    assert equal(deep, shuffled(deep, random.Random(1)))


def test_missing_and_unknown_outputs_never_match():
    first, second = Tree("and", [Tree("x"), Tree("y")]), Tree("and", [Tree("y"), Tree("x")])
    unknown = Tree("and", [Tree("<unk>")])
    outputs, references = [first, first, None, unknown], [first, second, first, unknown]
    assert exact_matches(outputs, references) == [True, False, False, False]
    assert exact_matches(outputs, references, UNORDERED) == [True, True, False, False]
