"""Control trees of an experiment, which follow from the number of words alone, or from chance; and degraded parses."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from typing import Any

from tree_fairseq.parsing.parsers import ParserOptions, flat_tree, register_parser
from tree_fairseq.trees.transforms import reattach
from tree_fairseq.trees.tree import Forest, Tree, binary_tree, forest_leaves

# The label of every phrase and the tag of every word.
_LABEL = "X"
_VERSION = 1


def _generator(*key: Any) -> random.Random:
    """Chance that depends on a key alone, not on other sentences or on processes."""
    return random.Random(hashlib.sha256(json.dumps(key).encode()).digest())


def degrade(forest: Forest, share: float) -> Forest:
    """Attaches a share of the constituents of each tree elsewhere (`tree_fairseq.trees.transforms.reattach`).

    The words of a tree decide which. A share of 0 changes nothing.
    """
    if not share:
        return forest
    return tuple(reattach(tree, share, _generator("noise", 0, forest_leaves((tree,)))) for tree in forest)


class ControlParser:
    """Builds binary trees over the words, with the same label everywhere.

    ``split`` returns how many words of a span go to the left child, given the width of the span (at least 2) and the
    random generator of the sentence, which depends on its words alone.
    """

    def __init__(self, name: str, split: Callable[[int, random.Random], int]):
        self._name = name
        self._split = split

    def identity(self) -> dict[str, Any]:
        return {"name": self._name, "version": _VERSION, "seed": 0}

    def inventory(self) -> list[str]:
        return [_LABEL]

    tags = inventory

    def parse(self, sentences: list[list[str]]) -> list[Tree]:
        return [self._parse_one(words) for words in sentences]

    def _parse_one(self, words: list[str]) -> Tree:
        generator = _generator(0, words)
        return binary_tree(words, lambda start, end: start + self._split(end - start, generator), _LABEL)


@register_parser("right-branching", expensive=False)
def right_branching(options: ParserOptions) -> ControlParser:
    """``(X a (X b (X c d)))``: every phrase is a word and the rest."""
    return ControlParser("right-branching", lambda width, generator: 1)


@register_parser("balanced", expensive=False)
def balanced(options: ParserOptions) -> ControlParser:
    """Cuts every phrase in the middle; the left part of an odd number has one word more."""
    return ControlParser("balanced", lambda width, generator: (width + 1) // 2)


@register_parser("random", expensive=False)
def random_trees(options: ParserOptions) -> ControlParser:
    """Cuts every phrase at a place drawn at random, all places alike; the words of the sentence decide."""
    return ControlParser("random", lambda width, generator: generator.randrange(1, width))


class FlatParser:
    """Gives every sentence the tree of one that could not be parsed: a phrase over all words."""

    def identity(self) -> dict[str, Any]:
        return {"name": "flat", "version": _VERSION}

    def inventory(self) -> list[str]:
        """Names no labels: all text can have those of flat trees."""
        return []

    def parse(self, sentences: list[list[str]]) -> list[Tree]:
        return [flat_tree(words) for words in sentences]


@register_parser("flat", expensive=False)
def flat(options: ParserOptions) -> FlatParser:
    """``(FRAG (XX a) (XX b) (XX c))``: no structure, for models that were trained with dropped trees."""
    return FlatParser()
