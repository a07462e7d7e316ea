"""Draws FOR programs from the grammar and the weights that Drissi et al. (2018) published.

A statement divides its budget among its parts, and a statement without budget is an assignment. This bounds the
recursion: a part never has more than half of the budget of the whole.
"""

from __future__ import annotations

import random

from preprocess.programs.for_language import COMPARISONS, OPERATORS, Dialect
from tree_fairseq.trees.tree import Tree

STATEMENTS = ("Assign", "Assign", "If", "For", "Seq")
NEW_IN_ASSIGNMENT, NEW_IN_LOOP = 1 / 6, 4 / 5
EXPRESSION_BUDGET = 3
_COMPARISONS, _OPERATORS = tuple(COMPARISONS), tuple(OPERATORS)


class ForSampler:
    """Draws FOR programs; the same state of ``rng`` gives the same programs.

    Args:
        rng: the only source of randomness
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
