"""CoffeeScript programs and their JavaScript translations, with small (A) and large (B) vocabulary, short and long.

CoffeeScript programs are drawn from the published grammar. Every construct divides its budget among its parts, which
bounds the recursion: a part never has more than half of the budget of the whole, and without budget only names and
numbers are drawn.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from preprocess.programs.coffee_language import INDENT, LAYOUT, OUTDENT, TERMINATOR, coffee_text, read_coffee
from preprocess.programs.javascript import JavaScriptCompiler, is_easy, translate_easy
from preprocess.programs.splits import Program, chunks, fill
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.notations import notation_named

OPERATORS = ("name", "number", "+", "+", "*", "*", "==")
STATEMENTS = ("short", "short", "if", "while", "if else", "if then else")
MORE_STATEMENTS = 1 / 3
MORE_CONDITIONS = 1 / 2


class CoffeeSampler:
    """Draws programs; the same state of ``rng`` gives the same programs.

    Args:
        names: names of variables
        numbers: numbers that occur
        budget: budget of a whole program
    """

    def __init__(self, rng: random.Random, names: Sequence[str], numbers: Sequence[str], budget: int):
        self.rng = rng
        self.names = names
        self.numbers = numbers
        self.budget = budget

    def program(self) -> list[str]:
        """Returns the tokens of one program."""
        return [*self._block(self.budget), TERMINATOR]

    def _block(self, budget: int) -> list[str]:
        """Returns one or more statements; each further one halves the budget."""
        if budget > 2 and self.rng.random() < MORE_STATEMENTS:
            return [*self._block(budget // 2), TERMINATOR, *self._statement(budget // 2)]
        return self._statement(budget)

    def _statement(self, budget: int) -> list[str]:
        kind = self._one_of(STATEMENTS) if budget > 2 else "short"
        if kind == "short":
            return self._short(budget)
        part = budget // (3 if "else" in kind else 2)
        block = self._short if kind == "if then else" else self._block
        words = [kind.split()[0], *self._expression(part), INDENT, *block(part), OUTDENT]
        return [*words, "else", INDENT, *block(part), OUTDENT] if "else" in kind else words

    def _short(self, budget: int) -> list[str]:
        """Returns an expression or an assignment on one line, with or without conditions after it."""
        keyword = self._one_of(("", "if", "while")) if budget > 3 else ""
        if not keyword:
            return self._simple(budget)
        conditions: list[str] = []
        more = True
        while more:
            budget //= 2
            # The innermost condition is drawn last and comes first.
            conditions = [keyword, *self._expression(budget), *conditions]
            more = budget > 3 and self.rng.random() < MORE_CONDITIONS
        return [*self._simple(budget), *conditions]

    def _simple(self, budget: int) -> list[str]:
        if budget > 2 and self.rng.random() < 0.5:
            return [self._one_of(self.names), "=", *self._expression(budget - 1)]
        return self._expression(budget)

    def _expression(self, budget: int) -> list[str]:
        operator = self._one_of(OPERATORS if budget > 0 else OPERATORS[:2])
        if operator == "name":
            return [self._one_of(self.names)]
        if operator == "number":
            return [self._one_of(self.numbers)]
        return [*self._expression(budget // 2 - 1), operator, *self._expression(budget // 2 - 2)]

    def _one_of(self, choices: Sequence[str]) -> str:
        return choices[int(self.rng.random() * len(choices))]


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

    Args:
        drawn: programs, which must be easy if ``compiler`` is None
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

    Args:
        name: name of the setting
        sizes: number of programs of each split
        compiler: translates the programs; None draws only programs that can be translated without it
        workers: number of processes that draw; the result does not depend on it
    """
    with closing(chunks(partial(draw, name, seed, compiler is None), workers)) as drawn:
        return fill(sizes, translated(drawn, compiler))
