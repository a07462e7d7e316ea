"""Distances between the leaves of documents, and classifiers that have a bias by distance."""

from __future__ import annotations

import pytest
import torch

from tests.classification.documents import build_classifier, class_task, inputs_of
from tests.classification.random_documents import Documents
from tests.nn.tiny import build
from tree_fairseq.classification import treeformer_classifier  # noqa: F401  (registers the architectures)
from tree_fairseq.errors import InputError

BOTH = ("--distance-bias", "both")


def filled(arch: str, *flags: str):
    """A classifier whose tables are not zero."""
    model = build_classifier(arch, *flags)
    for name, table in model.named_parameters():
        if ".distance_bias." in name:
            torch.nn.init.normal_(table)
    return model


def test_documents_are_independent_of_their_batch():
    arch = "tree_transformer_classifier_tiny"
    sizes = ([5, 1, 3], [1, 4], [6], [1])
    model, batch = filled(arch, *BOTH, "--leaf-attention", "sentence"), Documents(sizes, extra=1)
    plain = build_classifier(arch)
    together = model(**inputs_of(model, batch.rows))["logits"]
    for row, own in enumerate(sizes):
        alone = model(**inputs_of(model, Documents([own]).rows))["logits"][0]
        torch.testing.assert_close(together[row], alone)
    assert not torch.allclose(together, plain(**inputs_of(plain, batch.rows))["logits"])


@pytest.mark.parametrize(
    ("arch", "kind"),
    [("transformer_classifier_tiny", "linear"), *[("tree_transformer_classifier_tiny", k) for k in ("linear", "both")]],
)
def test_tables_of_zeros_change_nothing(arch, kind):
    documents, plain = Documents([[5], [3], [6]]), build_classifier(arch)
    model = build_classifier(arch, "--distance-bias", kind)
    results = [each(**inputs_of(each, documents.rows))["logits"] for each in (model, plain)]
    torch.testing.assert_close(*results, rtol=1e-6, atol=1e-6)


def test_a_pair_of_sentences_has_linear_distances():
    tokens = torch.tensor([[4, 5, 2, 6], [7, 2, 1, 1]])
    plain = build(class_task(), arch="treeformer_classifier_tiny")
    model = build(class_task(), "--distance-bias", "linear", arch="treeformer_classifier_tiny")
    inputs = {"src_tokens": tokens, "src_lengths": torch.tensor([4, 2])}
    torch.testing.assert_close(model(**inputs)["logits"], plain(**inputs)["logits"], rtol=1e-6, atol=1e-6)
    with torch.no_grad():
        model.encoder.layers[0].self_attn.distance_bias.linear.normal_()
    assert not torch.allclose(model(**inputs)["logits"], plain(**inputs)["logits"], atol=1e-4)


def test_distances_in_trees_need_trees():
    for arch in ("treeformer_classifier_tiny", "transformer_classifier_tiny"):
        with pytest.raises(InputError, match="both measures paths in trees, which this model does not read"):
            build(class_task(), *BOTH, arch=arch)
