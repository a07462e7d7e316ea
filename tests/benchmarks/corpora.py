"""Generates parallel text to preprocess and sentences to parse."""

from __future__ import annotations

import random
from itertools import accumulate
from pathlib import Path

from preprocess.english_german.__main__ import pairs
from tests.benchmarks.random_trees import bracketed


class ParallelText:
    """Random pairs of lines with trees of the source; frequencies of words are as uneven as in a language.

    Lines have between two thirds and four thirds of ``leaves`` words.

    Args:
        folder: gets ``trees.en`` and ``trees.de``, with a bracketed source, and ``leaves.en`` and ``leaves.de``
        lines: number of pairs
        leaves: mean number of words in a line
        nodes: mean number of nodes with two leaves or more in a line
        vocabulary: number of different words
    """

    def __init__(self, folder: Path, lines: int, leaves: int, nodes: int, vocabulary: int = 20_000):
        generator = random.Random(0)
        weights = list(accumulate(1 / (rank + 3) for rank in range(vocabulary)))
        words = [f"w{rank}" for rank in range(vocabulary)]
        source, trees, target = [], [], []
        for _ in range(lines):
            length = generator.randint(leaves - leaves // 3, leaves + leaves // 3)
            sentence = generator.choices(words, cum_weights=weights, k=length)
            source.append(" ".join(sentence))
            trees.append(bracketed(generator, sentence, max(1, length * nodes // leaves)))
            target.append(" ".join(generator.choices(words, cum_weights=weights, k=length)))
        self.trees, self.leaves, self.lines = folder / "trees", folder / "leaves", lines
        for prefix, english in ((self.trees, trees), (self.leaves, source)):
            write_lines(Path(f"{prefix}.en"), english)
            write_lines(Path(f"{prefix}.de"), target)


def english_sentences(count: int) -> list[str]:
    """Returns sentences of the grammar that the bundled parser was trained on, from another seed."""
    drawn = pairs(seed=1000, max_length=40)
    return [" ".join(next(drawn)[0].leaves()) for _ in range(count)]


def write_lines(path: Path, lines: list[str]) -> None:
    """Writes a text file."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
