"""Draws CoffeeScript programs from the published grammar, as tokens.

Every construct divides its budget among its parts, which bounds the recursion: a part never has more than half of the
budget of the whole, and without budget only names and numbers are drawn.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from preprocess.programs.coffee_language import INDENT, OUTDENT, TERMINATOR

OPERATORS = ("name", "number", "+", "+", "*", "*", "==")
STATEMENTS = ("short", "short", "if", "while", "if else", "if then else")
MORE_STATEMENTS = 1 / 3
MORE_CONDITIONS = 1 / 2


class CoffeeSampler:
    """Draws programs; the same state of ``rng`` gives the same programs.

    Args:
        rng: the only source of randomness
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
