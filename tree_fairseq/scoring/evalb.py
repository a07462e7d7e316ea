"""Labelled brackets of constituency trees, compared by the rules of EVALB (Sekine & Collins 1997).

* Preterminals are tags, not brackets. Words whose tag is to be deleted (in ``COLLINS.prm``: punctuation and traces) are
  left out, then brackets without words. Brackets whose label is to be deleted (``TOP``) are left out, too.
* A label ends before its first ``-`` or ``=``; tags are compared as they are.
* Each bracket matches at most one bracket of the same span and an equivalent label.
* A bracket of the hypothesis crosses if it overlaps with one of the reference and neither contains the other.
* A hypothesis without words is *skipped*. One whose words are not those of the reference is an *error*. Neither kind
  counts in the figures.

These rules are those of EVALB's documentation. The output for EVALB's own sample is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from tree_fairseq.scoring.measures import Measure
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.tree import Forest

VALID, ERROR, SKIPPED = 0, 1, 2  # EVALB's "Stat."

_PAIRS = frozenset[frozenset]


@dataclass(frozen=True)
class Parameters:
    """EVALB's settings; the defaults are those of ``COLLINS.prm``."""

    labelled: bool = True
    deleted: frozenset[str] = frozenset({"TOP", "-NONE-", ",", ":", "``", "''", "."})
    equal_labels: _PAIRS = frozenset({frozenset({"ADVP", "PRT"})})
    equal_words: _PAIRS = frozenset()


@dataclass
class _Bracket:
    label: str
    start: int
    end: int = -1


@dataclass
class _Reduced:
    """The words and brackets that count, of a reference or a hypothesis."""

    tags: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    brackets: list[_Bracket] = field(default_factory=list)


def _reduce(forest: Forest, rules: Parameters) -> _Reduced:
    """Walks over the trees in preorder; a bracket on the stack is closed when its turn comes."""
    found = _Reduced()
    stack: list = [*reversed(forest)]
    while stack:
        node = stack.pop()
        if isinstance(node, _Bracket):
            node.end = len(found.words)
        elif not node.is_preterminal:
            label = node.label.partition("=")[0].partition("-")[0]
            if not any(_equal(label, name, rules.equal_labels) for name in rules.deleted):
                found.brackets.append(_Bracket(label, len(found.words)))
                stack.append(found.brackets[-1])
            stack.extend(reversed(node.children))
        elif node.label not in rules.deleted:
            found.tags.append(node.label)
            found.words.append(node.children[0].label)
    found.brackets = [bracket for bracket in found.brackets if bracket.start < bracket.end]
    return found


class SentenceScore(NamedTuple):
    """EVALB's figures of a sentence: its status and its counts."""

    status: int
    matched: int = 0
    gold: int = 0
    test: int = 0
    crossing: int = 0
    words: int = 0
    tags: int = 0


def _equal(left: str, right: str, pairs: _PAIRS) -> bool:
    return left == right or frozenset((left, right)) in pairs


def compare(reference: Forest, hypothesis: Forest | None, rules: Parameters) -> SentenceScore:
    """Compares two trees of a sentence; None stands for a hypothesis that cannot be read, which is an error."""
    gold = _reduce(reference, rules)
    if hypothesis is None:
        return SentenceScore(ERROR, words=len(gold.words))
    test = _reduce(hypothesis, rules)
    if not test.words:
        return SentenceScore(SKIPPED, words=len(gold.words))
    same_words = len(gold.words) == len(test.words) and all(
        _equal(ours, theirs, rules.equal_words) for ours, theirs in zip(gold.words, test.words)
    )
    if not same_words:
        return SentenceScore(ERROR, words=len(gold.words))
    return SentenceScore(
        VALID,
        matched=_matches(gold.brackets, test.brackets, rules),
        gold=len(gold.brackets),
        test=len(test.brackets),
        crossing=_crossings(gold.brackets, test.brackets),
        words=len(gold.words),
        tags=sum(_equal(ours, theirs, rules.equal_labels) for ours, theirs in zip(gold.tags, test.tags)),
    )


