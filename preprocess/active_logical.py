"""Active sentences and logical forms, tree to tree (Soulos et al. 2023): one JSON object a line, its sides bracketed trees.

``{"source": "( S ( NP ... ) ( VP ... ) )", "target": "( LF ( V ... ) ( ARGS ... ) )"}``, in either direction: which one a
line asks for is told by the root of its source. ``test1`` is the set whose nouns and adjectives training does not have.
"""

from __future__ import annotations

import json
from pathlib import Path

from preprocess.corpora import CorpusError, Pair, clean_line
from preprocess.logical_forms import Example, Splits, raw_lines
from tree_fairseq.errors import InputError
from tree_fairseq.trees.notations import notation_named

FILES = {"train": "train.json", "valid": "validation.json", "test": "test.json", "test1": "ood_new.json"}
ROOTS = {"active": "S", "logical": "LF"}
DIRECTIONS = ("both", "active-logical", "logical-active")
NOTATION = "bracket"


def read_pair(line: str) -> Pair:
    """Both trees of a line, as they stand in it. Raises CorpusError where it is no object with two strings."""
    try:
        value = json.loads(line)
    except ValueError as error:
        raise CorpusError(f"not JSON ({error})") from error
    sides = [value.get(name) if isinstance(value, dict) else None for name in ("source", "target")]
    if not all(isinstance(side, str) and clean_line(side) for side in sides):
        raise CorpusError('a line is {"source": tree, "target": tree}')
    return clean_line(sides[0]), clean_line(sides[1])


def directed(pair: Pair, direction: str) -> Pair:
    """The pair in the direction asked for; with ``both``, as it is.

    Raises:
        CorpusError: it is no sentence and logical form
        SymbolTreeError: a side is no tree
    """
    roots = [notation_named(NOTATION).read(side).label for side in pair]
    if sorted(roots) != sorted(ROOTS.values()):
        raise CorpusError(f"a tree with root S and one with root LF are expected, not {roots[0]} and {roots[1]}")
    if direction == "both" or roots[0] == ROOTS[direction.partition("-")[0]]:
        return pair
    return pair[1], pair[0]


def load(data: Path, direction: str = "both") -> Splits:
    """The splits of a folder.

    Args:
        direction: ``both``, as published: some lines ask for the logical form, some for the sentence; else all are turned

    Raises:
        CorpusError: a file is missing or malformed
    """
    splits: Splits = {}
    for split, name in FILES.items():
        splits[split] = []
        for number, line in enumerate(raw_lines(data / name), 1):
            try:
                splits[split].append(Example(*directed(read_pair(line), direction)))
            except (CorpusError, InputError) as error:
                raise CorpusError(f"{data / name}:{number}: {error}") from error
    return splits
