"""The tree compared with recursive definitions."""

from __future__ import annotations

import copy
import json
import pickle
import random
import sys

import nltk
import pytest
from hypothesis import given, settings

from tests.strategies import any_trees, deep_tree, trees
from tree_fairseq.errors import MissingLibraryError, MixedChildrenError, OutsideTreeError
from tree_fairseq.trees.tree import Tree, binary_tree, check_preterminals, text_columns, tree_from_preorder

SENTENCE = Tree(
    "S", [Tree("NP", [Tree("DT", [Tree("the")]), Tree("NN", [Tree("man")])]), Tree("VBZ", [Tree("sleeps")])]
)


def recursive_preorder(tree):
    return [tree] + [node for child in tree.children for node in recursive_preorder(child)]


def recursive_postorder(tree):
    return [node for child in tree.children for node in recursive_postorder(child)] + [tree]


def recursive_height(tree):
    return 1 + max(map(recursive_height, tree.children)) if tree.children else 0


def nested(tree):
    return (tree.label, [nested(child) for child in tree.children])


@given(any_trees())
@settings(deadline=None)
def test_traversals_follow_the_definitions(tree):
    assert list(map(id, tree.preorder())) == list(map(id, recursive_preorder(tree)))
    assert list(map(id, tree.postorder())) == list(map(id, recursive_postorder(tree)))
    assert tree.leaves() == [node.label for node in recursive_preorder(tree) if not node.children]
    assert tree.height() == recursive_height(tree)
    assert tree.fold(lambda node, values: (node.label, values)) == nested(tree)


@given(any_trees(), any_trees())
@settings(deadline=None)
def test_equality_and_hash_go_by_content(left, right):
    assert (left == right) == (nested(left) == nested(right))
    twin = pickle.loads(pickle.dumps(left))
    assert twin == left and twin is not left
    assert hash(twin) == hash(left)
    assert eval(repr(left), {"Tree": Tree}) == left


@pytest.mark.parametrize(("labels", "counts"), [([], []), (["a", "b"], [0, 0]), (["a"], [1]), (["a", "b"], [2, 0])])
def test_child_counts_of_no_tree_are_refused(labels, counts):
    with pytest.raises(ValueError, match="children|trees"):
        tree_from_preorder(labels, counts)


def test_leaf_and_preterminal():
    assert Tree("the").is_leaf and not Tree("the").is_preterminal
    assert SENTENCE.children[1].is_preterminal and not SENTENCE.children[1].is_leaf
    assert not SENTENCE.is_preterminal
    assert not Tree("NP", [Tree("two"), Tree("words")]).is_preterminal


@given(trees())
@settings(deadline=None)
def test_maps_change_words_alone_or_labels_alone(tree):
    numbered = [str(number) for number in range(len(tree.leaves()))]
    mapped = tree.map_leaves(numbered)
    assert mapped.leaves() == numbered
    assert mapped.map_leaves(tree.leaves()) == tree
    mapped = tree.map_labels(lambda label: "<" + label)
    assert mapped.leaves() == tree.leaves()
    assert mapped.map_labels(lambda label: label[1:]) == tree


@pytest.mark.parametrize("words", [["a"], ["a", "b"], ["a", "b", "c", "d"]])
def test_map_leaves_wants_one_word_a_leaf(words):
    with pytest.raises(ValueError, match=f"{len(words)} words for a tree of 3 leaves"):
        SENTENCE.map_leaves(words)


def test_trees_are_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        SENTENCE.label = "NP"
    with pytest.raises(AttributeError, match="immutable"):
        SENTENCE.other = 1
    assert isinstance(SENTENCE.children, tuple)
    assert copy.deepcopy(SENTENCE) == copy.copy(SENTENCE) == SENTENCE


def test_wrong_types_are_refused_at_once():
    with pytest.raises(TypeError, match="label"):
        Tree(3)
    with pytest.raises(TypeError, match="child"):
        Tree("NP", ["the"])


def test_misplaced_words_are_named():
    with pytest.raises(OutsideTreeError, match="'word'"):
        check_preterminals((Tree("word"),))
    with pytest.raises(MixedChildrenError, match="'b'.*'NP'"):
        check_preterminals((Tree("NP", [Tree("NN", [Tree("a")]), Tree("b")]),))


