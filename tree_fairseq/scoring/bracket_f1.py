"""Unlabelled F1 of spans, as the literature on unsupervised parsing reports it.

A tree counts as the set of its constituents' spans, without labels and repetitions (unary chains), and without spans of
a single word and of the whole sentence, which every tree has. Punctuation counts like words. Sentences of one word are
left out. There are two means, as in Kim, Dyer & Rush (2019), who remove punctuation:

- sentence: the mean of the sentences' own F1. If the gold tree has no span left, recall is 1, and precision is 1 if the
  other tree has no span either.
- corpus: F1 of all spans of all sentences together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tree_fairseq.errors import ScoringError
from tree_fairseq.parsing.parsers import ControlParser, ParserOptions, balanced, random_trees, right_branching
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.spans import encode
from tree_fairseq.trees.tree import Forest, binarize, forest_leaves


@dataclass(frozen=True)
class BracketF1:
    """F1 in percent, as a mean over sentences and of all spans together, and the number of compared sentences."""

    sentence: float
    corpus: float
    sentences: int


def inner_spans(forest: Forest) -> set[tuple[int, int]]:
    """Returns the spans ``[start, end)`` of constituents that cover more than one word and less than the sentence."""
    spans = encode(forest)
    found = {(int(start), int(end)) for start, end, _ in spans.spans if end - start > 1}
    return found - {(0, len(spans.leaves))}


def f1(common: int, total: int) -> float:
    """Computes F1 in percent from the number of common spans and of all spans of both trees."""
    return 200 * common / total if total else 100.0


def bracket_f1(pairs: Iterable[tuple[Forest, Forest]]) -> BracketF1:
    """Compares gold and other trees. Raises ScoringError if numbers of words differ or no sentence has two words."""
    counts = []
    for number, (gold_forest, forest) in enumerate(pairs, 1):
        size, other_size = len(forest_leaves(gold_forest)), len(forest_leaves(forest))
        if size != other_size:
            raise ScoringError(f"sentence {number}: {other_size} words, but {size} in the gold tree")
        if size > 1:
            gold, found = inner_spans(gold_forest), inner_spans(forest)
            counts.append((len(gold & found), len(gold) + len(found)))
    if not counts:
        raise ScoringError("no sentence has two words or more")
    return BracketF1(sum(f1(*count) for count in counts) / len(counts), f1(*map(sum, zip(*counts))), len(counts))


def compare(gold: Sequence[Forest], found: Sequence[Forest | None]) -> dict[str, BracketF1]:
    """Returns F1 of induced trees, of controls that ignore the words, and the best F1 that binary trees can reach.

    A sentence without an induced tree (None) is left out everywhere.
    """
    kept = [(forest, own) for forest, own in zip_equal(gold, found) if own is not None]

    def control(parser: ControlParser) -> list[tuple[Forest, Forest]]:
        sentences = [(forest, forest_leaves(forest)) for forest, _ in kept]
        return [(forest, tuple(parser.parse([words])) if words else ()) for forest, words in sentences]

    options = ParserOptions(name="random")
    return {
        "induced": bracket_f1(kept),
        "right-branching": bracket_f1(control(right_branching(options))),
        "left-branching": bracket_f1(control(ControlParser("left-branching", lambda width, generator: width - 1))),
        "balanced": bracket_f1(control(balanced(options))),
        "random": bracket_f1(control(random_trees(options))),
        "gold, binary": bracket_f1((forest, tuple(map(binarize, forest))) for forest, _ in kept),
    }


def table(scores: dict[str, BracketF1]) -> str:
    """Formats the scores as a table."""
    sentences = next(iter(scores.values())).sentences
    return "\n".join([
        f"unlabelled F1 of spans over {sentences} sentences of two words or more; punctuation is kept",
        "trees            sentence  corpus",
        *(f"{name:<15}  {score.sentence:8.2f}  {score.corpus:6.2f}" for name, score in scores.items()),
    ])  # fmt: skip
