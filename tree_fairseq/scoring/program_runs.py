"""Runs of models that generate programs, in any language of :mod:`tree_fairseq.source_code`.

    tree-fairseq score code --run runs/tree --data data-bin --references text --against runs/stock --result result.json
    tree-fairseq score sql --run runs/tree --notation sql --references text/test.sql --database geo.sqlite \\
        --training text/train.sql

Programs are compared as trees, so blanks, the case of keywords and the like do not matter. A program that does not
parse is never right, be it an output or a reference. ``--training`` names the programs of the training set: there is a
group of test programs that it has, ``seen``, and one of the others, ``unseen``.
"""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tree_fairseq.errors import InputError, ScoringError
from tree_fairseq.scoring.code_bleu import MODULES_AND_KEYWORDS, Bleu, CodeBleu, total
from tree_fairseq.scoring.execution import Execution, read_values
from tree_fairseq.scoring.measures import AdditiveMeasure, Measure, OutcomeMeasure
from tree_fairseq.scoring.outputs import read_complete, read_reference_lines
from tree_fairseq.scoring.runs import RunSet, generated
from tree_fairseq.scoring.tree_runs import Target, add_target
from tree_fairseq.source_code.language import Language
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.symbols import UNKNOWN_LABEL, exact_matches
from tree_fairseq.trees.text import read_lines
from tree_fairseq.trees.tree import Tree

logger = logging.getLogger(__name__)