def recursive_binary(words, split, start, end):
    if end - start == 1:
        return Tree("X", [Tree(words[start])])
    middle = split[start, end]
    return Tree("X", [recursive_binary(words, split, start, middle), recursive_binary(words, split, middle, end)])


@pytest.mark.parametrize("seed", range(8))
def test_binary_tree_is_the_recursion(seed):
    chance = random.Random(seed)
    words = [f"w{k}" for k in range(chance.randrange(1, 12))]
    n = len(words)
    split = {(start, end): chance.randrange(start + 1, end) for start in range(n) for end in range(start + 2, n + 1)}
    assert binary_tree(words, lambda start, end: split[start, end], "X") == recursive_binary(words, split, 0, n)


def test_splits_are_asked_for_from_the_root_down_and_from_left_to_right():
    asked = []

    def middle(start, end):
        asked.append((start, end))
        return (start + end) // 2

    binary_tree("abcd", middle, "X")
    assert asked == [(0, 4), (0, 2), (2, 4)]


def recursive_spans(tree, start=0):
    """The nodes above words with their spans, and the end of the tree."""
    if not tree.children:
        return [], start + 1
    found, end = [], start
    for child in tree.children:
        below, end = recursive_spans(child, end)
        found += below
    return [(tree, start, end), *found], end


@given(any_trees())
@settings(deadline=None)
def test_spans_and_subtrees_follow_the_definitions(tree):
    expected, _ = recursive_spans(tree)
    assert [(id(node), start, end) for node, start, end in tree.spans()] == [
        (id(node), start, end) for node, start, end in expected
    ]
    leaves = tree.leaves()
    assert all(node.leaves() == leaves[start:end] for node, start, end in tree.spans())
    assert list(tree.subtrees()) == [node for node, _, _ in expected]
    assert list(tree.subtrees("S", "NP")) == [node for node, _, _ in expected if node.label in ("S", "NP")]


def test_tagged_words():
    assert SENTENCE.tagged_words() == [("the", "DT"), ("man", "NN"), ("sleeps", "VBZ")]


@given(any_trees())
@settings(deadline=None)
def test_dictionaries_and_nltk_give_the_tree_back(tree):
    assert Tree.from_dict(json.loads(json.dumps(tree.to_dict()))) == tree
    converted = tree.to_nltk()
    assert isinstance(converted, nltk.Tree) and Tree.from_nltk(converted) == tree
    if tree.children:
        assert converted.leaves() == tree.leaves()


def test_an_nltk_tree_is_the_one_that_nltk_reads():
    assert SENTENCE.to_nltk() == nltk.Tree.fromstring("(S (NP (DT the) (NN man)) (VBZ sleeps))")


@pytest.mark.parametrize("values", [{}, {"children": []}, "word", {"label": "S", "children": ["the"]}])
def test_dictionaries_without_labels_are_refused(values):
    with pytest.raises(ValueError, match="a node is a dictionary with a label"):
        Tree.from_dict(values)


def test_without_nltk_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk", None)
    with pytest.raises(MissingLibraryError, match=r"Tree.to_nltk needs nltk.*pip install 'tree-fairseq\[nltk\]'"):
        SENTENCE.to_nltk()


@pytest.mark.parametrize("branching", [True, False])
def test_deep_trees_are_converted_and_drawn(branching):
    tree = deep_tree(20_000, branching)
    assert Tree.from_dict(tree.to_dict()) == tree
    assert len(list(tree.spans())) == len(list(tree.subtrees()))
    assert Tree.from_nltk(tree.to_nltk()) == tree
    assert tree.pretty(width=60)


def test_pretty_shows_the_tree_and_keeps_to_a_width():
    assert SENTENCE.pretty().splitlines() == ["S", "├── NP", "│   ├── DT the", "│   └── NN man", "└── VBZ sleeps"]
    # There is no room for a second level of constituents.
    assert SENTENCE.pretty(width=27).splitlines() == ["S", "├── NP … the man", "└── VBZ sleeps"]
    assert SENTENCE.pretty(width=12).splitlines() == ["S … the man…"]
    assert Tree("NN", [Tree("日本語日本語")]).pretty(width=10) == "NN 日本語…"
    with pytest.raises(ValueError, match="at least 8 columns"):
        SENTENCE.pretty(width=7)


@given(trees())
@settings(deadline=None)
def test_no_row_is_wider_than_asked(tree):
    assert all(text_columns(row) <= 30 for row in tree.pretty(width=30).split("\n"))
