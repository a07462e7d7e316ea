"""Labelled bracket F1: the validation score of Stanza's training, which otherwise needs a Java program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from types import SimpleNamespace

from tree_fairseq.trees.bracket import read_tree
from tree_fairseq.trees.tree import Tree


def brackets(tree: Tree) -> Counter[tuple[str, int, int]]:
    """Counts the labels and half-open spans of the constituents without preterminals and ROOT.

    Every constituent of a unary chain counts.
    """
    found: Counter[tuple[str, int, int]] = Counter()
    position = 0
    # A node is visited on the way down, for the start of its span, and on the way up, for the end.
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
    """Returns F1 over all (gold, predicted) trees together, from 0 to 1."""
    matched = gold_total = predicted_total = 0
    for gold, predicted in pairs:
        expected, given = brackets(gold), brackets(predicted)
        matched += sum((expected & given).values())
        gold_total += sum(expected.values())
        predicted_total += sum(given.values())
    return 2 * matched / (gold_total + predicted_total) if matched else 0.0


class PythonEvaluator:
    """Replaces ``stanza.server.parser_eval.EvaluateParser``: a context manager with ``process``."""

    def __init__(self, *arguments: object, **options: object):
        """Accepts the arguments of the Java evaluator (k-best sizes, class paths) and ignores them."""

    def __enter__(self) -> PythonEvaluator:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def process(self, results: Iterable[object]) -> SimpleNamespace:
        """Scores the parse results of Stanza.

        Args:
            results: objects with ``gold`` and ``predictions[0].tree``, trees of Stanza

        Returns:
            an object with ``f1``, ``treeF1`` (one for each sentence) and ``HasField``, which Stanza reads
        """
        pairs = [(read_tree(str(result.gold)), read_tree(str(result.predictions[0].tree))) for result in results]
        each = [score([pair]) for pair in pairs]
        return SimpleNamespace(f1=score(pairs), treeF1=each, HasField=lambda name: name in ("f1", "treeF1"))
