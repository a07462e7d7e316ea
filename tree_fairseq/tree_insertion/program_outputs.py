"""Outputs that are no programs of the target's language, or do not run on a schema, become the nearest programs."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable

import torch

from tree_fairseq.errors import DataFolderError
from tree_fairseq.source_code.complete_programs import is_bound, is_program, load_schema, report_queries_that_do_not_run
from tree_fairseq.source_code.field_types import FieldTypes
from tree_fairseq.source_code.language import Language
from tree_fairseq.source_code.nearest_program import NearestProgram
from tree_fairseq.tasks import INVALID
from tree_fairseq.tree_insertion import NEAREST
from tree_fairseq.tree_insertion.dictionary import NUMBER_MARK, InsertionDictionary, label_of
from tree_fairseq.tree_insertion.target import TargetTree
from tree_fairseq.trees.symbols import UNKNOWN_LABEL
from tree_fairseq.trees.text import escape_label
from tree_fairseq.trees.tree import Tree

_READ = 20_000  # training programs whose fields and labels are known


class ProgramOutputs:
    """Makes programs of the hypotheses of a task; raises DataFolderError if its targets are no programs.

    The fields and labels of outputs are those of the training ``programs``. Outputs run on the ``schema`` of a file, if
    there is one.
    """

    def __init__(self, dictionary: InsertionDictionary, programs: Iterable[Tree], schema: str | None):
        language = dictionary.notation
        if not isinstance(language, Language):
            raise DataFolderError("--grammar language needs programs as targets, such as --target-notation sql")
        tables = load_schema(schema, language)
        self.dictionary = dictionary
        known = list(itertools.islice(programs, _READ))
        counts = Counter(node.label for tree in known for node in tree.preorder())
        labels = [label for label, _ in counts.most_common() if label != UNKNOWN_LABEL]
        self.nearest = NearestProgram(language, FieldTypes.of_trees(known), labels, tables)
        if tables is not None:
            report_queries_that_do_not_run(known, language, tables)
        self._find = functools.lru_cache(maxsize=10_000)(self.nearest.find)  # models repeat their faults

    def complete(self, hypothesis: dict, tree: Tree | None) -> list[str]:
        """Replaces the output of a hypothesis by the nearest program, and returns its marks.

        ``tree`` is that of the output, None if it is no tree. Programs stay, and so does what has none near it.
        """
        language, schema = self.nearest.language, self.nearest.schema
        if tree is not None and is_program(tree, language, schema) and (schema is None or is_bound(tree, schema)):
            return []
        dictionary = self.dictionary
        ids = dictionary.kept(hypothesis["tokens"].tolist())
        found = self._find(
            tuple(label_of(dictionary[index]) for index in ids if index < dictionary.open and index != dictionary.root)
        )
        if found is None:
            return [INVALID]
        target = TargetTree.of(found)
        # Numbers tell equal labels apart for models alone.
        words = [f"{escape_label(label)}{NUMBER_MARK}1" for label in target.labels[1:]]
        tokens = dictionary.sequence([dictionary.root, *map(dictionary.index, words)], target.parents)
        hypothesis |= {"tokens": tokens, "positional_scores": torch.zeros(len(tokens)), "is_complete": True}
        return [NEAREST]
