"""Writes outputs and scores single sentences, so that two systems can be compared.

Text has sentence BLEU (sacreBLEU), trees and classes match exactly or not, and numbers have an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

from fairseq import utils
from fairseq.data import Dictionary
from fairseq.tasks.translation import TranslationTask
from sacrebleu.metrics import BLEU

from tree_fairseq.classification.folder import NumberDictionary
from tree_fairseq.classification.task import ClassificationTask
from tree_fairseq.data_bin.manifest import MANIFEST_NAME, Manifest
from tree_fairseq.data_bin.symbol_dictionary import TreeDictionary
from tree_fairseq.drawing.views import tree_record
from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.source_code.language import Language
from tree_fairseq.source_code.spelling import SpelledNotation
from tree_fairseq.tasks.sides import symbol_dictionary
from tree_fairseq.trees.symbols import exact_matches
from tree_fairseq.trees.tree import Tree


@dataclass(frozen=True)
class SentenceMetric:
    """A metric of one sentence, greater if better."""

    name: str
    # gets the output and the reference, each as text and as ids
    compare: Callable[[str, Sequence[int], str, Sequence[int]], float]
    is_of_text: bool = False  # whether both are text of a language, with subwords to join


MATCH = "exact match"
TEXT_MATCH = SentenceMetric(MATCH, lambda ours, _, theirs, __: 100.0 * (ours == theirs))
"""Compares texts, for trees that a sequence model writes symbol by symbol."""


def target_dictionary(task) -> Dictionary:
    """Returns the dictionary of targets; it writes trees where a stock task reads the symbols of a tree folder."""
    dictionary = task.target_dictionary
    if isinstance(task, TranslationTask) and not isinstance(dictionary, TreeDictionary):
        folder = Path(utils.split_paths(task.cfg.data)[0])
        manifest = Manifest.load(folder) if (folder / MANIFEST_NAME).exists() else None
        if manifest is not None and task.cfg.target_lang in manifest.symbols:
            return symbol_dictionary(manifest.symbols[task.cfg.target_lang], dictionary, folder)
    return dictionary


def metric_of(task, dictionary: Dictionary) -> SentenceMetric:
    """Returns the metric for the targets of a task, which ``dictionary`` writes."""
    if isinstance(dictionary, NumberDictionary):
        return SentenceMetric("minus the absolute error", lambda ours, _, theirs, __: -abs(float(ours) - float(theirs)))
    if isinstance(task, ClassificationTask):
        return SentenceMetric("right class", lambda ours, _, theirs, __: 100.0 * (ours == theirs))
    if isinstance(dictionary, TreeDictionary):
        unordered = (getattr(task.cfg, "eval_unordered", None) or "").split()

        def match(_: str, ours: Sequence[int], __: str, theirs: Sequence[int]) -> float:
            reference = _tree(dictionary, theirs)
            return 100.0 * (
                reference is not None and exact_matches([_tree(dictionary, ours)], [reference], unordered)[0]
            )

        return SentenceMetric(MATCH, match)
    bleu = BLEU(effective_order=True)

    def sentence_bleu(ours: str, _: Sequence[int], theirs: str, __: Sequence[int]) -> float:
        return round(bleu.sentence_score(ours, [theirs]).score, 2)

    return SentenceMetric("sentence BLEU", sentence_bleu, is_of_text=True)


def written_tree(dictionary: Dictionary, ids: Sequence[int]) -> Optional[dict[str, Any]]:
    """Returns the tree that ids are, and whether it ``is_program``; None if they are no tree."""
    tree = _tree(dictionary, ids) if isinstance(dictionary, TreeDictionary) else None
    if tree is None:
        return None
    return {**tree_record((tree,)), "is_program": isinstance(dictionary.notation, (Language, SpelledNotation))}


def _tree(dictionary: TreeDictionary, ids: Sequence[int]) -> Optional[Tree]:
    try:
        return dictionary.tree(ids)
    except SymbolTreeError:
        return None
