"""Prints the fewest steps of decoding the test sets of Overnight, by insertion into trees and into sequences.

    python -m examples.overnight.bounds --data DIR [--domain NAME ...]

They are the numbers of steps of the greedy oracle for trees, and the smallest ones for sequences. They include
the last step, in which a decoder finds that it has nothing left to insert.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from preprocess.command import run_command
from preprocess.corpora import CorpusError
from preprocess.overnight import domains, examples_file, read_forms
from tree_fairseq.tree_insertion.oracles import ProgramOracle, step_count
from tree_fairseq.tree_insertion.target import TargetTree
from tree_fairseq.trees.tree import Tree

PAPER = {"calendar": 6.2, "restaurants": 6.1, "publications": 6.3, "recipes": 6.0}
"""The "theoretical best" in the paper on insertion-based tree decoding: greedy, with the root of the form given."""


class Bounds(NamedTuple):
    """Average steps over a test set.

    Attributes:
        greedy_given: insertion of the most central node of each slot, starting with the root of the form
        greedy: the same, starting with the artificial root only
        sequence: insertion of the middle of each slot into the form written with brackets
        forms: number of forms
    """

    greedy_given: float
    greedy: float
    sequence: float
    forms: int


def bounds(forms: Iterable[Tree]) -> Bounds:
    """Returns the bounds over the forms of a test set."""
    known: dict[Tree, tuple[int, ...]] = {}
    rows = [known.get(form) or known.setdefault(form, _steps(form)) for form in forms]
    return Bounds(*(np.mean(rows, axis=0) + 1).tolist(), len(rows))


def table(rows: dict[str, Bounds]) -> str:
    """Returns the bounds of each domain as aligned columns, beside the number in the paper."""
    lines = ["domain          forms  paper  greedy, root given  greedy  sequence"]
    for domain, row in rows.items():
        paper = f"{PAPER[domain]:.1f}" if domain in PAPER else "-"
        trees = f"{row.greedy_given:19.2f} {row.greedy:7.2f}"
        lines.append(f"{domain:14} {row.forms:6} {paper:>6} {trees} {row.sequence:9.2f}")
    return "\n".join(lines) + "\n"


def _steps(form: Tree) -> tuple[int, int, int]:
    target = TargetTree.of(form)
    greedy = ProgramOracle(target)
    tokens = sum(3 if node.children else 1 for node in form.preorder())
    # Each step fills the middle of every slot, so n tokens take as many steps as n has binary digits.
    return step_count(greedy, given=2), step_count(greedy), tokens.bit_length()


def _print(data: Path, names: list[str]) -> None:
    if not names:
        raise CorpusError(f"{data} holds no NAME.paraphrases.test.examples")
    rows = {name: bounds(form for _, form in read_forms(examples_file(data, name, "test"))) for name in names}
    sys.stdout.write(table(rows))


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m examples.overnight.bounds", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the .examples files")
    parser.add_argument("--domain", nargs="+", help="default: all domains of the folder")
    args = parser.parse_args(arguments)
    return run_command("overnight", lambda: _print(args.data, args.domain or domains(args.data)))


if __name__ == "__main__":
    raise SystemExit(main())
