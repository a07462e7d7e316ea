"""Views of searches for trees: the steps of a structural beam, and trees that grow by insertions."""

from __future__ import annotations

from typing import Any

from tree_fairseq.explorer.document import tree_record
from tree_fairseq.tree_insertion.observed_insertions import ObservedInsertions
from tree_fairseq.tree_positional.search_steps import Hypothesis, PartialTree, SearchSteps
from tree_fairseq.trees.tree import Tree

_DIGITS = 4  # of probabilities


def beam_view(observed: SearchSteps, beam: int, result: Tree) -> dict[str, Any]:
    """The steps of a structural search, and the tree that it found."""
    dictionary = observed.dictionary

    def record(hypothesis: Hypothesis) -> dict[str, Any]:
        partial = PartialTree.of(hypothesis.symbols, dictionary)
        candidates = [
            {
                "symbol": dictionary[candidate.symbol],
                "probability": round(candidate.probability, _DIGITS),
                "legal": candidate.why is None,
                "why": candidate.why or "",
                "chosen": candidate.chosen,
            }
            for candidate in hypothesis.candidates
        ]
        return {
            "tree": tree_record(partial.forest),
            "open": partial.open,
            "next": partial.next,
            "score": round(hypothesis.score, _DIGITS),
            "parent": hypothesis.parent,
            "candidates": candidates,
        }

    steps = [{"hypotheses": [record(hypothesis) for hypothesis in step]} for step in observed.steps]
    return {"beam": beam, "steps": steps, "result": tree_record((result,))}


def insertion_view(observed: ObservedInsertions) -> dict[str, Any]:
    """The trees of all steps of a parallel insertion, from the root alone, and the best predictions for their slots."""
    steps = [
        {
            "tree": tree_record((step.tree,)),
            "inserted": step.inserted,
            "slots": [
                {
                    "node": slot.node,
                    "kind": slot.kind,
                    "predictions": [
                        {"symbol": symbol, "probability": round(probability, _DIGITS)}
                        for symbol, probability in slot.predictions
                    ],
                }
                for slot in step.slots
            ],
        }
        for step in observed.steps
    ]
    return {"steps": steps}
