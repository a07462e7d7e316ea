"""Fills training, validation and test set with distinct random programs.

A *program* is a tuple of lines, one for each file of a split. The first two are its trees in both languages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from preprocess.corpora import CorpusError, write_columns

Program = tuple[str, ...]
SPLITS = ("test", "valid", "train")
"""The order in which the splits are filled: the size of train does not change the other two."""

PATIENCE = 50
"""Drawing stops after this number of chunks without a new program."""


def chunks(draw: Callable[[int], list[Program]], workers: int) -> Iterator[list[Program]]:
    """Yields ``draw(0)``, ``draw(1)`` and so on without end, in this order, computed by ``workers`` processes.

    Args:
        draw: returns a chunk; more than one process needs a function that can be pickled
    """
    if workers <= 1:
        yield from map(draw, count())
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        numbers = count()
        waiting = deque(pool.submit(draw, next(numbers)) for _ in range(2 * workers))
        try:
            while True:
                yield waiting.popleft().result()
                waiting.append(pool.submit(draw, next(numbers)))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def fill(
    sizes: Mapping[str, int], drawn: Iterable[list[Program]], given: Mapping[str, list[Program]] | None = None
) -> dict[str, list[Program]]:
    """Returns the programs of every split.

    Args:
        sizes: number of programs of each split
        drawn: chunks of programs, without end
        given: the programs of splits that are not drawn; their number may differ from ``sizes``
    """
    given = given or {}
    splits = {split: list(given.get(split, ())) for split in SPLITS}
    missing = [split for split in SPLITS if split not in given and sizes[split] > 0]
    seen = {tree for programs in splits.values() for program in programs for tree in program[:2]}
    programs = _distinct(drawn, seen)
    for split in missing:
        while len(splits[split]) < sizes[split]:
            program = next(programs, None)
            if program is None:
                raise CorpusError(
                    f"there are too few different programs for {sizes[split]} lines of {split}, only "
                    f"{len(splits[split])}; ask for fewer"
                )
            splits[split].append(program)
    return splits


def write_splits(output: Path, suffixes: Sequence[str], splits: Mapping[str, list[Program]]) -> None:
    """Writes ``{split}.{suffix}`` for all splits and prints their sizes."""
    for split, programs in splits.items():
        write_columns(output / split, suffixes, programs)
        means = []
        for position, suffix in enumerate(suffixes):
            words = sum(word not in ("(", ")") for program in programs for word in program[position].split())
            means.append(f"{words / max(1, len(programs)):.1f} in .{suffix}")
        print(f"{output / split}: {len(programs)} programs, mean number of words without brackets {', '.join(means)}")


def _distinct(drawn: Iterable[list[Program]], seen: set[str]) -> Iterator[Program]:
    """Yields the programs that are not in ``seen``; ends after ``PATIENCE`` chunks without one."""
    fruitless = 0
    for chunk in drawn:
        fruitless += 1
        for program in chunk:
            if program[0] in seen or program[1] in seen:
                continue
            seen.update(program[:2])
            fruitless = 0
            yield program
        if fruitless == PATIENCE:
            return
