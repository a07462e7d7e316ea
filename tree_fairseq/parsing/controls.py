"""Trees that know nothing of the sentence: the controls of an experiment."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from typing import Any

from tree_fairseq.parsing.parsers import ParserOptions, register_parser
from tree_fairseq.trees.tree import Tree, binary_tree

CONTROL_LABEL = "X"
"""Label of every phrase of a control tree, and tag of every word."""

_VERSION = 1


class ControlParser:
    """Binary trees over the words, all labels alike.

    Args:
        name: the registered name.
        split: for a span of ``width`` words (at least 2), how many go to the left child; called with the width and the sentence's own generator.
        seed: chooses the sentence's generator together with its words, so a sentence has the same tree wherever it stands.
    """

    def __init__(self, name: str, split: Callable[[int, random.Random], int], seed: int = 0):
        self._name = name
        self._split = split
        self._seed = seed

    def identity(self) -> dict[str, Any]:
        """See `ConstituencyParser.identity`."""
        return {"name": self._name, "version": _VERSION, "seed": self._seed}

    def inventory(self) -> list[str]:
        """See `ConstituencyParser.inventory`."""
        return [CONTROL_LABEL]

    def tags(self) -> list[str]:
        """The labels of words."""
        return [CONTROL_LABEL]

    def parse(self, sentences: list[list[str]]) -> list[Tree | None]:
        """See `ConstituencyParser.parse`; it never fails on a sentence that has words."""
        return [self._parse_one(words) if words else None for words in sentences]

    def _parse_one(self, words: list[str]) -> Tree:
        digest = hashlib.sha256(json.dumps([self._seed, words]).encode()).digest()
        generator = random.Random(digest)
        return binary_tree(words, lambda start, end: start + self._split(end - start, generator), CONTROL_LABEL)


@register_parser("right-branching", expensive=False)
def right_branching(options: ParserOptions) -> ControlParser:
    """``(X a (X b (X c d)))``: every phrase is a word and the rest."""
    return ControlParser("right-branching", lambda width, generator: 1)


@register_parser("balanced", expensive=False)
def balanced(options: ParserOptions) -> ControlParser:
    """Every phrase is cut in the middle; of an odd number the left part has one more."""
    return ControlParser("balanced", lambda width, generator: (width + 1) // 2)


@register_parser("random", expensive=False)
def random_trees(options: ParserOptions) -> ControlParser:
    """Every phrase is cut anywhere, each place as likely as any other; ``--tree-seed`` draws other trees."""
    return ControlParser("random", lambda width, generator: generator.randrange(1, width), options.seed)
