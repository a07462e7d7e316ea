"""The Tree-LSTM that classifies, against the recursion of Tai et al. over binarised trees."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.classification.documents import assert_gradients_equal, build_classifier, inputs_of
from tests.nn.direct_tree_lstm import direct_tree_lstm
from tests.nn.tree_rows import PAD, collate_documents, row_trees
from tree_fairseq.trees.tree import INTERMEDIATE, Tree, binarize

ARCH = "tree_lstm_classifier_tiny"


def direct_states(model, tree: Tree) -> list[tuple[Tree, Tensor]]:
    """Nodes and leaves of a binarised tree in preorder, each with its h."""
    encoder, nodes, parents, branches = model.encoder, [], [], []

    def visit(node: Tree, parent: int, branch: int) -> None:
        column = len(nodes)
        nodes.append(node), parents.append(parent), branches.append(branch)
        for k, child in enumerate(node.children):
            visit(child, column, k)

    visit(tree, -1, -1)
    features = []
    for node in nodes:
        table = encoder.embed_tokens if node.is_leaf else encoder.embed_labels
        put_in = node.label.startswith(INTERMEDIATE)
        feature = table.weight[int(node.label.removeprefix(INTERMEDIATE))]
        features.append(feature + encoder.intermediate if put_in else feature)
    states = {}
    direct_tree_lstm(encoder.tree_lstm, torch.stack(features), parents, branches, 0, states)
    return [(node, states[column][0]) for column, node in enumerate(nodes)]


def direct_logits(model, documents: list[list[Tree]], document_root: str) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Scores of the documents; of the nodes of each tree in preorder; and of its leaves."""
    linear = model.readout.linear
    roots, nodes, leaves = [], [], []
    for document in documents:
        trees = [direct_states(model, binarize(tree)) for tree in document]
        own = [states[0][1] for states in trees]
        whole = own[0] if document_root == "first" else sum(own) / len(own)
        roots.append(linear.weight @ whole + linear.bias)
        for states in trees:
            scores = [
                (node, linear.weight @ h + linear.bias) for node, h in states if not node.label.startswith(INTERMEDIATE)
            ]
            nodes += [score for node, score in scores if not node.is_leaf]
            leaves += [score for node, score in scores if node.is_leaf]
    return torch.stack(roots), nodes, leaves


@settings(max_examples=15, deadline=None)
@given(
    documents=st.lists(st.lists(row_trees(6), min_size=1, max_size=4), min_size=1, max_size=3),
    document_root=st.sampled_from(["first", "mean"]),
    extra=st.integers(0, 2),
)
def test_it_is_the_recursion_of_the_paper(documents, document_root, extra):
    model = build_classifier(ARCH, document_root=document_root)
    rows = collate_documents(documents, extra)
    scores = model(**inputs_of(model, rows, node_logits=True))
    expected, nodes, leaves = direct_logits(model, documents, document_root)
    is_node, is_leaf = rows["end"] > rows["start"], rows["tokens"] != PAD
    found = torch.cat([scores["logits"], scores["node_logits"][is_node], scores["leaf_logits"][is_leaf]])
    expected = torch.cat([expected, *(torch.stack(part) for part in (nodes, leaves) if part)])
    torch.testing.assert_close(found, expected)
    assert_gradients_equal(model, found, expected)


def test_long_documents():
    model = build_classifier(ARCH, document_root="mean")
    sentence = Tree("4", [Tree("5"), Tree("6"), Tree("7")])
    rows = collate_documents([[sentence] * 1100, [sentence]])
    assert model(**inputs_of(model, rows))["logits"].isfinite().all()
