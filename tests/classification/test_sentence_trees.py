"""Documents as rows, against the same read off trees of objects."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import PLAIN_WORDS, forests, trees
from tree_fairseq.classification.dataset import SentenceTreeReader, collate_sentences, collate_targets, kept_leaves
from tree_fairseq.classification.examples import NODE_SYMBOL
from tree_fairseq.classification.folder import IGNORE, UNLABELLED
from tree_fairseq.data_bin.tree_store import StoredTree, build_label_dictionary
from tree_fairseq.errors import CorruptFileError
from tree_fairseq.nn.tree_batch import TreeReader
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.spans import encode
from tree_fairseq.trees.tree import Forest, Tree

CLASSES = ("0", "1", "2", UNLABELLED)
LABELS = build_label_dictionary([NODE_SYMBOL], {})
PAD, LABEL_PAD = 1, LABELS.pad()
FIELDS = ("label", "start", "end", "depth")


def documents() -> st.SearchStrategy[Forest]:
    """Trees whose labels are classes, unary chains among them."""
    return forests(trees(st.sampled_from(PLAIN_WORDS), st.sampled_from(CLASSES), 7), min_trees=1, max_trees=4)


def class_id(label: str) -> int:
    return IGNORE if label == UNLABELLED else int(label)


def stored(forest: Forest) -> StoredTree:
    """Its full form, labelled with symbols."""
    spans = encode(tuple(tree.map_labels(lambda label: NODE_SYMBOL) for tree in forest))
    return StoredTree(
        len(spans.leaves), np.array([LABELS.index(label) for label in spans.labels], np.int32), *spans.spans.T
    )


def classes_of(forest: Forest) -> np.ndarray:
    return np.array([class_id(node.label) for tree in forest for node in tree.preorder() if node.children], np.int64)


def twin(tree: Tree) -> tuple[list[tuple[int, int, int, int]], list[int]]:
    """Start, end, depth and class of the kept nodes, in preorder, and the classes of leaves, from the definition."""
    nodes, leaves = [], []

    def visit(node: Tree, start: int, depth: int) -> None:
        top, width = node, len(node.leaves())
        if width == 1:
            leaves.append(class_id(top.label))
            return
        while len(node.children) == 1:
            node = node.children[0]
        nodes.append((start, start + width, depth, class_id(top.label)))
        for child in node.children:
            visit(child, start, depth + 1)
            start += len(child.leaves())

    visit(tree, 0, 0)
    return nodes, leaves


def rows_of(forest: Forest, has_class: bool = True):
    reader = SentenceTreeReader(TreeReader(LABELS), has_class)
    return reader(stored(forest), classes_of(forest))


@given(documents())
def test_a_row_is_a_sentence_whose_chains_have_the_class_of_their_top(forest):
    rows = rows_of(forest)
    position = 0
    for row, tree in zip_equal(rows, forest):
        nodes, leaves = twin(tree)
        found = zip(
            row.nodes.start.tolist(), row.nodes.end.tolist(), row.nodes.depth.tolist(), row.node_target.tolist()
        )
        assert list(found) == nodes
        assert (row.position, row.length, row.leaf_target.tolist()) == (position, len(tree.leaves()), leaves)
        position += row.length


@given(documents())
def test_without_classes_of_nodes_there_are_no_targets(forest):
    for row, same in zip_equal(rows_of(forest), rows_of(forest, has_class=False)):
        assert same.node_target is None and same.leaf_target is None
        assert all(np.array_equal(getattr(row.nodes, name), getattr(same.nodes, name)) for name in FIELDS)


def test_classes_of_another_tree_are_refused():
    [tree] = read_forest("(0 (1 a) (2 b))")
    with pytest.raises(CorruptFileError, match="2 classes for a tree of 3 nodes"):
        SentenceTreeReader(TreeReader(LABELS), nodes_have_classes=True)(stored((tree,)), np.array([0, 1]))


def batch_of(drawn: list[Forest]):
    documents = [(torch.arange(4, 4 + stored(forest).num_leaves), rows_of(forest)) for forest in drawn]
    return documents, collate_sentences(documents, PAD, LABEL_PAD)


@given(st.lists(documents(), min_size=1, max_size=4))
def test_rows_are_stacked_in_the_order_of_the_documents(drawn):
    documents, batch = batch_of(drawn)
    rows = [(number, tokens, row) for number, (tokens, own) in enumerate(documents) for row in own]
    targets = collate_targets([row for _, _, row in rows])
    assert targets.pop("num_targets") == sum((values != IGNORE).sum() for values in targets.values())
    assert (
        batch["tokens"].shape == targets["leaf_target"].shape and batch["label"].shape == targets["node_target"].shape
    )
    assert all(
        tensor.dtype == torch.int64 and len(tensor) == len(rows)
        for tensor in (*(batch[name] for name in ("tokens", "document", *FIELDS)), *targets.values())
    )
    for index, (number, tokens, row) in enumerate(rows):
        assert batch["document"][index] == number
        leaves, nodes = row.length, len(row.nodes)
        assert torch.equal(batch["tokens"][index, :leaves], tokens[row.position : row.position + leaves])
        assert (batch["tokens"][index, leaves:] == PAD).all()
        for name in FIELDS:
            assert batch[name][index, :nodes].tolist() == getattr(row.nodes, name).tolist()
        assert (batch["end"][index, nodes:] == batch["start"][index, nodes:]).all() and (
            batch["label"][index, nodes:] == LABEL_PAD
        ).all()
        for name, length in (("leaf_target", leaves), ("node_target", nodes)):
            assert targets[name][index, :length].tolist() == getattr(row, name).tolist()
            assert (targets[name][index, length:] == IGNORE).all()


@given(documents(), st.integers(1, 20))
def test_documents_are_cut_between_sentences(forest, limit):
    sentences = [len(tree.leaves()) for tree in forest]
    kept = max(count for count in range(len(forest) + 1) if sum(sentences[:count]) <= limit)
    leaves, left_out = kept_leaves(stored(forest), limit)
    assert (leaves, left_out) == (sum(sentences[:kept]), len(forest) - kept)
    if kept:
        cut, expected = stored(forest).cut(leaves), stored(forest[:kept])
        assert cut.num_leaves == expected.num_leaves and all(map(np.array_equal, cut[1:], expected[1:]))