class TreeF1(AdditiveMeasure):
    """``tree_f1``: F1 of all nodes of all programs; a node is its label with those of its children.

    A program that does not parse (None) has no nodes.
    """

    def __init__(self, references: Sequence[Tree | None], outputs: Sequence[Tree | None]):
        self._pairs = list(zip_equal(references, outputs))

    @cached_property
    def counts(self) -> np.ndarray:
        """Common nodes, and nodes of both trees, ``[sentences, 3]``."""
        rows = []
        for reference, output in self._pairs:
            wanted, found = _nodes(reference), _nodes(output)
            rows.append([total(wanted & found), total(wanted), total(found)])
        return np.array(rows, np.float64)

    def statistic(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        both = sums[..., 1] + sums[..., 2]
        return {"tree_f1": 200 * sums[..., 0] / np.maximum(both, 1)}


def _nodes(tree: Tree | None) -> Counter[tuple[str, ...]]:
    if tree is None:
        return Counter()
    nodes = Language.whole(tree).preorder()
    return Counter((node.label, *(child.label for child in node.children)) for node in nodes)


class Programs:
    """The right programs of a test set, their trees, and how outputs are compared with them."""

    def __init__(self, texts: Sequence[str], language: Language):
        self.texts, self.language = list(texts), language
        self.trees = [self.parse(text) for text in texts]
        self.failed = [number for number, tree in enumerate(self.trees) if tree is None]
        if self.failed:
            message = "%d of %d references are not %s, and no output is right there; the first is %d"
            logger.warning(message, len(self.failed), len(texts), language.name, self.failed[0] + 1)

    def parse(self, text: str) -> Tree | None:
        """The tree of a program; None if it does not parse."""
        try:
            return self.language.read(text)
        except InputError:
            return None

    def outcomes(self, outputs: Sequence[str], trees: Sequence[Tree | None]) -> dict[str, list[bool]]:
        """``exact_match``: the trees are equal; ``exact_text``: the texts are; ``parses``: the output does."""
        known = [None if wanted is None else tree for tree, wanted in zip_equal(trees, self.trees)]
        wanted = [Tree(UNKNOWN_LABEL) if tree is None else tree for tree in self.trees]
        return {
            "exact_match": exact_matches(known, wanted),
            "exact_text": [text.strip() == output.strip() for text, output in zip_equal(self.texts, outputs)],
            "parses": [tree is not None for tree in trees],
        }

    def measures(self, outputs: Sequence[str], trees: Sequence[Tree | None]) -> dict[str, Measure]:
        """BLEU and F1 of trees, and CodeBLEU if the language has one."""
        found: dict[str, Measure] = {"bleu": Bleu(self.texts, outputs)}
        if self.language.name in MODULES_AND_KEYWORDS:
            found["codebleu"] = CodeBleu(self.texts, outputs, self.language.name)
        return {**found, "tree_f1": TreeF1(self.trees, trees)}


class CodeSet(RunSet):
    """Scores programs: exact match as trees, BLEU as of CodeXGLUE, CodeBLEU, F1 of trees, and how many parse."""

    name, primary = "code", "exact_match"

    def __init__(self, args: Namespace, subset: str):
        super().__init__(args, subset)
        self.target = Target.of(args)
        language = self.target.reader
        if not isinstance(language, Language):
            raise ScoringError(f"{self.target.notation} is no programming language: use tree-fairseq score structural")
        [self.path] = self.reference_files(f"{subset}.{self.target.language}")
        self.programs = Programs(read_reference_lines(self.path), language)
        self.count = len(self.programs.texts)
        if language.name not in MODULES_AND_KEYWORDS:
            logger.info("%s has no CodeBLEU: its keywords and its data flow are not known", language.name)

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        add_target(parser)
        seen = "file of the training set's programs: also score those that it has, and the others"
        parser.add_argument("--training", type=Path, metavar="FILE", help=seen)

    def measures(self, system: Path) -> dict[str, Measure]:
        texts, trees = self._outputs(system)
        outcomes = OutcomeMeasure(self.programs.outcomes(texts, trees))
        return {"outcomes": outcomes, **self.programs.measures(texts, trees)}

    def _outputs(self, system: Path) -> tuple[list[str], list[Tree | None]]:
        """The programs of a run and their trees; those that generation marked as invalid have none."""
        outputs = read_complete(generated(system, self.subset), self.count)
        numbers = range(self.count)
        given = [outputs.detokenized.get(number, outputs.best.get(number, "")) for number in numbers]
        target = self.target.of_outputs(given)
        texts = [target.text(text) or text for text in given]
        return texts, [None if outputs.is_invalid(each) else self.programs.parse(texts[each]) for each in numbers]

    def parts(self) -> dict[str, tuple[Sequence[int], Sequence[int]]]:
        trees = [
            tree or Tree("", map(Tree, text.split())) for tree, text in zip(self.programs.trees, self.programs.texts)
        ]
        sizes, depths = [sum(1 for _ in tree.preorder()) for tree in trees], [tree.height() for tree in trees]
        return {"by_size": (sizes, self.args.length_bounds), "by_depth": (depths, self.args.depth_bounds)}

    def groups(self) -> Sequence[Iterable[str]] | None:
        groups = super().groups()
        if self.args.training is None:
            return groups
        if not self.args.training.is_file():
            raise ScoringError(f"{self.args.training} is missing: --training takes the programs of the training set")
        lines = set(read_lines(self.args.training))
        trained = {tree for tree in map(self.programs.parse, lines) if tree is not None}
        names = [
            "seen" if tree in trained or text in lines else "unseen"
            for tree, text in zip(self.programs.trees, self.programs.texts)
        ]
        return [[*more, name] for more, name in zip(groups or [[]] * self.count, names)]

    def details(self, system: Mapping[str, Measure]) -> dict[str, Any]:
        outcomes = system["outcomes"]
        assert isinstance(outcomes, OutcomeMeasure)
        return {
            "references_that_do_not_parse": len(self.programs.failed),
            "outputs_that_do_not_parse": self.count - sum(outcomes.outcomes["parses"]),
        }

    def notes(self, result: Mapping[str, Any]) -> list[str]:
        failed = len(self.programs.failed)
        return [f"{failed} references do not parse, and no output is right there"] if failed else []


class SqlSet(CodeSet):
    """Scores SQL: exact match as trees, how many parse, and with a database how many return the right rows.

    Names that stand for values, such as city_name0, are replaced before a query runs if the file {subset}.variables
    beside the references has a JSON object of names and values for each line.
    """

    name = "sql"

    def __init__(self, args: Namespace, subset: str):
        args.notation = args.notation or (None if args.data else "sql")
        super().__init__(args, subset)
        self.execution: Execution | None = None
        if args.database is not None:
            values = read_values(self.path.with_suffix(".variables"), self.count)
            self.execution = Execution(args.database, self.programs.texts, values)

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        CodeSet.add_arguments(parser)
        database = "SQLite file: also score what the queries return, as they run on a copy of it in a child process"
        parser.add_argument("--database", type=Path, metavar="FILE", help=database)

    def measures(self, system: Path) -> dict[str, Measure]:
        texts, trees = self._outputs(system)
        outcomes = self.programs.outcomes(texts, trees)
        if self.execution is not None:
            outcomes |= self.execution.outcomes(texts)
        return {"outcomes": OutcomeMeasure(outcomes), "tree_f1": TreeF1(self.programs.trees, trees)}

    def details(self, system: Mapping[str, Measure]) -> dict[str, Any]:
        found, outcomes = super().details(system), system["outcomes"]
        if self.execution is not None and isinstance(outcomes, OutcomeMeasure):
            found |= {
                "references_that_do_not_run": len(self.execution.failed),
                "references_without_rows": self.execution.empty,
                "outputs_that_do_not_run": self.count - sum(outcomes.outcomes["runs"]),
            }
        return found

    def notes(self, result: Mapping[str, Any]) -> list[str]:
        notes = super().notes(result)
        if self.execution is not None:
            if self.execution.failed:
                notes.append(f"{len(self.execution.failed)} references do not run, and no output is right there")
            notes.append(f"{result['outputs_that_do_not_run']} outputs do not run")
            if self.execution.empty:
                notes.append(f"{self.execution.empty} references return no rows: any query without rows is right there")
        return notes
