"""Labelled bracket F1, the dev score that Stanza's training otherwise asks a Java program for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from types import SimpleNamespace

from tree_fairseq.trees.bracket import read_tree
from tree_fairseq.trees.tree import Tree


def brackets(tree: Tree) -> Counter[tuple[str, int, int]]:
    """Labels and half-open spans of the constituents, preterminals and ROOT left out, unary chains counted each."""
    found: Counter[tuple[str, int, int]] = Counter()
    position = 0
    # Spans need the number of leaves before a node and under it: one walk down for the starts, back up for the ends.
    stack: list[tuple[Tree, int | None]] = [(tree, None)]
    while stack:
        node, start = stack.pop()
        if start is not None:
            found[node.label, start, position] += 1
        elif node.is_leaf:
            position += 1
        else:
            if not node.is_preterminal and node.label != "ROOT":
                stack.append((node, position))
            stack.extend((child, None) for child in reversed(node.children))
    return found


def score(pairs: Iterable[tuple[Tree, Tree]]) -> float:
    """F1 over all (gold, predicted) trees together, from 0 to 1; 0 where nothing is predicted."""
    matched = gold_total = predicted_total = 0
    for gold, predicted in pairs:
        expected, given = brackets(gold), brackets(predicted)
        matched += sum((expected & given).values())
        gold_total += sum(expected.values())
        predicted_total += sum(given.values())
    return 2 * matched / (gold_total + predicted_total) if matched else 0.0


class PythonEvaluator:
    """Takes the place of ``stanza.server.parser_eval.EvaluateParser``: a context manager with ``process``."""

    def __init__(self, *arguments: object, **options: object):
        """Accept what the Java evaluator is given (k-best sizes, class paths) and need none of it."""

    def __enter__(self) -> PythonEvaluator:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def process(self, results: Iterable[object]) -> SimpleNamespace:
        """Score Stanza's parse results.

        Args:
            results: objects with ``gold`` and ``predictions[0].tree``, trees of Stanza's.

        Returns:
            An object with ``f1``, ``treeF1`` (one a sentence) and ``HasField``, as Stanza reads them.
        """
        pairs = [(read_tree(str(result.gold)), read_tree(str(result.predictions[0].tree))) for result in results]
        each = [score([pair]) for pair in pairs]
        return SimpleNamespace(f1=score(pairs), treeF1=each, HasField=lambda name: name in ("f1", "treeF1"))
