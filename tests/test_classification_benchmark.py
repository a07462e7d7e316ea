"""Parts of the benchmark of classifiers: the recursive Tree-LSTM, and models of the same size."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from tests.benchmarks.classification_models import Task, build
from tests.benchmarks.random_trees import random_tree
from tree_fairseq.classification.dataset import SentenceTree, collate_sentences
from tree_fairseq.nn.tree_batch import NodeArrays

NO_NODES = NodeArrays(*(np.empty(0, np.int32) for _ in range(4)))


@pytest.mark.parametrize("document_root", ["first", "mean"])
def test_the_recursive_tree_lstm_equals_the_one_batched_by_height(document_root):
    torch.manual_seed(0)
    generator, lengths = random.Random(0), (7, 1, 4, 2)
    rows = [SentenceTree(0, n, random_tree(generator, n, n // 2, 20) if n > 1 else NO_NODES) for n in lengths]
    documents = [(torch.randint(4, 30, (n,)), [row]) for n, row in zip(lengths, rows)]
    trees = collate_sentences(documents, 1, 1)
    trees.update(document=torch.tensor([0, 0, 0, 1]), num_documents=2)
    task = Task(words=30)
    task.cfg.document_root = document_root
    models = {name: build(name, task).double().eval() for name in ("tree_lstm", "recursive")}
    outputs = {name: model.encoder(trees) for name, model in models.items()}
    for mine, theirs in zip(outputs["recursive"], outputs["tree_lstm"]):
        torch.testing.assert_close(mine, theirs)
    gradients = []
    for name, model in models.items():
        sum(probe_of(states) for states in outputs[name]).backward()
        gradients.append([parameter.grad for parameter in model.encoder.parameters()])
    for mine, theirs in zip(*gradients):
        torch.testing.assert_close(mine, theirs)


def probe_of(states: torch.Tensor) -> torch.Tensor:
    """Sums numbers with a different weight for each."""
    return (states * torch.linspace(-1, 1, states.numel(), dtype=states.dtype).view_as(states)).sum()


@pytest.mark.parametrize("name", ["stock", "tree", "tree_lstm"])
def test_compared_classifiers_have_the_same_size(name):
    model = build(name, Task())
    sizes = {
        weight.size(1)
        for part, weight in model.state_dict().items()
        if "embed_tokens" in part or "readout.linear.weight" in part
    }
    assert sizes == {64}
    assert len(getattr(model.encoder, "layers", [None] * 2)) == 2
