"""Runs of models that generate trees, such as programs and logical forms.

    tree-fairseq score structural --run runs/tree --data data-bin --references words --against runs/stock \\
        --result result.json

``--references`` is the folder with the corpus's own ``{subset}.{language}`` and, if sentences belong to groups,
``{subset}.groups``. The reference is the line before preprocessing, so a symbol that the dictionary lacks is never
right. Accuracies and F1 are in percent. ``validity`` is a share from 0 to 1. ``steps`` is the mean number of decoding
steps, if the output has ``I-`` lines. ``partial`` counts outputs that reached a limit.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import MissingTreesError, ScoringError, SymbolTreeError
from tree_fairseq.scoring.measures import MeanMeasure, Measure
from tree_fairseq.scoring.outputs import read_complete, read_references
from tree_fairseq.scoring.runs import RunSet, add_references, generated
from tree_fairseq.scoring.significance import Resampling
from tree_fairseq.tree_insertion import PARTIAL
from tree_fairseq.tree_insertion import folder as _insertion_folder  # noqa: F401  (registers its section of tree.json)
from tree_fairseq.trees.notations import notation_named, notation_names
from tree_fairseq.trees.notations.notation import Notation, Piece
from tree_fairseq.trees.symbols import SymbolEncoding, exact_matches, unordered_labels
from tree_fairseq.trees.tree import Tree

VALIDITY, STEPS = "validity", "steps"
LINES = "lines"  # the notation that compares whole lines


class Lines(Notation):
    """Reads a line of text as a tree: its tokens below an unnamed root. For programs without a notation of trees."""

    def _read(self, line: str) -> Tree:
        return Tree("", map(Tree, line.split()))

    def _pieces(self, node: Tree, place: None) -> list[Piece]:
        return [" ".join(token.label for token in node.children)]


class Target(NamedTuple):
    """How references and outputs are written."""

    language: str | None  # suffix of the reference files
    notation: str  # of references, and of outputs that are text
    encoding: SymbolEncoding | None  # of outputs that are symbols; None if they are text

    @classmethod
    def of(cls, args: Namespace) -> Target:
        """Returns the target that the options describe, completed from the manifest of the data folder.

        Raises ScoringError without a data folder that is needed, and MissingTreesError if it has no target trees.
        """
        language, notation, encoding = args.target_lang, args.notation, None
        if args.symbols or notation is None or language is None and args.references.is_dir():
            if args.data is None:
                message = "--data is missing: without it, give --notation and --target-lang, and leave out --symbols"
                raise ScoringError(message)
            manifest = Manifest.load(args.data)
            language = language or manifest.target_lang
            symbols = manifest.symbols.get(language)
            record = symbols if args.symbols else manifest.languages.get(language)
            if not hasattr(record, "notation"):
                raise MissingTreesError(f"{args.data} holds no symbol trees of {language}: give --notation")
            notation = notation or record.notation
            encoding = symbols.encoding if args.symbols else None
        elif args.data is not None:
            raise ScoringError("--data would be ignored beside --notation and the references: leave it out")
        return cls(language, notation, encoding)

    @property
    def reader(self) -> Notation:
        """Reads references, and outputs that are text."""
        return Lines() if self.notation == LINES else notation_named(self.notation)

    def of_outputs(self, outputs: Iterable[str]) -> Target:
        """The target of a run with these outputs: they are text if most of their tokens have no arity.

        A stock model writes symbols under fairseq's task, and text under the structural search.
        """
        if self.encoding is None:
            return self
        are_symbols = [self.encoding.parts(token)[1] >= 0 for output in outputs for token in output.split()]
        return self if 2 * sum(are_symbols) > len(are_symbols) else self._replace(encoding=None)

    def text(self, output: str) -> str | None:
        """Writes an output as references are written; returns None if its symbols are not one complete tree."""
        if self.encoding is None:
            return output
        try:
            return self.reader.write(self.encoding.decode(output.split()))
        except SymbolTreeError:
            return None

    def tree(self, output: str) -> Tree | None:
        """Reads an output; returns None if it is not one complete tree."""
        text = self.text(output)
        try:
            return None if text is None else self.reader.read(text)
        except SymbolTreeError:
            return None


class TreeOutcomes(MeanMeasure):
    """Which outputs are right, and in which respect; an output that is not a tree is None.

    ``accuracy``: the tree equals the reference. ``accuracy_unordered``: it does if the children of the ``unordered``
    labels may be in any order. ``validity``: it is a complete tree. A tree with an unknown symbol is never right.
    ``steps`` are numbers of decoding steps. ``partial`` outputs reached a limit.
    """

    def __init__(
        self,
        outputs: Sequence[Tree | None],
        references: Sequence[Tree],
        unordered: Sequence[str],
        steps: Sequence[int] | None = None,
        partial: int = 0,
    ):
        self.pairs, self.partial = list(zip(outputs, references)), partial
        found: dict[str, Sequence[float]] = {
            "accuracy": exact_matches(outputs, references),
            "accuracy_unordered": exact_matches(outputs, references, unordered),
            VALIDITY: [output is not None for output in outputs],
        }
        super().__init__(found if steps is None else {**found, STEPS: steps})

    def statistic(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        """Computes validity from 0 to 1, the mean of steps, and all others in percent."""
        found = super().statistic(sums)
        return {name: value / 100 if name in (VALIDITY, STEPS) else value for name, value in found.items()}

    def differences(self, baseline: MeanMeasure, test: Resampling) -> dict[str, dict]:
        """Compares all outcomes but validity."""
        names = [name for name in self.outcomes if name != VALIDITY]
        ours, theirs = (MeanMeasure({name: side.values[name] for name in names}) for side in (self, baseline))
        return ours.differences(theirs, test)


def add_target(parser: ArgumentParser) -> None:
    """Adds the options that :meth:`Target.of` reads, and the bounds of parts of the test set."""
    add_references(parser)
    add = parser.add_argument
    add("--data", type=Path, help="data folder of the run: gives language, notation and encoding")
    add("--target-lang", help="suffix of the reference files (default: that of the data folder)")
    names = ", ".join([*notation_names(), LINES])
    notation = f"how trees are written (default: as in the data folder): {names}, which is text that is not a tree"
    add("--notation", metavar="NAME", help=notation)
    symbols = "outputs may be symbols with arities, as stock tasks print them; other outputs are read as text"
    add("--symbols", action="store_true", help=symbols)
    add("--length-bounds", type=int, nargs="*", default=[10, 20, 30, 40, 50], help="in nodes of the reference")
    add("--depth-bounds", type=int, nargs="*", default=[2, 4, 6, 8, 10], help="in edges from the root")


def parts_of(trees: Sequence[Tree], args: Namespace) -> dict[str, tuple[Sequence[int], Sequence[int]]]:
    """Returns sizes and depths of the references of a test set, with their bounds: see :meth:`TestSet.parts`."""
    sizes = [sum(1 for _ in tree.preorder()) for tree in trees]
    depths = [tree.height() for tree in trees]
    return {"by_size": (sizes, args.length_bounds), "by_depth": (depths, args.depth_bounds)}


class TreeSet(RunSet):
    """Scores generated trees: exact match, exact match with unordered children, validity."""

    name, primary, outcomes = "structural", "accuracy", "trees"
    kind = TreeOutcomes

    def __init__(self, args: Namespace, subset: str):
        super().__init__(args, subset)
        self.target = Target.of(args)
        self.unordered = unordered_labels(self.target.notation) if args.unordered is None else args.unordered
        files = self.reference_files(f"{subset}.{self.target.language}")
        self.references = read_references(files, self.target.reader.read)
        self.count = len(self.references)

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        add_target(parser)
        unordered = "labels whose children have no order (default: and, or; in Prolog also , and ;)"
        parser.add_argument("--unordered", nargs="*", metavar="LABEL", help=unordered)

    def measures(self, system: Path) -> dict[str, Measure]:
        indices = range(self.count)
        outputs = read_complete(generated(system, self.subset), self.count)
        target = self.target.of_outputs(outputs.best.values())
        partial = sum(PARTIAL in marks for marks in outputs.unfinished.values())
        texts = [None if outputs.is_invalid(index) else outputs.best.get(index) for index in indices]
        trees = [None if text is None else target.tree(text) for text in texts]
        steps = [outputs.steps[index] for index in indices if index in outputs.steps]
        all_steps = steps if len(steps) == self.count else None
        found = self.kind(trees, self.references, self.unordered, all_steps, partial)
        if target.notation == LINES:
            del found.values[VALIDITY]  # a line of text is neither valid nor invalid
        return {"trees": found}

    def parts(self) -> dict[str, tuple[Sequence[int], Sequence[int]]]:
        return parts_of(self.references, self.args)

    def details(self, system: Mapping[str, Measure]) -> dict[str, Any]:
        return {"partial": system["trees"].partial}

    def notes(self, result: Mapping[str, Any]) -> list[str]:
        return [f"{result['partial']} outputs reached a limit and are partial"] if result["partial"] else []