def _matches(wanted: Sequence[_Bracket], found: Sequence[_Bracket], rules: Parameters) -> int:
    """Counts brackets of the reference with a partner; each takes the first free one, in the order of opening."""
    free: dict[tuple[int, int], list[str]] = {}
    for bracket in found:
        free.setdefault((bracket.start, bracket.end), []).append(bracket.label)
    matched = 0
    for bracket in wanted:
        labels = free.get((bracket.start, bracket.end), [])
        for number, label in enumerate(labels):
            if not rules.labelled or _equal(bracket.label, label, rules.equal_labels):
                del labels[number]
                matched += 1
                break
    return matched


def _crossings(wanted: Sequence[_Bracket], found: Sequence[_Bracket]) -> int:
    gold = np.array([(bracket.start, bracket.end) for bracket in wanted]).reshape(-1, 1, 2)
    test = np.array([(bracket.start, bracket.end) for bracket in found]).reshape(1, -1, 2)
    (first, last), (start, end) = np.moveaxis(gold, -1, 0), np.moveaxis(test, -1, 0)
    before = (first < start) & (start < last) & (last < end)
    after = (start < first) & (first < end) & (end < last)
    return int((before | after).any(axis=0).sum())


COLUMNS = (
    *("sentences", "error_sentences", "skipped_sentences", "valid_sentences"),
    *("matched", "gold", "test", "complete", "crossing", "no_crossing", "two_crossing", "words", "tags"),
)
"""The counts of a sentence that are summed over sentences (:func:`counts`)."""


def counts(scores: Iterable[SentenceScore]) -> np.ndarray:
    """The counts of each sentence, ``[sentences, len(COLUMNS)]`` int64."""
    rows = []
    for score in scores:
        is_valid = score.status == VALID
        complete = score.matched == score.gold == score.test
        crossing = [score.crossing, score.crossing == 0, score.crossing <= 2]
        found = [score.matched, score.gold, score.test, complete, *crossing, score.words, score.tags]
        status = [1, score.status == ERROR, score.status == SKIPPED, is_valid]
        rows.append([*status, *(is_valid * count for count in found)])
    return np.array(rows, np.int64).reshape(-1, len(COLUMNS))


def figures(sums: np.ndarray) -> dict[str, np.ndarray]:
    """Computes EVALB's figures from sums of counts, ``[..., len(COLUMNS)]``; each figure is ``[...]`` float64.

    All are in percent but ``average_crossing``. F1 is 0 where EVALB prints ``nan``.
    """
    column = dict(zip(COLUMNS, np.moveaxis(np.asarray(sums, np.float64), -1, 0)))

    def share(part: np.ndarray, whole: np.ndarray, scale: float = 100) -> np.ndarray:
        return scale * np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)

    valid = column["valid_sentences"]
    return {
        "recall": share(column["matched"], column["gold"]),
        "precision": share(column["matched"], column["test"]),
        "f1": share(2 * column["matched"], column["gold"] + column["test"]),
        "complete_match": share(column["complete"], valid),
        "average_crossing": share(column["crossing"], valid, 1),
        "no_crossing": share(column["no_crossing"], valid),
        "two_or_less_crossing": share(column["two_crossing"], valid),
        "tagging_accuracy": share(column["tags"], column["words"]),
    }


class BracketMeasure(Measure):
    """EVALB's figures, and F1 without labels; None stands for a hypothesis that is not a tree."""

    def __init__(self, references: Sequence[Forest], hypotheses: Sequence[Forest | None]):
        rules = Parameters()
        rows = list(zip_equal(references, hypotheses))
        scores = [compare(gold, found, rules) for gold, found in rows]
        unlabelled = [compare(gold, found, replace(rules, labelled=False)) for gold, found in rows]
        self._counts = np.concatenate([counts(scores), counts(unlabelled)], axis=1)
        self._status = [score.status for score in scores]
        self.signatures = {"bracket_f1": f"EVALB's rules|deleted:{' '.join(sorted(rules.deleted))}|labelled:true"}

    @property
    def counts(self) -> np.ndarray:
        return self._counts

    @property
    def sentences(self) -> dict[str, int]:
        """The numbers of sentences that count, and of those that EVALB leaves out."""
        names = {"error": ERROR, "skipped": SKIPPED, "valid": VALID}
        return {name: self._status.count(status) for name, status in names.items()}

    def statistic(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        size = len(COLUMNS)
        labelled, unlabelled = figures(sums[..., :size]), figures(sums[..., size:])
        prefixed = {f"bracket_{name}": labelled.pop(name) for name in ("f1", "recall", "precision")}
        return {**prefixed, "unlabelled_bracket_f1": unlabelled["f1"], **labelled}
