"""The view of a parallel insertion of nodes: the partial tree of each step, and the predictions for its slots.

A search has no observer unless the explorer sets one, and then keeps nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from tree_fairseq.drawing.views import Explained, Views, register_views, tree_record
from tree_fairseq.tree_insertion.dictionary import InsertionDictionary, label_of
from tree_fairseq.tree_insertion.search import InsertionGenerator, PartialTrees
from tree_fairseq.tree_insertion.target import ANCESTOR, DESCENDANT, FIRST_CHILD, KINDS, NEXT_SIBLING
from tree_fairseq.tree_insertion.tree_shapes import read_partial_trees
from tree_fairseq.trees.symbols import tree_of_parents
from tree_fairseq.trees.tree import Tree

NOTHING = "nothing"  # stands for the prediction that nothing is inserted

_DIGITS = 4  # of probabilities

KIND_NAMES = {DESCENDANT: "descendant", ANCESTOR: "ancestor", FIRST_CHILD: "first child", NEXT_SIBLING: "next sibling"}


class ObservedInsertions:
    """Keeps the steps of a search over one sentence: set it as ``generator.observer``.

    ``steps`` are the records that the explorer shows, from the root alone on: the tree, the nodes that the step before
    inserted, and for each slot its node, its kind and its ``most`` probable predictions.
    """

    def __init__(self, dictionary: InsertionDictionary, most: int = 3):
        self.dictionary, self.most = dictionary, most
        self.steps: list[dict[str, Any]] = []
        self._last_tree: Tree | None = None

    def forget(self) -> None:
        """Begins anew, for another sentence."""
        self.steps = []

    def keep(self, partial: PartialTrees, log_probs: Tensor) -> None:
        """Keeps a step: one partial tree and ``[Z, V]`` of its slots, minus infinity for labels that never fit."""
        best = log_probs.topk(min(self.most, log_probs.size(1)), dim=1)
        probabilities = best.values.exp().tolist()
        slots = [
            {
                "node": slot // KINDS,
                "kind": KIND_NAMES[slot % KINDS],
                "predictions": [
                    {"symbol": self._name(label), "probability": round(probability, _DIGITS)}
                    for label, probability in zip(labels, own)
                ],
            }
            for slot, labels, own in zip(partial.slots.tolist(), best.indices.tolist(), probabilities)
        ]
        tree = self._tree(partial.labels.tolist(), partial.shapes.parents.tolist())
        self._add(tree, partial.is_new.nonzero()[0].tolist(), slots)

    def finish(self, hypothesis: dict[str, Any]) -> None:
        """Adds the finished tree if it is not the last step's."""
        tree = self._tree(hypothesis["labels"].tolist(), hypothesis["parents"].tolist())
        if tree != self._last_tree:
            self._add(tree, hypothesis["is_new"].nonzero().flatten().tolist(), [])

    def _add(self, tree: Tree, inserted: list[int], slots: list[dict[str, Any]]) -> None:
        self._last_tree = tree
        self.steps.append({"tree": tree_record((tree,)), "inserted": inserted, "slots": slots})

    def _tree(self, labels: Sequence[int], parents: Sequence[int]) -> Tree:
        return tree_of_parents([self._label(label) for label in labels], parents)

    def _label(self, index: int) -> str:
        return label_of(self.dictionary[index])

    def _name(self, index: int) -> str:
        return NOTHING if index == self.dictionary.keep else self._label(index)


@register_views
class InsertionViews(Views):
    """The view of a tree that grows: its nodes after each step, from the root alone, and the best predictions."""

    method, rank = "tree_insertion", 1

    def __init__(self, task: Any, models: Sequence[nn.Module], generator: InsertionGenerator):
        super().__init__(task, models, generator)
        self.observer = generator.observer = ObservedInsertions(task.target_dictionary)

    @classmethod
    def fits(cls, task: Any, models: Sequence[nn.Module], generator: Any) -> bool:
        return isinstance(generator, InsertionGenerator)

    def begin(self) -> None:
        self.observer.forget()

    def read_output(self, explained: Explained) -> list[str]:
        """Reads the finished tree, node by node."""
        model, dictionary, best = self.models[0], self.task.target_dictionary, explained.hypotheses[0]
        device = explained.inputs["src_tokens"].device
        partial = {name: best[name].unsqueeze(0).to(device) for name in ("labels", "parents")}  # (M,) -> (1, M)
        model.decode(model.encode(**explained.inputs), read_partial_trees(partial, dictionary.pad()))
        return [label_of(dictionary[index]) for index in best["labels"].tolist()]

    def views(self, explained: Explained) -> dict[str, Any]:
        self.observer.finish(explained.hypotheses[0])
        return {"insertion": {"steps": self.observer.steps}}
