"""How well a system does on one sentence, so that two systems can be compared sentence by sentence.

Text has sentence BLEU (sacreBLEU), trees and classes match exactly or not, and numbers have an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable, Optional

from fairseq.data import Dictionary
from sacrebleu.metrics import BLEU

from tree_fairseq.classification.targets import NumberDictionary
from tree_fairseq.classification.task import ClassificationTask
from tree_fairseq.data_bin.symbol_dictionary import TreeDictionary
from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.trees.symbols import exact_matches
from tree_fairseq.trees.tree import Tree


@dataclass(frozen=True)
class SentenceMetric:
    """A metric of one sentence, greater if better.

    ``compare`` gets the output and the reference, each as text and as ids.
    """

    name: str
    compare: Callable[[str, Sequence[int], str, Sequence[int]], float]


MATCH = "exact match"
TEXT_MATCH = SentenceMetric(MATCH, lambda ours, _, theirs, __: 100.0 * (ours == theirs))
"""Whether the texts are the same: for trees that a sequence model writes symbol by symbol."""


def metric_of(task, dictionary: Dictionary) -> SentenceMetric:
    """The metric for the targets of a task, which ``dictionary`` writes."""
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

    return SentenceMetric("sentence BLEU", sentence_bleu)


def _tree(dictionary: TreeDictionary, ids: Sequence[int]) -> Optional[Tree]:
    try:
        return dictionary.tree(ids)
    except SymbolTreeError:
        return None
