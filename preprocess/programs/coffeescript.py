"""CoffeeScript programs and their JavaScript translations, with small (A) and large (B) vocabulary, short and long."""

from __future__ import annotations

import random
import string
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from preprocess.programs.coffee_language import LAYOUT, coffee_text, read_coffee
from preprocess.programs.coffee_sampler import CoffeeSampler
from preprocess.programs.easy_javascript import is_easy, translate_easy
from preprocess.programs.javascript import JavaScriptCompiler
from preprocess.programs.splits import Program, chunks, fill
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.notations import notation_named

SUFFIXES = ("cs", "js", "raw.cs", "raw.js")
CHUNK = 200

Source = tuple[str, ...]
"""The tokens of a CoffeeScript program."""


@dataclass(frozen=True)
class Setting:
    """One distribution of programs.

    Args:
        names: names of variables
        numbers: numbers that occur
        budget: budget of the sampler
        shortest, longest: limits on the number of words without layout tokens; other programs are drawn again
    """

    names: str
    numbers: str
    budget: int
    shortest: int
    longest: int


_VOCABULARIES = {"A": ("xyz", "01"), "B": (string.ascii_lowercase, string.digits)}
# The averages of Chen et al. are 10 and 20 tokens; their published long programs have 17 to 22 words.
_LENGTHS = {"short": (12, 8, 12), "long": (28, 18, 22)}
SETTINGS = {
    f"{size}-{length}": Setting(*vocabulary, *lengths)
    for size, vocabulary in _VOCABULARIES.items()
    for length, lengths in _LENGTHS.items()
}


def draw(name: str, seed: int, easy: bool, number: int) -> list[Source]:
    """Draws one chunk of programs, which depends on the arguments alone.

    Args:
        name: name of the setting
        seed: seed of the data set
        easy: draw only programs that can be translated without a compiler
        number: number of the chunk
    """
    setting = SETTINGS[name]
    sampler = CoffeeSampler(random.Random(f"{name} {seed} {number}"), setting.names, setting.numbers, setting.budget)
    programs: list[Source] = []
    while len(programs) < CHUNK:
        words = tuple(sampler.program())
        if not setting.shortest <= sum(word not in LAYOUT for word in words) <= setting.longest:
            continue
        if not easy or is_easy(read_coffee(words)):
            programs.append(words)
    return programs


def translated(drawn: Iterable[list[Source]], compiler: JavaScriptCompiler | None) -> Iterator[list[Program]]:
    """Yields the lines of the programs and of their translations, chunk by chunk.

    Raises NodeError if the compiler fails.

    Args:
        drawn: programs, which must be easy if ``compiler`` is None
        compiler: translates the programs
    """
    bracket = notation_named("bracket")
    for chunk in drawn:
        trees = [read_coffee(words) for words in chunk]
        if compiler is None:
            scripts = [translate_easy(tree) for tree in trees]
        else:
            scripts = compiler.translate([coffee_text(words) for words in chunk])
        yield [
            (bracket.write(tree), script, " ".join(words), tokens)
            for words, tree, (script, tokens) in zip_equal(chunk, trees, scripts)
        ]


def data_set(
    name: str, sizes: Mapping[str, int], seed: int, compiler: JavaScriptCompiler | None, workers: int = 1
) -> dict[str, list[Program]]:
    """Returns the programs of all splits.

    Raises CorpusError if the setting has too few different programs and NodeError if the compiler fails.

    Args:
        name: name of the setting
        sizes: number of programs of each split
        seed: seed of all draws
        compiler: translates the programs; None draws only programs that can be translated without it
        workers: number of processes that draw; the result does not depend on it
    """
    drawn = chunks(partial(draw, name, seed, compiler is None), workers)
    try:
        return fill(sizes, translated(drawn, compiler))
    finally:
        drawn.close()


def compiled_data_set(
    name: str, sizes: Mapping[str, int], seed: int, workers: int, folder: Path
) -> dict[str, list[Program]]:
    """Returns the programs of all splits like ``data_set``, with the compiler of ``folder``.

    Raises CorpusError if the setting has too few different programs and NodeError if Node is not installed or fails.
    """
    with JavaScriptCompiler(folder) as compiler:
        return data_set(name, sizes, seed, compiler, workers)
