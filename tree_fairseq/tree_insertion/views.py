"""The view of a parallel insertion of nodes: the partial tree of each step, and the predictions for its slots.

A search has no observer unless the explorer sets one, and then keeps nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from tree_fairseq.drawing.views import Explained, Views, register_views, tree_record
from tree_fairseq.tree_insertion.dictionary import label_of
from tree_fairseq.tree_insertion.search import InsertionGenerator, PartialTrees
from tree_fairseq.tree_insertion.target import ANCESTOR, DESCENDANT, FIRST_CHILD, KINDS, NEXT_SIBLING
from tree_fairseq.tree_insertion.tree_shapes import read_partial_trees
from tree_fairseq.trees.symbols import tree_of_parents

NOTHING = "nothing"  # stands for the prediction that nothing is inserted

_DIGITS = 4  # of probabilities
_MOST = 3  # predictions of a slot that are shown

KIND_NAMES = {DESCENDANT: "descendant", ANCESTOR: "ancestor", FIRST_CHILD: "first child", NEXT_SIBLING: "next sibling"}


@register_views
class InsertionViews(Views):
    """The view of a tree that grows; it observes the search over one sentence.

    ``steps`` are its records, from the root alone on: the tree, the nodes that the step before inserted, and for each
    slot its node, its kind and its most probable predictions.
    """

    method, rank = "tree_insertion", 1

    def __init__(self, task: Any, models: Sequence[nn.Module], generator: InsertionGenerator):
        super().__init__(task, models, generator)
        generator.observer = self
        self.steps: list[dict[str, Any]] = []

    @classmethod
    def fits(cls, task: Any, models: Sequence[nn.Module], generator: Any) -> bool:
        return isinstance(generator, InsertionGenerator)

    def begin(self) -> None:
        self.steps = []

    def keep(self, partial: PartialTrees, log_probs: Tensor) -> None:
        """Keeps a step: one partial tree and ``[Z, V]`` of its slots, minus infinity for labels that never fit."""
        best = log_probs.topk(min(_MOST, log_probs.size(1)), dim=1)
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
        self.steps.append({"tree": tree, "inserted": partial.is_new.nonzero()[0].tolist(), "slots": slots})

    def _tree(self, labels: Sequence[int], parents: Sequence[int]) -> dict[str, list]:
        return tree_record((tree_of_parents([self._label(label) for label in labels], parents),))

    def _label(self, index: int) -> str:
        return label_of(self.task.target_dictionary[index])

    def _name(self, index: int) -> str:
        return NOTHING if index == self.task.target_dictionary.keep else self._label(index)

    def read_output(self, explained: Explained) -> list[str]:
        """Reads the finished tree, node by node."""
        model, best = self.models[0], explained.hypotheses[0]
        device = explained.inputs["src_tokens"].device
        partial = {name: best[name].unsqueeze(0).to(device) for name in ("labels", "parents")}  # (M,) -> (1, M)
        read = read_partial_trees(partial, self.task.target_dictionary.pad())
        model.decode(model.encode(**explained.inputs), read)
        return [self._label(index) for index in best["labels"].tolist()]

    def views(self, explained: Explained) -> dict[str, Any]:
        best = explained.hypotheses[0]
        tree = self._tree(best["labels"].tolist(), best["parents"].tolist())
        if tree != self.steps[-1]["tree"]:
            self.steps.append({"tree": tree, "inserted": best["is_new"].nonzero().flatten().tolist(), "slots": []})
        return {"insertion": {"steps": self.steps}}
