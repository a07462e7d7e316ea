"""Transforms against their inverses, and unary chains against nltk's."""

from __future__ import annotations

import nltk
from hypothesis import example, given, settings

from tests.strategies import any_trees, plain_trees, trees
from tests.trees.inverses import debinarize
from tree_fairseq.trees.bracket import read_tree, write_forest
from tree_fairseq.trees.tree import INTERMEDIATE, binarize, collapse_unary


@given(plain_trees())
@settings(deadline=None)
def test_collapse_keeps_the_lowest_label_of_nltks_chains(tree):
    theirs = nltk.Tree.fromstring(write_forest((tree,)))
    theirs.collapse_unary(collapsePOS=True, collapseRoot=True, joinChar="+")
    lowest = read_tree(" ".join(str(theirs).split())).map_labels(lambda label: label.split("+")[-1])
    assert collapse_unary(tree) == lowest


def test_collapse_by_example():
    tree = read_tree("(ROOT (S (NP (NN a)) (VP (VP (VB b) (NN c)))))")
    assert write_forest((collapse_unary(tree),)) == "(S (NN a) (VP (VB b) (NN c)))"


@given(trees() | any_trees())
@example(read_tree("(@A (@A (@A a) (\\@A b) (C c)) (D d) (E e))"))
@settings(deadline=None)
def test_binarization_has_an_inverse(tree):
    binary = binarize(tree)
    assert debinarize(binary) == tree
    assert {len(node.children) for node in binary.preorder()} <= {0, 1, 2}
    assert binary.leaves() == tree.leaves()


@given(trees())
@settings(deadline=None)
def test_inserted_nodes_are_right_children(tree):
    for node in binarize(tree).preorder():
        if len(node.children) == 2:
            assert not node.children[0].label.startswith(INTERMEDIATE)


def test_binarization_by_example():
    tree = read_tree("(A (B b) (C c) (D d) (E e))")
    assert write_forest((binarize(tree),)) == "(A (B b) (@A (C c) (@A (D d) (E e))))"
