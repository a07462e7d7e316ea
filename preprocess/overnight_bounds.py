"""How few steps decoding the forms of a test set can take: by insertions into trees, greedy and best, and into sequences.

A decoder takes one more step after the last insertion, in which it finds nothing left to insert; it is counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tree_fairseq.tree_insertion.oracles import CentralityOracle, ExactOracle
from tree_fairseq.tree_insertion.target import TargetTree
from tree_fairseq.tree_insertion.trajectories import step_count
from tree_fairseq.trees.tree import Tree

PAPER = {"calendar": 6.2, "restaurants": 6.1, "publications": 6.3, "recipes": 6.0}
"""The paper's "theoretical best" of insertion-based tree decoding: greedy, with the root of the form given."""


class Bounds(NamedTuple):
    """Average steps over a test set.

    Attributes:
        greedy_given: the most central node of each slot is inserted, and the root of the form is known
        greedy: the same from the added root alone
        exact: the fewest possible from the added root
        sequence: the middle of each slot of the form written with brackets
        forms: number of forms
    """

    greedy_given: float
    greedy: float
    exact: float
    sequence: float
    forms: int


def bounds(forms: Iterable[Tree]) -> Bounds:
    """The bounds over the forms of a test set."""
    known: dict[Tree, tuple[int, ...]] = {}
    rows = [known.get(form) or known.setdefault(form, _steps(form)) for form in forms]
    return Bounds(*(np.mean(rows, axis=0) + 1).tolist(), len(rows))


def table(rows: dict[str, Bounds]) -> str:
    """The bounds of each domain as aligned columns, the paper's beside the one that it is compared with."""
    lines = ["domain          forms  paper  greedy, root given  greedy  exact  sequence"]
    for domain, row in rows.items():
        paper = f"{PAPER[domain]:.1f}" if domain in PAPER else "-"
        trees = f"{row.greedy_given:19.2f} {row.greedy:7.2f} {row.exact:6.2f}"
        lines.append(f"{domain:14} {row.forms:6} {paper:>6} {trees} {row.sequence:9.2f}")
    return "\n".join(lines) + "\n"


def _steps(form: Tree) -> tuple[int, int, int, int]:
    target = TargetTree.of(form)
    greedy, exact = CentralityOracle(target), ExactOracle(target)
    tokens = sum(3 if node.children else 1 for node in form.preorder())
    # Each step fills the middle of every slot: n tokens take as many steps as n has binary digits.
    return step_count(greedy, given=2), step_count(greedy), exact.forest[0], tokens.bit_length()
