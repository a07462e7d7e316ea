"""Classifiers to compare, and batches with the same number of positions for all of them."""

from __future__ import annotations

import argparse
import random
from types import SimpleNamespace

import numpy as np
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY

from tests.benchmarks.random_trees import random_tree
from tests.benchmarks.recursive_tree_lstm import RecursiveTreeLSTM
from tests.benchmarks.translation_models import TrainingStep, dictionary
from tree_fairseq.classification import sequence_classifiers, tree_lstm_classifier, tree_transformer_classifier  # noqa: F401  (register)
from tree_fairseq.classification.classifier import ClassTask
from tree_fairseq.classification.criterion import TreeClassificationCriterion
from tree_fairseq.classification.dataset import SentenceTree, collate_sentences, collate_targets

# As many words as the Stanford Sentiment Treebank has, and as many classes.
WORDS, LABELS, CLASSES = 18_284, 60, 5


class Task(ClassTask, SimpleNamespace):
    """The attributes of a task that classifiers and their criterion read."""

    def __init__(self, all_nodes: bool = False, words: int = WORDS):
        super().__init__(
            source_dictionary=dictionary(words),
            label_dictionary=dictionary(LABELS),
            num_classes=CLASSES,
            labels_all_nodes=all_nodes,
            cfg=SimpleNamespace(document_root="first"),
        )


def build(architecture: str, task: Task, **options) -> torch.nn.Module:
    """Builds a classifier of width 64 with random weights; ``recursive`` is the Tree-LSTM node by node."""
    names = {
        "tree": "tree_transformer_classifier_tiny",
        "stock": "transformer_classifier_tiny",
        "tree_lstm": "tree_lstm_classifier_tiny",
        "recursive": "tree_lstm_classifier_tiny",
    }
    if "lstm" in names[architecture]:
        options = {"encoder_hidden_size": 64, **options}
    args = argparse.Namespace(**options)
    ARCH_CONFIG_REGISTRY[names[architecture]](args)
    torch.manual_seed(0)
    model = ARCH_MODEL_REGISTRY[names[architecture]].build_model(args, task)
    if architecture == "recursive":
        model.encoder.tree_lstm = RecursiveTreeLSTM(model.encoder.tree_lstm)
    return model


def training_step(architecture: str, task: Task) -> TrainingStep:
    """Returns a step of forward pass, cross-entropy, backward pass and Adam's update."""
    return TrainingStep(build(architecture, task), task, TreeClassificationCriterion(task, label_smoothing=0.0))


def tree_batch(task: Task, size: int, leaves: int) -> dict:
    """Makes sentences with binary trees of ``leaves - 1`` nodes, as the task's datasets collate them."""
    generator, classes = random.Random(0), np.random.default_rng(0)
    rows, documents = [], []
    for tokens in sequence_batch(task, size, leaves)["net_input"]["src_tokens"]:
        nodes = random_tree(generator, leaves, leaves - 1, LABELS)
        targets = (classes.integers(CLASSES, size=count) for count in (len(nodes), leaves))
        rows.append(SentenceTree(0, leaves, nodes, *targets))
        documents.append((tokens, rows[-1:]))
    batch = sequence_batch(task, size, leaves)
    pad = task.source_dictionary.pad()
    batch["net_input"]["sentence_trees"] = collate_sentences(documents, pad, pad)
    return {**batch, **collate_targets(rows), "target": torch.tensor([row.node_target[0] for row in rows])}


def sequence_batch(task: Task, size: int, tokens: int) -> dict:
    """Makes sentences without trees."""
    words, generator = task.source_dictionary, torch.Generator().manual_seed(0)
    return {
        "id": torch.arange(size),
        "nsentences": size,
        "ntokens": size * tokens,
        "net_input": {
            "src_tokens": torch.randint(words.nspecial, len(words), (size, tokens), generator=generator),
            "src_lengths": torch.full((size,), tokens),
        },
        "target": torch.randint(CLASSES, (size,), generator=generator),
    }
