"""Reads terms with operators, by their priorities and without recursion."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tree_fairseq.errors import MultipleRootsError, NotationError
from tree_fairseq.trees.notations.notation import GROUP, shorten
from tree_fairseq.trees.notations.term_grammars import ARGUMENT, WHOLE, TermGrammar
from tree_fairseq.trees.tree import Tree

LIST = "[]"
"""The label of a list."""

TAILED_LIST = "[|]"
"""The label of a list whose last child is the rest of it."""


@dataclass
class _Operand:
    """A term that has been read, and how many brackets stood around it."""

    tree: Tree
    priority: int
    groups: int
    column: int


@dataclass
class _Operator:
    """An operator whose last operand has not been read.

    ``limits`` are the priorities that its operands may have.
    """

    label: str
    priority: int
    limits: list[int]


@dataclass
class _Open:
    """A bracket that has not been closed, or the line.

    ``head`` is the name before ``(`` or the label of a list, and None where no arguments stand inside.
    """

    column: int
    closer: str
    head: str | None = None
    arguments: list[Tree] = field(default_factory=list)
    operands: list[_Operand] = field(default_factory=list)
    operators: list[_Operator] = field(default_factory=list)
    expects_term: bool = True

    @property
    def may_go_on(self) -> bool:
        """Whether a comma begins another argument."""
        return self.head is not None and not (self.closer == "]" and self.head == TAILED_LIST)


class TermReader:
    """Reads one line.

    Args:
        line: it
        grammar: of the notation
    """

    def __init__(self, line: str, grammar: TermGrammar):
        self.grammar = grammar
        self.tokens = list(grammar.token.finditer(line))
        self.open: list[_Open] = [_Open(1, "")]
        self.end = len(line.rstrip()) + 1

    def read(self) -> Tree:
        """The tree of the line.

        Raises:
            NotationError: with the column
            MultipleRootsError: a second term follows the first
        """
        place = 0
        while place < len(self.tokens):
            token = self.tokens[place]
            place += 1
            if self.open[-1].expects_term:
                place += self._term(token, self.tokens[place] if place < len(self.tokens) else None)
            else:
                self._after_term(token)
        if len(self.open) > 1:
            count = len(self.open) - 1
            number = "a bracket is" if count == 1 else f"{count} brackets are"
            raise NotationError(
                f"{number} never closed, the first of them opened here",
                column=self.open[1].column,
                hint="Close every bracket; a tree has to stand on one line.",
            )
        whole = self._expression(self.open[0], "the end of the line", self.end)
        return self._placed(whole, WHOLE)

    def _term(self, token: re.Match, following: re.Match | None) -> int:
        """Takes a token where a term begins, and says how many more tokens it took."""
        text, kind, here, column = token.group(), token.lastgroup, self.open[-1], token.start() + 1
        if text == "(":
            self.open.append(_Open(column, ")"))
        elif text == "[" and kind == "mark":
            self.open.append(_Open(column, "]", LIST))
        elif text == here.closer == "]" and not here.arguments and not here.operators:
            self._close_with(Tree(LIST), self.open.pop().column)
        elif kind == "prefix":
            priority = self.grammar.prefix_priority(text)
            here.operators.append(_Operator(self.grammar.label_of(text), priority, [priority]))
        elif kind in ("word", "quoted", "unknown"):
            label = text if kind == "quoted" else self.grammar.label_of(text)
            if following is not None and following.group() == "(":
                self.open.append(_Open(following.start() + 1, ")", label))
                return 1
            self._close_with(Tree(label), column)
        else:
            raise self._unexpected(token)
        return 0

    def _after_term(self, token: re.Match) -> None:
        """Takes a token where an operator, a comma or a closing bracket has to stand."""
        text, here, column = token.group(), self.open[-1], token.start() + 1
        if text == "," and here.may_go_on:
            self._finish_argument(here, text, column)
        elif token.lastgroup == "infix":
            self._operator(text, column)
        elif text == "|" and here.closer == "]" and here.may_go_on:
            self._finish_argument(here, text, column)
            here.head = TAILED_LIST
        elif text in (")", "]"):
            self._close(text, column)
        else:
            raise self._unexpected(token)

    def _operator(self, text: str, column: int) -> None:
        """Puts the operands to the left of an operator together, as far as it is the looser one."""
        here, infix = self.open[-1], self.grammar.infixes[text]
        while here.operators and here.operators[-1].priority <= infix.left:
            self._reduce(here)
        last = here.operators[-1] if here.operators else None
        if infix.chained and last is not None and last.label == text:
            last.limits.append(infix.right)
        else:
            here.operators.append(_Operator(text, infix.priority, [infix.left, infix.right]))
        here.expects_term = True

    def _reduce(self, here: _Open) -> None:
        operator = here.operators.pop()
        first = len(here.operands) - len(operator.limits)
        operands = here.operands[first:]
        del here.operands[first:]
        children = [self._placed(operand, limit) for operand, limit in zip(operands, operator.limits, strict=True)]
        here.operands.append(_Operand(Tree(operator.label, children), operator.priority, 0, operands[0].column))

    def _expression(self, here: _Open, text: str, column: int) -> _Operand:
        """What stands between the last bracket or comma and here."""
        if here.expects_term:
            raise _missing_term(text, column)
        while here.operators:
            self._reduce(here)
        here.expects_term = True
        return here.operands.pop()

    def _finish_argument(self, here: _Open, text: str, column: int) -> None:
        here.arguments.append(self._placed(self._expression(here, repr(text), column), ARGUMENT))

    def _close(self, text: str, column: int) -> None:
        here = self.open[-1]
        if here.closer != text:
            message = f"{text!r} where {here.closer!r} should be" if here.closer else f"{text!r} closes nothing"
            raise NotationError(message, column=column, hint="Every bracket is closed by one of its own kind.")
        if here.head is not None:
            self._finish_argument(here, text, column)
            self.open.pop()
            self._close_with(Tree(here.head, here.arguments), here.column)
            return
        inner = self._expression(here, repr(text), column)
        self.open.pop()
        self._add(_Operand(inner.tree, inner.priority, inner.groups + 1, here.column))

    def _close_with(self, tree: Tree, column: int) -> None:
        self._add(_Operand(tree, 0, 0, column))

    def _add(self, operand: _Operand) -> None:
        self.open[-1].operands.append(operand)
        self.open[-1].expects_term = False

    def _placed(self, operand: _Operand, limit: int) -> Tree:
        """A term with a node for each pair of brackets that it would not need where it stands.

        Raises:
            NotationError: it would need brackets and has none
        """
        needed = operand.priority > limit
        if needed and not operand.groups:
            raise NotationError(
                f"{shorten(operand.tree.label)!r} binds too loosely to stand here without brackets",
                column=operand.column,
                hint="Put the term that begins here into brackets.",
            )
        tree = operand.tree
        for _ in range(operand.groups - needed):
            tree = Tree(GROUP, (tree,))
        return tree

    def _unexpected(self, token: re.Match) -> NotationError | MultipleRootsError:
        text, column, here = token.group(), token.start() + 1, self.open[-1]
        if token.lastgroup == "text":
            return NotationError(
                f"{text!r} has no meaning in {self.grammar.name} notation",
                column=column,
                hint="A name that holds it has to be in quotation marks, which have to be closed.",
            )
        if here.expects_term:
            return _missing_term(repr(text), column)
        if text == "," or token.lastgroup in ("infix", "mark"):
            return NotationError(f"{text!r} does not belong between these terms", column=column, hint="Remove it.")
        if len(self.open) == 1:
            return MultipleRootsError(
                f"{shorten(text)!r} follows a complete tree",
                column=column,
                hint="A line holds one tree; terms are joined by an operator.",
            )
        return NotationError(f"no comma and no operator before {shorten(text)!r}", column=column, hint="Write one.")


def _missing_term(before: str, column: int) -> NotationError:
    return NotationError(
        f"a term is missing before {before}", column=column, hint="Write it, or remove what calls for it."
    )
