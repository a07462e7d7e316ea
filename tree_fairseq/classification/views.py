"""The view of a classification: the probabilities of all classes, and the classes of the nodes of a parse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tree_fairseq.classification.classifier import TreeClassifier, class_probabilities
from tree_fairseq.classification.folder import IGNORE
from tree_fairseq.classification.task import ClassificationTask
from tree_fairseq.drawing.views import Explained, Views, register_views
from tree_fairseq.trees.spans import encode, reduce_spans
from tree_fairseq.trees.tree import Forest

_DIGITS = 5  # of probabilities


@register_views
class ClassificationViews(Views):
    """The probabilities of the classes, and the classes of nodes if the model was trained on theirs."""

    method, rank = "classification", 2

    @classmethod
    def fits(cls, task: Any, models: Sequence[nn.Module], generator: Any) -> bool:
        return isinstance(task, ClassificationTask)

    def read_output(self, explained: Explained) -> list[str]:
        """Reads the sentence: a class is not read."""
        self.models[0](**explained.inputs)
        return []

    def views(self, explained: Explained) -> dict[str, Any]:
        task, model = self.task, self.models[0]
        if task.regression:
            return {}
        probabilities = class_probabilities(explained.hypotheses, task.target_dictionary)
        nodes = None
        if task.labels_all_nodes and explained.forest and isinstance(model, TreeClassifier):
            nodes = _classes_of_nodes(task, model, explained.sample, explained.forest)
        view = {
            "classes": list(task.classes),
            "probabilities": [round(probabilities[name], _DIGITS) for name in task.classes],
            "nodes": nodes,
        }
        return {"classification": view}


@torch.no_grad()
def _classes_of_nodes(
    task: ClassificationTask, model: TreeClassifier, sample: dict[str, Any], forest: Forest
) -> list[dict[str, Any]]:
    """The classes of the nodes that the model reads, and of the tags of words, by their places in the parse."""
    inputs = {name: value for name, value in sample["net_input"].items() if name in ("src_tokens", "src_lengths")}
    trees = sample["net_input"]["sentence_trees"]
    output = model(**inputs, sentence_trees=trees, node_logits=True)
    spans = encode(forest).spans
    # In preorder every word to the left of a node comes before it, and words are no rows of the spans.
    place = np.arange(len(spans)) + spans[:, 0]
    is_leaf = trees["tokens"].ne(task.source_dictionary.pad())
    is_node = trees["end"] > trees["start"]
    over_word = np.flatnonzero(spans[:, 1] - spans[:, 0] == 1)
    _, first = np.unique(spans[over_word, 0], return_index=True)
    read = place if task.read_tree.keep_unary else place[reduce_spans(spans)]
    parts = (
        (read, output["node_logits"][is_node], _given(sample, "node_target", is_node)),
        (place[over_word[first]], output["leaf_logits"][is_leaf], _given(sample, "leaf_target", is_leaf)),
    )
    found = [
        {"index": int(index), "predicted": task.classes[best], "gold": None if gold == IGNORE else task.classes[gold]}
        for indices, logits, golds in parts
        for index, best, gold in zip(indices.tolist(), logits.argmax(-1).tolist(), golds.tolist())
    ]
    return sorted(found, key=lambda node: node["index"])


def _given(sample: dict[str, Any], name: str, real: Tensor) -> Tensor:
    """The right classes of real nodes or leaves, `IGNORE` where they are not known."""
    if name not in sample:
        return torch.full((int(real.sum()),), IGNORE)
    return sample[name][real]
