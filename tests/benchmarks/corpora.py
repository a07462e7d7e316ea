"""Generates parallel text to preprocess and sentences to parse."""

from __future__ import annotations

import contextlib
import random
import shutil
from itertools import accumulate, islice
from pathlib import Path

from preprocess.english_german.__main__ import pairs
from tests.benchmarks.random_trees import bracketed

# Of more lines than these the others are the same with other words, which takes less time.
DISTINCT = 100_000


class ParallelText:
    """Random pairs of lines with trees of the source; frequencies of words are as uneven as in a language.

    Lines have between two thirds and four thirds of ``leaves`` words. ``folder`` gets ``trees.en`` and ``trees.de``,
    with a bracketed source, and ``leaves.en`` and ``leaves.de``.
    """

    def __init__(self, folder: Path, lines: int, leaves: int, nodes: int, vocabulary: int = 20_000):
        generator = random.Random(0)
        weights = list(accumulate(1 / (rank + 3) for rank in range(vocabulary)))
        words = [f"w{rank}" for rank in range(vocabulary)]
        self.trees, self.leaves, self.lines = folder / "trees", folder / "leaves", lines
        paths = [f"{self.leaves}.en", f"{self.trees}.en", f"{self.leaves}.de"]
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(open(path, "w", encoding="utf-8")) for path in paths]
            for _ in range(min(lines, DISTINCT)):
                length = generator.randint(leaves - leaves // 3, leaves + leaves // 3)
                sentence = generator.choices(words, cum_weights=weights, k=length)
                tree = bracketed(generator, sentence, max(1, length * nodes // leaves))
                target = generator.choices(words, cum_weights=weights, k=length)
                for file, line in zip(files, (" ".join(sentence), tree, " ".join(target))):
                    file.write(f"{line}\n")
            for file, path in zip(files, paths):
                file.flush()
                for first in range(DISTINCT, lines, DISTINCT):
                    # Other words of the same vocabulary: their first digit may be any, or 1 in the longest.
                    digits = "".join(random.Random(first).sample("23456789", 8))
                    with open(path, encoding="utf-8") as written:
                        for line in islice(written, min(DISTINCT, lines - first)):
                            file.write(line.translate(str.maketrans("23456789", digits)))
        shutil.copyfile(f"{self.leaves}.de", f"{self.trees}.de")


def english_sentences(count: int) -> list[str]:
    """Returns sentences of the grammar that the bundled parser was trained on, from another seed."""
    drawn = pairs(seed=1000, max_length=40)
    return [" ".join(next(drawn)[0].leaves()) for _ in range(count)]


def write_lines(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
