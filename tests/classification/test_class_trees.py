"""Trees whose labels are classes, against what the definition says of trees of objects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import PLAIN_WORDS, deep_tree, plain_trees, trees
from tree_fairseq.classification.examples import NODE_SYMBOL, binary_tree, read_class_tree
from tree_fairseq.classification.folder import UNLABELLED
from tree_fairseq.errors import EmptyDocumentError, OutsideTreeError, UnclosedTreeError, UnlabelledExampleError
from tree_fairseq.trees.bracket import read_tree, write_forest
from tree_fairseq.trees.spans import decode
from tree_fairseq.trees.tree import Tree

CLASSES = ("0", "1", "2", UNLABELLED)


def class_trees():
    return trees(st.sampled_from(PLAIN_WORDS), st.sampled_from(CLASSES), 9)


def inner_nodes(tree: Tree) -> list[Tree]:
    return [node for node in tree.preorder() if node.children]


@given(class_trees())
def test_classes_are_the_labels_in_preorder_and_go_nowhere_else(tree):
    read = read_class_tree(write_forest((tree,)), needs_class=False)
    assert read.classes == [node.label for node in inner_nodes(tree)]
    assert decode(read.tree) == (tree.map_labels(lambda label: NODE_SYMBOL),)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("", EmptyDocumentError),
        (" \t", EmptyDocumentError),
        ("(1 (2 a)) (1 b)", OutsideTreeError),
        ("(1 (2 a)", UnclosedTreeError),
        ("(- (2 a))", UnlabelledExampleError),
    ],
)
def test_bad_lines_have_their_place(line, error):
    with pytest.raises(error) as caught:
        read_class_tree(line, "dev.trees", 7)
    assert (caught.value.path, caught.value.line) == ("dev.trees", 7)


@given(plain_trees())
def test_binary_trees_keep_all_constituents(tree):
    binary = binary_tree(tree)
    assert binary.leaves() == tree.leaves()
    assert all(len(node.children) == 2 or node.is_preterminal for node in inner_nodes(binary))
    spans, wider = ({(start, end) for _, start, end in each.spans()} for each in (tree, binary))
    assert spans <= wider
    # A new span is that of a constituent without its first children.
    for start, end in wider - spans:
        assert any(end == other_end and other_start < start for other_start, other_end in spans)


def test_binarised_to_the_right():
    assert (
        write_forest((binary_tree(read_tree("(S (NP (NN (N a))) (VP b) (X c) (X d))")),))
        == "(S (N a) (@S (VP b) (@S (X c) (X d))))"
    )


def test_deep_trees():
    tree = deep_tree(5000).map_labels(lambda label: "1")
    read = read_class_tree(write_forest((tree,)))
    assert len(read.classes) == len(inner_nodes(tree)) and decode(read.tree) == (tree.map_labels(lambda label: "X"),)
