"""Runs of models that generate programs, in any language of :mod:`tree_fairseq.source_code`.

    tree-fairseq score code --run runs/tree --data data-bin --references text --against runs/stock --result result.json
    tree-fairseq score sql --run runs/tree --notation sql --references text/test.sql --database geo.sqlite \\
        --training text/train.sql

``--training`` names the programs of the training set: those of the test set that it has are the group ``seen``, the
others are ``unseen``.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.execution import Execution
from tree_fairseq.scoring.measures import MeanMeasure, Measure
from tree_fairseq.scoring.outputs import read_complete, read_reference_lines
from tree_fairseq.scoring.program_measures import Programs, TreeF1
from tree_fairseq.scoring.runs import RunSet, generated
from tree_fairseq.scoring.significance import Resampling
from tree_fairseq.scoring.tree_runs import Target, add_target, parts_of
from tree_fairseq.trees.text import read_lines
from tree_fairseq.trees.tree import Tree


class CodeSet(RunSet):
    """Scores programs: exact match as trees, BLEU as of CodeXGLUE, CodeBLEU, F1 of trees, and how many parse."""

    name, primary = "code", "exact_match"

    def __init__(self, args: Namespace, subset: str):
        super().__init__(args, subset)
        self.target = Target.of(args)
        [self.path] = self.reference_files(f"{subset}.{self.target.language}")
        self.programs = Programs(read_reference_lines(self.path), self.target.reader)
        self.count = len(self.programs.texts)
        self.test = Resampling(groups=self.programs.texts)  # descriptions of one program depend on each other

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        add_target(parser)
        seen = "file of the training set's programs: also score those that it has, and the others"
        parser.add_argument("--training", type=Path, metavar="FILE", help=seen)

    def measures(self, system: Path) -> dict[str, Measure]:
        outputs = read_complete(generated(system, self.subset), self.count)
        numbers = range(self.count)
        given = [outputs.detokenized.get(number, outputs.best.get(number, "")) for number in numbers]
        target = self.target.of_outputs(given)
        texts = [target.text(text) or "" for text in given]
        # Those that generation marked as invalid have no trees.
        trees = [None if outputs.is_invalid(each) else self.programs.parse(texts[each]) for each in numbers]
        return self._compared(texts, trees)

    def _compared(self, texts: Sequence[str], trees: Sequence[Tree | None]) -> dict[str, Measure]:
        outcomes = MeanMeasure(self.programs.outcomes(texts, trees))
        return {"outcomes": outcomes, **self.programs.measures(texts, trees)}

    def parts(self) -> dict[str, tuple[Sequence[int], Sequence[int]]]:
        pairs = zip(self.programs.trees, self.programs.texts)
        return parts_of([tree or Tree("", map(Tree, text.split())) for tree, text in pairs], self.args)

    def groups(self) -> Sequence[Iterable[str]] | None:
        groups, path = super().groups(), self.args.training
        if path is None:
            return groups
        if not path.is_file():
            raise ScoringError(f"{path} is missing: --training takes the programs of the training set")
        lines = set(read_lines(path))
        trained = {tree for tree in map(self.programs.parse, lines) if tree is not None}
        pairs = zip(self.programs.trees, self.programs.texts)
        names = ["seen" if tree in trained or text in lines else "unseen" for tree, text in pairs]
        return [[*others, name] for others, name in zip(groups or [[]] * self.count, names)]

    def details(self, system: Mapping[str, Measure]) -> dict[str, Any]:
        unparsed = self.count - sum(system["outcomes"].values["parses"])
        return {"references_that_do_not_parse": len(self.programs.failed), "outputs_that_do_not_parse": unparsed}

    def notes(self, result: Mapping[str, Any]) -> list[str]:
        return _nothing_is_right("parse", self.programs.failed)


class SqlSet(CodeSet):
    """Scores SQL: exact match as trees, how many parse, and with a database how many return the right rows."""

    name = "sql"

    def __init__(self, args: Namespace, subset: str):
        if args.notation is None and args.data is None:
            args.notation = "sql"
        super().__init__(args, subset)

    @cached_property
    def execution(self) -> Execution | None:
        """The references on the database."""
        database = self.args.database
        if database is None:
            return None
        return Execution(database, self.programs.texts, self.path, self.programs.language)

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        CodeSet.add_arguments(parser)
        database = "SQLite file: also score what queries return; they run on a copy of it, in a child process"
        parser.add_argument("--database", type=Path, metavar="FILE", help=database)

    def _compared(self, texts: Sequence[str], trees: Sequence[Tree | None]) -> dict[str, Measure]:
        run = {} if self.execution is None else self.execution.outcomes(texts)
        outcomes = MeanMeasure({**self.programs.outcomes(texts, trees), **run})
        return {"outcomes": outcomes, "tree_f1": TreeF1(self.programs.trees, trees)}

    def details(self, system: Mapping[str, Measure]) -> dict[str, Any]:
        found = super().details(system)
        if self.execution is not None:
            found["outputs_that_do_not_run"] = self.count - sum(system["outcomes"].values["runs"])
            found["references_that_do_not_run"] = len(self.execution.failed)
            found["references_without_rows"] = self.execution.empty
        return found

    def notes(self, result: Mapping[str, Any]) -> list[str]:
        notes = super().notes(result)
        if self.execution is not None:
            notes += _nothing_is_right("run", self.execution.failed)
            notes.append(f"outputs that do not run: {result['outputs_that_do_not_run']}")
            if self.execution.empty:
                notes.append(f"references without rows, where any query without rows is right: {self.execution.empty}")
        return notes


def _nothing_is_right(action: str, failed: Sequence[int]) -> list[str]:
    return [f"references that do not {action}, where no output is right: {len(failed)}"] if failed else []
