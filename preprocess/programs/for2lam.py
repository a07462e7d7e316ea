"""FOR programs and their LAMBDA translations: the data sets SYN-S and SYN-L, and the reconstruction of Drissi et al."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from preprocess.programs.for_language import CHEN, REBUILD, Dialect, read_published
from preprocess.programs.for_sampler import ForSampler
from preprocess.programs.lambda_language import to_lambda
from preprocess.programs.splits import SPLITS, Program, chunks, fill
from preprocess.programs.surface import for_text, lambda_text
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

SUFFIXES = ("for", "lam", "raw.for", "raw.lam")
PUBLISHED = {"test": "test_For.json", "valid": "validation_For.json"}
CHUNK = 200


@dataclass(frozen=True)
class Setting:
    """One distribution of programs.

    Args:
        dialect: names and numbers
        budget: budget of the sampler
        shortest, longest: limits on the number of tokens of the FOR text; other programs are drawn again
    """

    dialect: Dialect
    budget: int
    shortest: int
    longest: int


SETTINGS = {
    # The averages of Chen et al. are 20 and 50 tokens.
    "SYN-S": Setting(CHEN, 15, 15, 25),
    "SYN-L": Setting(CHEN, 40, 42, 60),
    "rebuild": Setting(REBUILD, 15, 1, 10**6),
}


def lines(program: Tree, dialect: Dialect, text: str = "") -> Program:
    """Returns the lines of a FOR program: both trees, then both texts."""
    bracket = notation_named("bracket")
    translated = to_lambda(program, dialect)
    return (
        bracket.write(program),
        bracket.write(translated),
        text or for_text(program, dialect),
        lambda_text(translated),
    )


def draw(name: str, seed: int, number: int) -> list[Program]:
    """Draws one chunk of programs, which depends on the arguments alone."""
    setting = SETTINGS[name]
    sampler = ForSampler(random.Random(f"{name} {seed} {number}"), setting.dialect, setting.budget)
    programs: list[Program] = []
    while len(programs) < CHUNK:
        program = sampler.program()
        text = for_text(program, setting.dialect)
        if setting.shortest <= text.count(" ") + 1 <= setting.longest:
            programs.append(lines(program, setting.dialect, text))
    return programs


def published(folder: Path, sizes: Mapping[str, int]) -> dict[str, list[Program]]:
    """Returns the first programs of the published validation and test set, at most ``sizes`` of each.

    No program occurs twice in the two sets. Raises CorpusError if a file is missing or malformed.
    """
    seen: set[str] = set()
    splits: dict[str, list[Program]] = {}
    for split, name in PUBLISHED.items():
        splits[split] = []
        for program in read_published(folder / name):
            if len(splits[split]) == sizes[split]:
                break
            written = lines(program, REBUILD)
            if written[0] not in seen:
                seen.add(written[0])
                splits[split].append(written)
    return splits


def data_set(
    name: str, sizes: Mapping[str, int], seed: int, workers: int = 1, folder: Path | None = None
) -> dict[str, list[Program]]:
    """Returns the programs of all splits.

    Raises CorpusError if the published files are malformed, or the setting has too few different programs.
    """
    given = published(folder, sizes) if folder is not None else None
    drawn = chunks(partial(draw, name, seed), workers)
    try:
        return fill({split: sizes[split] for split in SPLITS}, drawn, given)
    finally:
        drawn.close()
