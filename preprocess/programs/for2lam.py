"""FOR programs and their LAMBDA translations: the data sets SYN-S and SYN-L, and the reconstruction of Drissi et al.

FOR programs are drawn from the grammar and the weights that Drissi et al. (2018) published. A statement divides its
budget among its parts, and a statement without budget is an assignment. This bounds the recursion: a part never has
more than half of the budget of the whole.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from preprocess.programs.for_language import (
    CHEN,
    COMPARISONS,
    OPERATORS,
    REBUILD,
    Dialect,
    for_text,
    lambda_text,
    read_published,
    to_lambda,
)
from preprocess.programs.splits import SPLITS, Program, chunks, fill
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

STATEMENTS = ("Assign", "Assign", "If", "For", "Seq")
NEW_IN_ASSIGNMENT, NEW_IN_LOOP = 1 / 6, 4 / 5
EXPRESSION_BUDGET = 3
_COMPARISONS, _OPERATORS = tuple(COMPARISONS), tuple(OPERATORS)


class ForSampler:
    """Draws FOR programs; the same state of ``rng`` gives the same programs.

    Args:
        dialect: names and numbers; variables are declared in its order
        budget: budget of a whole program
    """

    def __init__(self, rng: random.Random, dialect: Dialect, budget: int):
        self.rng = rng
        self.dialect = dialect
        self.budget = budget
        self._names = [Tree(name) for name in dialect.variables]
        self._variables = [Tree("Var", (name,)) for name in self._names]
        self._constants = [Tree("Const", (Tree(number),)) for number in dialect.constants]

    def program(self) -> Tree:
        """Returns one program."""
        return self._statement(self.budget, self.dialect.defined)[0]

    def _statement(self, budget: int, declared: int) -> tuple[Tree, int]:
        """Returns a statement that may read the first ``declared`` variables, and their number after it."""
        kind = STATEMENTS[self._below(len(STATEMENTS))] if budget > 0 else "Assign"
        if kind == "Seq":
            first, declared = self._statement(budget // 2, declared)
            second, declared = self._statement(budget // 2 - 1, declared)
            return sequence(first, second) if self.dialect.right_sequences else Tree(kind, (first, second)), declared
        if kind == "Assign":
            expression = self._expression(EXPRESSION_BUDGET, declared)
            variable = self._assigned(NEW_IN_ASSIGNMENT, declared)
            return Tree(kind, (self._names[variable], expression)), max(declared, variable + 1)
        # A variable that is declared inside of the other two is unknown after them.
        if kind == "If":
            condition = self._comparison(budget // 3 - 1, declared)
            branches = [self._statement(budget // 3 - 2, declared)[0] for _ in range(2)]
            return Tree(kind, (condition, *branches)), declared
        variable = self._assigned(NEW_IN_LOOP, declared)
        inside = max(declared, variable + 1)
        start = self._expression(budget // 4 - 1, declared)
        condition = self._comparison(budget // 4, inside)
        step = self._expression(budget // 4, inside)
        body, _ = self._statement(budget // 4 - 1, inside)
        return Tree(kind, (self._names[variable], start, condition, step, body)), declared

    def _assigned(self, new: float, declared: int) -> int:
        """Returns the number of a variable to assign: with probability ``new`` the first undeclared one."""
        if declared < len(self._names) and self.rng.random() < new:
            return declared
        return self._below(declared)

    def _comparison(self, budget: int, declared: int) -> Tree:
        operator = _COMPARISONS[self._below(len(_COMPARISONS))]
        return Tree(
            operator, (self._expression(budget // 3 - 1, declared), self._expression(budget // 3 - 1, declared))
        )

    def _expression(self, budget: int, declared: int) -> Tree:
        kind = self._below(4 if budget > 0 else 2)
        if kind == 0:
            return self._variables[self._below(declared)]
        if kind == 1:
            return self._constants[self._below(len(self._constants))]
        operands = self._expression(budget // 2 - 1, declared), self._expression(budget // 2 - 2, declared)
        return Tree(_OPERATORS[kind - 2], operands)

    def _below(self, end: int) -> int:
        # As randrange does, at a fifth of its cost.
        return int(self.rng.random() * end)


def sequence(first: Tree, rest: Tree) -> Tree:
    """Returns the sequence of two statements, nested to the right: ``( Seq a ( Seq b c ) )``."""
    statements = []
    while first.label == "Seq":
        statements.append(first.children[0])
        first = first.children[1]
    for statement in (first, *reversed(statements)):
        rest = Tree("Seq", (statement, rest))
    return rest


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
    """Returns the programs of all splits."""
    given = published(folder, sizes) if folder is not None else None
    with closing(chunks(partial(draw, name, seed), workers)) as drawn:
        return fill({split: sizes[split] for split in SPLITS}, drawn, given)
