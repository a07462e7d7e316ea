"""Properties of every model that classifies."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tests.classification.documents import ARCHITECTURES, NUM_CLASSES, build_classifier, class_task, inputs_of
from tests.nn.tiny import PAD, build, tiny_task
from tests.nn.tree_rows import collate_documents, tree_of
from tree_fairseq.errors import InputError, MissingTreesError

TREE_ARCHITECTURES, SEQUENCE_ARCHITECTURES = ARCHITECTURES[:2], ARCHITECTURES[2:]
# A tree of many branches, single words, documents of one sentence and of several.
DOCUMENTS = [
    [tree_of(["4", "5", ["6", "7", "8"], "4", ["5", "6", ["7", "5", "5", "4"]]])],
    [tree_of("7")],
    [tree_of(["5", "4", "6"]), tree_of("8"), tree_of(["7", ["6", "5", "4"], "8"])],
    [tree_of("4"), tree_of(["8", "6", "6", "6"])],
]


def variants(*architectures: str):
    """Architectures with the ways in which a task wants documents to be read."""
    roots = {arch: ("first", "mean") if arch in TREE_ARCHITECTURES else ("first",) for arch in architectures}
    return pytest.mark.parametrize(
        "arch, document_root", [(arch, root) for arch in architectures for root in roots[arch]]
    )


@variants(*ARCHITECTURES)
def test_an_example_alone_equals_the_example_in_a_batch(arch, document_root):
    model = build_classifier(arch, document_root=document_root)
    inputs = inputs_of(model, collate_documents(DOCUMENTS, extra=2))
    inputs["src_tokens"] = functional.pad(inputs["src_tokens"], (0, 3), value=PAD)
    together = model(**inputs)["logits"]
    assert together.shape == (len(DOCUMENTS), NUM_CLASSES)
    for row, document in enumerate(DOCUMENTS):
        alone = model(**inputs_of(model, collate_documents([document])))["logits"]
        torch.testing.assert_close(together[row], alone[0])


@variants(*ARCHITECTURES)
def test_words_are_read_in_their_order(arch, document_root):
    model = build_classifier(arch, document_root=document_root)
    texts = [["4", "5", "6"], ["4", "7", "6"], ["4", "6", "5"]]
    rows = collate_documents([[tree_of(text)] for text in texts])
    one, *others = model(**inputs_of(model, rows))["logits"]
    assert not any(torch.allclose(one, other, atol=1e-4) for other in others)


@variants(*TREE_ARCHITECTURES)
def test_structure_and_labels_are_read(arch, document_root):
    model = build_classifier(arch, document_root=document_root)
    trees = [["4", "5", ["6", "7", "8"]], ["4", ["6", "5", "7"], "8"], ["4", "5", ["7", "7", "8"]]]
    one, *others = model(**inputs_of(model, collate_documents([[tree_of(tree)] for tree in trees])))["logits"]
    assert not any(torch.allclose(one, other, atol=1e-5) for other in others)


@pytest.mark.parametrize("arch", TREE_ARCHITECTURES)
def test_the_first_root_is_node_0_or_the_only_leaf(arch):
    model = build_classifier(arch)
    rows = collate_documents(DOCUMENTS)
    scores = model(**inputs_of(model, rows, node_logits=True))
    assert scores["node_logits"].shape == (*rows["label"].shape, NUM_CLASSES)
    assert scores["leaf_logits"].shape == (*rows["tokens"].shape, NUM_CLASSES)
    row = 0
    for logits, document in zip(scores["logits"], DOCUMENTS):
        kind = "leaf_logits" if document[0].is_leaf else "node_logits"
        torch.testing.assert_close(logits, scores[kind][row, 0])
        row += len(document)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_scores_of_nodes_are_made_on_demand(arch):
    model = build_classifier(arch)
    scores = model(**inputs_of(model, collate_documents(DOCUMENTS)))
    assert scores["node_logits"] is None and scores["leaf_logits"] is None


@variants(*ARCHITECTURES)
def test_everything_is_trained(arch, document_root):
    model = build_classifier(arch, document_root=document_root).train()
    inputs = inputs_of(model, collate_documents(DOCUMENTS, extra=1))
    functional.cross_entropy(model(**inputs)["logits"], torch.arange(len(DOCUMENTS)) % NUM_CLASSES).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all() and parameter.grad.any(), name
    assert not model.encoder.embed_tokens.weight.grad[PAD].any()
    if arch in TREE_ARCHITECTURES:
        assert not model.encoder.embed_labels.weight.grad[PAD].any()


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_dropout_of_the_classifier(arch):
    rows = collate_documents(DOCUMENTS)
    for flags, same in ((["--classifier-dropout", "0"], True), ([], False)):
        model = build_classifier(arch, "--dropout", "0", *flags)
        inputs = inputs_of(model, rows)
        expected = model(**inputs)["logits"]
        torch.manual_seed(1)
        assert torch.allclose(model.train()(**inputs)["logits"], expected) == same


@variants(*ARCHITECTURES)
def test_bfloat16(arch, document_root):
    """As under ``--cpu-autocast``, and with ``--bf16``."""
    model = build_classifier(arch, document_root=document_root).float()
    inputs = inputs_of(model, collate_documents(DOCUMENTS))
    expected = model(**inputs)["logits"]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = model(**inputs)["logits"]
    torch.testing.assert_close(found.float(), expected, rtol=0.1, atol=0.05)
    found.float().sum().backward()
    found = model.to(torch.bfloat16)(**inputs)["logits"]
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, rtol=0.1, atol=0.1)


def test_tiny_models_are_of_one_size():
    """So that a table compares what they are, not how large."""
    sizes = []
    for arch in ARCHITECTURES:
        model = build(class_task(), arch=arch)
        sizes.append(sum(weight.numel() for name, weight in model.named_parameters() if ".embed_" not in name))
    assert max(sizes) < 1.1 * min(sizes), dict(zip(ARCHITECTURES, sizes))


@pytest.mark.parametrize(
    "arch", ["tree_lstm_classifier", "lstm_classifier", "transformer_classifier", "tree_transformer_classifier"]
)
def test_base_sizes(arch):
    assert build(class_task(), arch=arch).encoder.embed_tokens.embedding_dim == 512


@pytest.mark.parametrize("arch", TREE_ARCHITECTURES)
def test_without_trees_the_model_says_what_is_missing(arch):
    model = build_classifier(arch)
    with pytest.raises(MissingTreesError, match="--task tree_classification"):
        model(torch.tensor([[4]]), torch.tensor([1]))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_task_without_classes(arch):
    with pytest.raises(InputError, match="--task tree_classification"):
        build(tiny_task(), arch=arch)
