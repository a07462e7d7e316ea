"""Scores programs of IFTTT as Quirk, Mooney and Galley (2015, section 6), and as `tree-fairseq score structural` does.

    python -m examples.ifttt.scores --run runs/tree --data data-bin --references words --primary channel_accuracy

A program is ``( ROOT IF ( TRIGGER channel ( FUNC function ... ) ) THEN ( ACTION channel ( FUNC function ... ) ) )``.

============================  =====================================================================================
metric                        value
============================  =====================================================================================
``channel_accuracy``          programs with two right channels
``channel_function_accuracy`` programs with two right channels and two right functions; parameters do not count
``production_f1``             balanced F measure of productions, the rules ``label -> labels of its children`` of
                              outputs and references, with multiplicities, over the whole set
============================  =====================================================================================

An output that is not a tree or not a program has no channel, function or production.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from preprocess.ifttt import program
from tree_fairseq.scoring.tree_runs import TreeOutcomes, TreeSet
from tree_fairseq.trees.tree import Tree


def productions(tree: Tree | None) -> Counter[tuple[str, tuple[str, ...]]]:
    """Returns the productions of a tree with multiplicities; leaves have none."""
    nodes = tree.preorder() if tree else ()
    return Counter((node.label, tuple(child.label for child in node.children)) for node in nodes if node.children)


def production_f1(pairs: Iterable[tuple[Tree | None, Tree]]) -> float:
    """Computes the balanced F measure of productions over all outputs and references, in percent."""
    common = total = 0
    for output, reference in pairs:
        ours, theirs = productions(output), productions(reference)
        common += sum((ours & theirs).values())
        total += sum(ours.values()) + sum(theirs.values())
    return 200 * common / total if total else 0.0


class ProgramOutcomes(TreeOutcomes):
    """Which programs are right, and which channels and functions of them."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        programs = [(program(output), program(reference)) for output, reference in self.pairs]
        self.values["channel_accuracy"] = [
            ours.channels is not None and ours.channels == theirs.channels for ours, theirs in programs
        ]
        self.values["channel_function_accuracy"] = [None not in ours and ours == theirs for ours, theirs in programs]

    def metrics(self, indices: Sequence[int]) -> dict[str, float]:
        """Returns the metrics of trees and of programs for some sentences."""
        return {**super().metrics(indices), "production_f1": production_f1(self.pairs[index] for index in indices)}


class ProgramSet(TreeSet):
    """Scores programs of IFTTT: channels, functions, productions, exact match."""

    kind = ProgramOutcomes


if __name__ == "__main__":
    sys.exit(ProgramSet.main())
