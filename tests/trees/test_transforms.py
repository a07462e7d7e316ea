"""Transforms against their inverses, and unary chains against nltk's."""

from __future__ import annotations

import nltk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import any_trees, labels, plain_trees, trees
from tests.trees.inverses import debinarize, restore_unary, split_label
from tree_fairseq.trees.bracket import read_tree, write_forest
from tree_fairseq.trees.transforms import binarize, collapse_unary, join_labels, strip_function_tags
from tree_fairseq.trees.tree import Tree

FORMS = ("left", "right")


@given(st.lists(labels() | st.text(), min_size=1, max_size=4))
@settings(deadline=None, max_examples=300)
def test_joined_labels_come_apart_again(parts):
    assert split_label(join_labels(parts)) == parts


def test_plain_labels_are_joined_plainly():
    assert join_labels(["S", "VP"]) == "S+VP"
    assert split_label("S+VP") == ["S", "VP"]
    assert join_labels(["A+B"]) == "A\\+B"


@given(trees(), st.booleans())
@settings(deadline=None)
def test_joined_chains_are_restored(tree, include_tags):
    assert restore_unary(collapse_unary(tree, "join", include_tags)) == tree


@given(plain_trees(), st.booleans())
@settings(deadline=None)
def test_collapse_is_nltks(tree, include_tags):
    theirs = nltk.Tree.fromstring(write_forest((tree,)))
    theirs.collapse_unary(collapsePOS=include_tags, collapseRoot=True, joinChar="+")
    joined = collapse_unary(tree, "join", include_tags=include_tags)
    assert write_forest((joined,)) == " ".join(str(theirs).split())
    lowest = collapse_unary(tree, "lowest", include_tags=include_tags)
    assert lowest == joined.map_labels(lambda label: label.split("+")[-1])


@given(plain_trees(), st.booleans())
@settings(deadline=None)
def test_no_chain_is_left(tree, include_tags):
    for node in collapse_unary(tree, include_tags=include_tags).preorder():
        if len(node.children) == 1 and node.children[0].children:
            assert node.children[0].is_preterminal and not include_tags


def test_collapse_by_example():
    tree = read_tree("(ROOT (S (NP (NN a)) (VP (VP (VB b) (NN c)))))")
    assert write_forest((collapse_unary(tree),)) == "(S (NP (NN a)) (VP (VB b) (NN c)))"
    assert write_forest((collapse_unary(tree, "join"),)) == "(ROOT+S (NP (NN a)) (VP+VP (VB b) (NN c)))"
    assert write_forest((collapse_unary(tree, "join", True),)) == "(ROOT+S (NP+NN a) (VP+VP (VB b) (NN c)))"
    with pytest.raises(ValueError, match="'top'"):
        collapse_unary(tree, "top")


@given(trees() | any_trees(), st.sampled_from(FORMS))
@settings(deadline=None)
def test_binarization_has_an_inverse(tree, form):
    binary = binarize(tree, form)
    assert debinarize(binary) == tree
    assert {len(node.children) for node in binary.preorder()} <= {0, 1, 2}


@given(trees(), st.sampled_from(FORMS))
@settings(deadline=None)
def test_binarization_keeps_the_words(tree, form):
    assert binarize(tree, form).leaves() == tree.leaves()


def test_binarization_by_example():
    tree = read_tree("(A (B b) (C c) (D d) (E e))")
    assert write_forest((binarize(tree, "right"),)) == "(A (B b) (@A (C c) (@A (D d) (E e))))"
    assert write_forest((binarize(tree, "left"),)) == "(A (@A (@A (B b) (C c)) (D d)) (E e))"


@pytest.mark.parametrize("form", FORMS)
def test_intermediate_labels_of_the_user_are_kept_apart(form):
    tree = read_tree("(@A (@A (@A a) (\\@A b) (C c)) (D d) (E e))")
    assert debinarize(binarize(tree, form)) == tree


def test_unknown_forms_are_refused():
    with pytest.raises(ValueError, match="'middle'"):
        binarize(Tree("a"), "middle")


@pytest.mark.parametrize(
    ("label", "stripped"),
    [
        ("NP-SBJ=2", "NP"),
        ("NP=2", "NP"),
        ("ADVP-TMP", "ADVP"),
        ("NP", "NP"),
        ("-NONE-", "-NONE-"),
        ("-LRB-", "-LRB-"),
        ("-", "-"),
        ("=", "="),
        ("PRP$", "PRP$"),
        ("NR-SHORT", "NR"),
    ],
)
def test_function_tags(label, stripped):
    assert strip_function_tags(Tree(label, [Tree("NP-word=1")])) == Tree(stripped, [Tree("NP-word=1")])


@given(trees())
@settings(deadline=None)
def test_stripping_twice_is_stripping_once(tree):
    assert strip_function_tags(strip_function_tags(tree)) == strip_function_tags(tree)
