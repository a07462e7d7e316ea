"""The Tree-Transformer that classifies, against its encoder sentence by sentence; the encoder has its own tests."""

from __future__ import annotations

import argparse

import pytest
import torch
from fairseq.models import ARCH_MODEL_REGISTRY
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.classification.documents import assert_gradients_equal, build_classifier, inputs_of
from tests.nn.tree_rows import PAD, collate_documents, row_trees, tree_of
from tree_fairseq.classification.tree_transformer_classifier import DocumentEncoder
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tree_transformer.model import TreeTransformerEncoder

ARCH = "tree_transformer_classifier_tiny"
DOCUMENTS = [[tree_of(["5", "4", "6"]), tree_of("8"), tree_of(["7", ["6", "5", "4"], "8"])], [tree_of("4")]]


@settings(max_examples=10, deadline=None)
@given(
    documents=st.lists(st.lists(row_trees(6), min_size=1, max_size=3), min_size=1, max_size=3),
    document_root=st.sampled_from(["first", "mean"]),
    extra=st.integers(0, 2),
)
def test_every_sentence_alone_and_the_first_or_all_for_the_document(documents, document_root, extra):
    model = build_classifier(ARCH, "--leaf-attention", "sentence", document_root=document_root)
    rows = collate_documents(documents, extra)
    scores = model(**inputs_of(model, rows, node_logits=True))
    linear, roots, others = model.readout.linear, [], []
    for document in documents:
        tops = []
        for tree in document:
            alone = collate_documents([[tree]])
            states = TreeTransformerEncoder.forward(model.encoder, alone["tokens"], source_spans=alone)["encoder_out"][
                0
            ][:, 0]
            own = [linear.weight @ state + linear.bias for state in states]
            num_leaves = alone["tokens"].size(1)
            tops.append(own[0] if tree.is_leaf else own[num_leaves])
            others.append((own[:num_leaves], own[num_leaves:]))
        roots.append(tops[0] if document_root == "first" else sum(tops) / len(tops))
    leaves, nodes = ([score for part in others for score in part[kind]] for kind in (0, 1))
    expected = torch.stack([*roots, *nodes, *leaves])
    is_node, is_leaf = rows["end"] > rows["start"], rows["tokens"] != PAD
    found = torch.cat([scores["logits"], scores["node_logits"][is_node], scores["leaf_logits"][is_leaf]])
    torch.testing.assert_close(found, expected)
    assert_gradients_equal(model, found, expected)


@pytest.mark.parametrize("document_root", ["first", "mean"])
def test_options_reach_the_encoder(document_root):
    rows = collate_documents(DOCUMENTS)
    flags = ([], ["--leaf-attention", "sentence"], ["--no-subtree-mask"], ["--no-hierarchical-embeddings"])
    flags += (["--accumulation-denominator", "nodes-only"], ["--encoder-normalize-before"], ["--encoder-learned-pos"])
    found = []
    for options in flags:
        model = build_classifier(ARCH, *options, document_root=document_root)
        assert isinstance(model.encoder, DocumentEncoder)
        found.append(model(**inputs_of(model, rows))["logits"])
    for k, one in enumerate(found):
        assert not any(torch.allclose(one, other, atol=1e-6) for other in found[k + 1 :]), flags[k]


def test_activations_may_be_computed_again():
    """Memory for time, in long documents."""
    rows, gradients = collate_documents(DOCUMENTS), []
    for flags in ([], ["--checkpoint-activations"]):
        model = build_classifier(ARCH, *flags, document_root="mean").train()
        for module in model.modules():
            if hasattr(module, "p"):
                module.p = 0.0
        model(**inputs_of(model, rows))["logits"].sum().backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    for one, other in zip_equal(*gradients):
        torch.testing.assert_close(one, other)


def test_there_are_no_flags_of_a_decoder():
    parser = argparse.ArgumentParser()
    ARCH_MODEL_REGISTRY[ARCH].add_args(parser)
    flags = [flag for action in parser._actions for flag in action.option_strings]
    assert {"--encoder-layers", "--dropout", "--no-subtree-mask", "--leaf-attention", "--classifier-dropout"} <= set(
        flags
    )
    assert not [flag for flag in flags if "decoder" in flag or "target" in flag or "share" in flag]
