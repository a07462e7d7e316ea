"""Writes an English-German corpus from the grammar: ``python -m preprocess.english_german --out DIR``.

Every split (train, valid, test) has three files with the same number of lines: ``SPLIT.en`` and ``SPLIT.de`` contain
the tokens, ``SPLIT.en.trees`` the gold tree of the English line. No English line occurs twice in all splits. The same
arguments write the same bytes.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from preprocess.corpora import write_columns
from preprocess.english_german import english, german
from preprocess.english_german.sampler import Sampler
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.tree import Tree


def pairs(seed: int, max_length: int = 24) -> Iterator[tuple[Tree, str]]:
    """Yields English trees and German sentences without end; no English sentence occurs twice.

    Args:
        max_length: longest sentence of either language, in tokens; longer ones are drawn again
    """
    sampler = Sampler(random.Random(seed))
    seen: set[str] = set()
    while True:
        derivation = sampler.sentence()
        tree, words = english.sentence(derivation), german.sentence(derivation)
        leaves = tree.leaves()
        line = " ".join(leaves)
        if line in seen or max(len(leaves), len(words)) > max_length:
            continue
        seen.add(line)
        yield tree, " ".join(words)


def write_split(out: Path, split: str, drawn: Iterator[tuple[Tree, str]]) -> int:
    """Writes one split; returns its number of lines."""
    rows = ((" ".join(tree.leaves()), sentence, write_forest((tree,))) for tree, sentence in drawn)
    return write_columns(out / split, ("en", "de", "en.trees"), rows)


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m preprocess.english_german",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--train", type=int, default=20000, help="pairs to train on (default %(default)s)")
    parser.add_argument("--valid", type=int, default=500, help="pairs to validate on (default %(default)s)")
    parser.add_argument("--test", type=int, default=500, help="pairs to test on (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of random draws (default %(default)s)")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    drawn = pairs(options.seed)
    for split in ("train", "valid", "test"):
        count = write_split(options.out, split, islice(drawn, getattr(options, split)))
        print(f"{options.out / split}.en, .de, .en.trees: {count} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
