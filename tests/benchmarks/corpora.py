"""Parallel text to preprocess and sentences to parse, generated anew from a seed."""

from __future__ import annotations

import random
from itertools import accumulate
from pathlib import Path

from preprocess.english_german.__main__ import pairs
from tests.benchmarks.random_trees import bracketed


class ParallelText:
    """Random pairs whose words are as unevenly frequent as in a language, with trees of the source.

    Lines have ``leaves`` words more or less: some have a third fewer, some a third more.

    Args:
        folder: to write ``trees.en`` and ``trees.de`` (source bracketed) and ``leaves.en`` and ``leaves.de`` into
        lines: how many pairs
        leaves: words of a line on average
        nodes: nodes of two leaves or more of a line on average
        vocabulary: different words
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
    """Different sentences of the grammar that the bundled parser was trained on, none of its training sentences'
    seed.
    """
    drawn = pairs(seed=1000, max_length=40)
    return [" ".join(next(drawn)[0].leaves()) for _ in range(count)]


def write_lines(path: Path, lines: list[str]) -> None:
    """Writes a text file."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
