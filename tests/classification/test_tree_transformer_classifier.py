"""The options of the Tree-Transformer that classifies; the encoder has its own tests."""

from __future__ import annotations

import argparse

import pytest
import torch
from fairseq.models import ARCH_MODEL_REGISTRY

from tests.classification.documents import build_classifier, inputs_of
from tests.nn.tree_rows import collate_documents, tree_of
from tests.training_steps.cases import without_dropout
from tree_fairseq.classification.tree_transformer_classifier import DocumentEncoder
from tree_fairseq.support.python_versions import zip_equal

ARCH = "tree_transformer_classifier_tiny"
DOCUMENTS = [[tree_of(["5", "4", "6"]), tree_of("8"), tree_of(["7", ["6", "5", "4"], "8"])], [tree_of("4")]]


@pytest.mark.parametrize("document_root", ["first", "mean"])
def test_options_reach_the_encoder(document_root):
    rows = collate_documents(DOCUMENTS)
    alone = ["--leaf-attention", "sentence"]
    flags = ([], alone, [*alone, "--no-subtree-mask"], ["--no-hierarchical-embeddings"])
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
        model = without_dropout(build_classifier(ARCH, *flags, document_root="mean"))
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
