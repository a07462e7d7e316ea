"""A task for classifiers, and models in double precision to compare with second implementations."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor, nn

from tests.classification.random_documents import completed
from tests.nn.tiny import PAD, build, tiny_task
from tests.nn.tree_rows import SYMBOLS
from tree_fairseq.classification import sequence_classifiers, tree_lstm_classifier, tree_transformer_classifier  # noqa: F401  (register)
from tree_fairseq.classification.classifier import ClassTask, TreeClassifier
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tasks.unread_trees import trees_read

NUM_CLASSES = 3
ARCHITECTURES = [f"{name}_classifier_tiny" for name in ("tree_transformer", "tree_lstm", "transformer", "lstm")]


class Task(ClassTask, SimpleNamespace):
    """A task for classifiers, made of attributes."""


def class_task() -> Task:
    return Task(**vars(tiny_task(words=SYMBOLS - 4, labels=SYMBOLS - 4)), num_classes=NUM_CLASSES)


def build_classifier(arch: str, *flags: str, document_root: str = "first", seed: int = 0):
    """A classifier of width 8 in double precision, ready to be evaluated."""
    sizes = ["--encoder-embed-dim", "8"]
    if "transformer" in arch:
        sizes += ["--encoder-ffn-embed-dim", "8", "--encoder-attention-heads", "2"]
    else:
        sizes += ["--encoder-hidden-size", "6"]
    if document_root != "first":
        sizes += ["--document-root", document_root]
    return build(class_task(), *sizes, *flags, arch=arch, seed=seed).double()


def inputs_of(model, rows: dict[str, Tensor], node_logits: bool = False) -> dict:
    """The arguments of a classifier for documents given as rows."""
    texts = [rows["tokens"][rows["document"] == b] for b in range(int(rows["document"][-1]) + 1)]
    texts = [text[text != PAD] for text in texts]
    tokens = nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=PAD)
    inputs = {"src_tokens": tokens, "src_lengths": torch.tensor([len(text) for text in texts])}
    if "sentence_trees" in trees_read(model):
        inputs.update(sentence_trees=completed(rows))
    if isinstance(model, TreeClassifier):
        inputs.update(node_logits=node_logits)
    return inputs


def assert_gradients_equal(model, left: Tensor, right: Tensor) -> None:
    """Those of any sum of two outputs that are the same."""
    weights = torch.randn_like(left)
    parameters = list(model.parameters())
    first, second = (
        torch.autograd.grad((weights * value).sum(), parameters, allow_unused=True, materialize_grads=True)
        for value in (left, right)
    )
    for (name, _), one, other in zip_equal(model.named_parameters(), first, second):
        torch.testing.assert_close(one, other, msg=lambda text, name=name: f"{name}: {text}")
