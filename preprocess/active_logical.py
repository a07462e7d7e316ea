"""Active sentences and logical forms, tree to tree (Soulos et al. 2023).

Every line is a JSON object with two bracketed trees,
``{"source": "( S ( NP ... ) ( VP ... ) )", "target": "( LF ( V ... ) ( ARGS ... ) )"}``. The root of the source shows
the direction of the line. The nouns and adjectives of ``test1`` do not occur in training. ``test2``, which is made
here, has pairs of ``test`` whose nouns have one to six further adjectives each, so that its trees are deeper.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

from preprocess.corpora import CorpusError, Pair, clean_line, raw_lines
from preprocess.logical_forms import Example, Splits
from tree_fairseq.errors import InputError
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

FILES = {"train": "train.json", "valid": "validation.json", "test": "test.json", "test1": "ood_new.json"}
ROOTS = {"active": "S", "logical": "LF"}
DIRECTIONS = ("both", "active-logical", "logical-active")
NOTATION = "bracket"
MOST_ADJECTIVES = 6
"""That a noun of ``test2`` gets, in addition to its own."""


def read_pair(line: str) -> Pair:
    """Returns both trees of a line as they are written there."""
    try:
        value = json.loads(line)
    except ValueError as error:
        raise CorpusError(f"not JSON ({error})") from error
    sides = [value.get(name) if isinstance(value, dict) else None for name in ("source", "target")]
    if not all(isinstance(side, str) and clean_line(side) for side in sides):
        raise CorpusError('a line is {"source": tree, "target": tree}')
    return clean_line(sides[0]), clean_line(sides[1])


def directed(pair: Pair, direction: str) -> Pair:
    """Returns the pair in the given direction; ``both`` leaves it as it is."""
    roots = [notation_named(NOTATION).read(side).label for side in pair]
    if sorted(roots) != sorted(ROOTS.values()):
        raise CorpusError(f"a tree with root S and one with root LF are expected, not {roots[0]} and {roots[1]}")
    if direction == "both" or roots[0] == ROOTS[direction.partition("-")[0]]:
        return pair
    return pair[1], pair[0]


def deepen(pair: Pair, adjectives: Sequence[str], more: int, generator: random.Random) -> Pair:
    """Returns a pair with ``more`` further adjectives at every noun, the same on both sides; each is a level."""
    handle = notation_named(NOTATION)
    trees = [handle.read(side) for side in pair]
    phrases: dict[Tree, Tree] = {}
    for phrase in trees[0].subtrees("NP"):
        if phrase not in phrases:
            *before, words = phrase.children
            for adjective in generator.choices(adjectives, k=more):
                words = Tree("AP", [Tree("ADJ", [Tree(adjective)]), words])
            phrases[phrase] = Tree("NP", [*before, words])
    deeper = [tree.fold(lambda node, below: phrases.get(node, Tree(node.label, below))) for tree in trees]
    return handle.write(deeper[0]), handle.write(deeper[1])


def deeper_examples(train: Sequence[Example], test: Sequence[Example], size: int, seed: int = 1) -> list[Example]:
    """Returns the first ``size`` examples of ``test`` with one to ``MOST_ADJECTIVES`` further adjectives, their groups.

    Adjectives are those of training. Raises CorpusError if ``test`` is smaller.
    """
    if not 0 < size <= len(test):
        raise CorpusError(f"{size} deeper pairs cannot be made of {len(test)}")
    handle, generator = notation_named(NOTATION), random.Random(seed)
    trees = (handle.read(example.source) for example in train)
    adjectives = sorted({word for tree in trees for node in tree.subtrees("ADJ") for word in node.leaves()})
    return [
        Example(*deepen(example.pair, adjectives, more, generator), (f"{more}_more_adjectives",))
        for example, more in zip(test[:size], cycle(range(1, MOST_ADJECTIVES + 1)))
    ]


def load(data: Path, direction: str = "both", deeper: int | None = None) -> Splits:
    """Reads the splits of a folder.

    Args:
        direction: ``both`` keeps the published mixture of directions; the others turn every line into one direction
        deeper: size of ``test2``; None makes no ``test2``
    """
    splits: Splits = {}
    for split, name in FILES.items():
        splits[split] = []
        for number, line in enumerate(raw_lines(data / name), 1):
            try:
                splits[split].append(Example(*directed(read_pair(line), direction)))
            except (CorpusError, InputError) as error:
                raise CorpusError(f"{data / name}:{number}: {error}") from error
    if deeper is not None:
        splits["test2"] = deeper_examples(splits["train"], splits["test"], deeper)
    return splits
