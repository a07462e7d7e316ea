"""Fills training, validation and test set with programs that are drawn without end.

A *program* is a tuple of lines, one for each file of a split; the first two are its trees in both languages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from preprocess.corpora import CorpusError, write_lines

Program = tuple[str, ...]
SPLITS = ("test", "valid", "train")
"""In the order in which they are filled: how many programs train has changes neither of the others."""

PATIENCE = 50
"""So many chunks without a single new program mean that there are no more."""


def chunks(draw: Callable[[int], list[Program]], workers: int) -> Iterator[list[Program]]:
    """``draw(0)``, ``draw(1)`` and so on without end, computed by ``workers`` processes; the order does not depend on them.

    Args:
        draw: a function that can be pickled, where there is more than one process
        workers: how many processes
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
    sizes: Mapping[str, int],
    drawn: Iterable[list[Program]],
    seen: set[str] | None,
    given: Mapping[str, list[Program]] | None = None,
) -> dict[str, list[Program]]:
    """The programs of every split.

    Args:
        sizes: how many programs a split has; a key for each split
        drawn: chunks of programs without end
        seen: trees of either language that are not to occur (again); None lets programs occur as often as they are drawn
        given: the programs of some splits, which are taken as they are and are as many as they are

    Raises:
        CorpusError: there are not so many different programs
    """
    given = given or {}
    splits = {split: list(given.get(split, ())) for split in SPLITS}
    missing = [split for split in SPLITS if split not in given and sizes[split] > 0]
    if seen is not None:
        seen.update(tree for programs in splits.values() for program in programs for tree in program[:2])
    programs = _distinct(drawn, seen)
    for split in missing:
        while len(splits[split]) < sizes[split]:
            program = next(programs, None)
            if program is None:
                raise CorpusError(
                    f"there are too few different programs for {sizes[split]} lines of {split}, only {len(splits[split])};"
                    " ask for fewer"
                )
            splits[split].append(program)
    return splits


def write_splits(output: Path, suffixes: Sequence[str], splits: Mapping[str, list[Program]]) -> None:
    """Write ``{split}.{suffix}`` for all splits and report their sizes."""
    for split, programs in splits.items():
        for position, suffix in enumerate(suffixes):
            write_lines(output / f"{split}.{suffix}", (program[position] for program in programs))
        means = []
        for position, suffix in enumerate(suffixes):
            words = sum(word not in ("(", ")") for program in programs for word in program[position].split())
            means.append(f"{words / max(1, len(programs)):.1f} in .{suffix}")
        print(f"{output / split}: {len(programs)} programs, mean number of words but brackets {', '.join(means)}")


def _distinct(drawn: Iterable[list[Program]], seen: set[str] | None) -> Iterator[Program]:
    """The programs that are not ``seen`` yet; ends where ``PATIENCE`` chunks bring none."""
    fruitless = 0
    for chunk in drawn:
        fruitless += 1
        for program in chunk:
            if seen is not None:
                if program[0] in seen or program[1] in seen:
                    continue
                seen.update(program[:2])
            fruitless = 0
            yield program
        if fruitless == PATIENCE:
            return
