"""Active sentences and logical forms, tree to tree (Soulos et al. 2023).

Every line is a JSON object with two bracketed trees,
``{"source": "( S ( NP ... ) ( VP ... ) )", "target": "( LF ( V ... ) ( ARGS ... ) )"}``. The root of the source shows
the direction of the line. The nouns and adjectives of ``test1`` do not occur in training.
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
    """Returns both trees of a line as they are written there.

    Raises:
        CorpusError: the line is not a JSON object with two strings
    """
    try:
        value = json.loads(line)
    except ValueError as error:
        raise CorpusError(f"not JSON ({error})") from error
    sides = [value.get(name) if isinstance(value, dict) else None for name in ("source", "target")]
    if not all(isinstance(side, str) and clean_line(side) for side in sides):
        raise CorpusError('a line is {"source": tree, "target": tree}')
    return clean_line(sides[0]), clean_line(sides[1])


def directed(pair: Pair, direction: str) -> Pair:
    """Returns the pair in the given direction; ``both`` leaves it as it is.

    Raises:
        CorpusError: the pair does not consist of a sentence and a logical form
        SymbolTreeError: a side is not a tree
    """
    roots = [notation_named(NOTATION).read(side).label for side in pair]
    if sorted(roots) != sorted(ROOTS.values()):
        raise CorpusError(f"a tree with root S and one with root LF are expected, not {roots[0]} and {roots[1]}")
    if direction == "both" or roots[0] == ROOTS[direction.partition("-")[0]]:
        return pair
    return pair[1], pair[0]


def load(data: Path, direction: str = "both") -> Splits:
    """Reads the splits of a folder.

    Args:
        direction: ``both`` keeps the published mixture of directions; the others turn every line into one direction

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
