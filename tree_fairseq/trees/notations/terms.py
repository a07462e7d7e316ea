r"""Terms with operators, such as Prolog's ``f ( a , b ) , g ( c )``: their grammars, their writer and their reader.

The notations are Prolog, FunQL and COGS's variable-free forms.

===============================  =====================================================================
text                             tree
===============================  =====================================================================
``f ( a , b )``                  ``f`` over ``a`` and ``b``
``'new york'``                   a leaf; the quotation marks are part of its label
``a , b , c``                    ``,`` over all three; the same with ``;`` and ``AND``
``A \= B``                       ``\=`` over ``A`` and ``B``
``\+ a``                         ``\+`` over ``a``; ``\+ ( a , b )`` is ``\+`` over ``,``
``[ a , b ]``, ``[ a | T ]``     ``[]`` over ``a`` and ``b``, ``[|]`` over ``a`` and ``T``
``* cake``                       ``*`` over ``cake``
``agent = Emma``                 ``agent=`` over ``Emma``
``nmod . in = room``             ``nmod.in=`` over ``room``
``LAMBDA a . LAMBDA e . f``      ``LAMBDA a.`` over ``LAMBDA e.`` over ``f``
``( a )``                        ``()`` over ``a``, if the brackets are not needed
``X is B * 2``, ``Z^p ( Z )``    ``is`` over ``X`` and ``*``; ``^`` over ``Z`` and ``p``; ``B*2`` is a name
``p ( a ) .``                    ``p`` over ``a``: the full stop of Prolog is no part of the tree
===============================  =====================================================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tree_fairseq.errors import MultipleRootsError, NotationError
from tree_fairseq.trees.notations.notation import GROUP, Notation, Piece, separated, unclosed_error
from tree_fairseq.trees.notations.term_grammars import ARGUMENT, LIST, TAILED_LIST, WHOLE, TermGrammar
from tree_fairseq.trees.text import shorten
from tree_fairseq.trees.tree import Tree


class TermNotation(Notation):
    """Trees as terms of a grammar. The place of a node is the highest priority that it may have without brackets."""

    WHOLE = WHOLE

    def __init__(self, grammar: TermGrammar):
        self.grammar = grammar

    def _read(self, line: str) -> Tree:
        # A line that has nothing but a full stop is a name.
        text = re.sub(r"(?<=[^\s.])\s*\.\s*$", "", line) if self.grammar.full_stop else line
        return _TermReader(text, self.grammar).read()

    def write(self, tree: Tree) -> str:
        text = super().write(tree)
        is_stop = self.grammar.full_stop and text.endswith(".")
        return text[:-1] + r"\u002e" if is_stop else text

    def _pieces(self, node: Tree, limit: int) -> list[Piece]:
        groups = 0
        while node.label == GROUP and len(node.children) == 1:
            node, groups = node.children[0], groups + 1
        priority, pieces = self._term(node)
        groups += priority > limit
        blank = " " if self.grammar.spaced else ""
        return [*[f"({blank}"] * groups, *pieces, *[f"{blank})"] * groups]

    def _term(self, node: Tree) -> tuple[int, list[Piece]]:
        grammar, label, children = self.grammar, node.label, node.children
        infix, blank = grammar.infixes.get(label), " " if grammar.spaced else ""
        if infix and (len(children) == 2 or infix.chained and len(children) > 2):
            operator = ", " if label == "," and not grammar.spaced else f" {label} "
            limits = [infix.left, *[infix.right] * (len(children) - 1)]
            return infix.priority, separated(zip(children, limits), operator)
        if len(children) == 1 and (prefix := grammar.prefix_of(label)):
            return prefix.priority, [grammar.joined(label) + " ", (children[0], prefix.priority)]
        items = separated([(child, ARGUMENT) for child in children], f"{blank}, ")
        if grammar.lists and label == TAILED_LIST and len(children) > 1:
            return 0, ["[ ", *items[:-2], " | ", items[-1], " ]"]
        if grammar.lists and label == LIST:
            return 0, [f"[{blank}", *items, f"{blank if children else ''}]"]
        name = grammar.text_of(label)
        return 0, [f"{name}{blank}({blank}", *items, f"{blank})"] if children else [name]


@dataclass
class _Operand:
    """A term that has been read, and the number of brackets around it."""

    tree: Tree
    column: int
    priority: int = 0
    groups: int = 0


@dataclass
class _Operator:
    """An operator whose last operand has not been read; ``limits`` are the highest priorities of its operands."""

    label: str
    priority: int
    limits: list[int]


@dataclass
class _Open:
    """The line, or a bracket that has not been closed."""

    column: int
    closer: str
    head: str | None = None  # the name before "(" or the label of a list; None if the bracket contains no arguments
    arguments: list[Tree] = field(default_factory=list)
    operands: list[_Operand] = field(default_factory=list)
    operators: list[_Operator] = field(default_factory=list)
    expects_term: bool = True

    @property
    def accepts_arguments(self) -> bool:
        """Whether a comma begins another argument."""
        return self.head is not None and not (self.closer == "]" and self.head == TAILED_LIST)


class _TermReader:
    def __init__(self, line: str, grammar: TermGrammar):
        self.grammar = grammar
        self.tokens = list(grammar.token.finditer(line))
        self.open: list[_Open] = [_Open(1, "")]
        self.end = len(line.rstrip()) + 1

    def read(self) -> Tree:
        place = 0
        while place < len(self.tokens):
            token = self.tokens[place]
            place += 1
            if self.open[-1].expects_term:
                place += self._term(token, self.tokens[place] if place < len(self.tokens) else None)
            else:
                self._after_term(token)
        if len(self.open) > 1:
            raise unclosed_error([bracket.column for bracket in self.open[1:]])
        whole = self._expression(self.open[0], "the end of the line", self.end)
        return self._placed(whole, WHOLE)

    def _term(self, token: re.Match, following: re.Match | None) -> int:
        text, kind, here, column = token.group(), token.lastgroup, self.open[-1], token.start() + 1
        if text == "(":
            self.open.append(_Open(column, ")"))
        elif text == "[" and kind == "mark":
            self.open.append(_Open(column, "]", LIST))
        elif text == here.closer == "]" and not here.arguments and not here.operators:
            self._add(_Operand(Tree(LIST), self.open.pop().column))
        elif kind == "prefix":
            priority = self.grammar.prefix_priority(text)
            here.operators.append(_Operator(self.grammar.label_of(text), priority, [priority]))
        elif kind in ("quoted", "unknown") or self.grammar.is_name(token):
            label = text if kind == "quoted" else self.grammar.label_of(text)
            if following is not None and following.group() == "(":
                self.open.append(_Open(following.start() + 1, ")", label))
                return 1
            self._add(_Operand(Tree(label), column))
        else:
            raise self._unexpected(token)
        return 0

    def _after_term(self, token: re.Match) -> None:
        text, here, column = token.group(), self.open[-1], token.start() + 1
        if text == "," and here.accepts_arguments:
            self._finish_argument(here, text, column)
        elif token.lastgroup == "infix":
            self._operator(text)
        elif text == "|" and here.closer == "]" and here.accepts_arguments:
            self._finish_argument(here, text, column)
            here.head = TAILED_LIST
        elif text in (")", "]"):
            self._close(text, column)
        else:
            raise self._unexpected(token)

    def _operator(self, text: str) -> None:
        """Reduces the operators to the left that bind more tightly, and opens this one."""
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
        children = [self._placed(operand, limit) for operand, limit in zip(operands, operator.limits)]
        here.operands.append(_Operand(Tree(operator.label, children), operands[0].column, operator.priority))

    def _expression(self, here: _Open, text: str, column: int) -> _Operand:
        """The term between the last bracket or comma and this column."""
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
            raise NotationError(message, column=column, hint="Close every bracket with one of its own kind.")
        if here.head is not None:
            self._finish_argument(here, text, column)
            operand = _Operand(Tree(here.head, here.arguments), here.column)
        else:
            inner = self._expression(here, repr(text), column)
            operand = _Operand(inner.tree, here.column, inner.priority, inner.groups + 1)
        self.open.pop()
        self._add(operand)

    def _add(self, operand: _Operand) -> None:
        self.open[-1].operands.append(operand)
        self.open[-1].expects_term = False

    def _placed(self, operand: _Operand, limit: int) -> Tree:
        """The tree of a term in its place, with a `GROUP` node for each pair of brackets that is not needed there."""
        tree, needs_brackets = operand.tree, operand.priority > limit
        if needs_brackets and not operand.groups:
            message = f"{shorten(tree.label)!r} binds too loosely here without brackets"
            hint = "Put the term that begins here into brackets."
            raise NotationError(message, column=operand.column, hint=hint)
        for _ in range(operand.groups - needs_brackets):
            tree = Tree(GROUP, (tree,))
        return tree

    def _unexpected(self, token: re.Match) -> NotationError | MultipleRootsError:
        text, column = token.group(), token.start() + 1
        if token.lastgroup == "text":
            hint = "Put a name that contains it into quotation marks, and close them."
            return NotationError(f"{text!r} has no meaning in {self.grammar.name} notation", column=column, hint=hint)
        if self.open[-1].expects_term:
            return _missing_term(repr(text), column)
        if text == "," or token.lastgroup in ("infix", "mark"):
            return NotationError(f"{text!r} does not belong between these terms", column=column, hint="Remove it.")
        if len(self.open) == 1:
            hint = "A line contains one tree; join terms with an operator."
            return MultipleRootsError(f"{shorten(text)!r} follows a complete tree", column=column, hint=hint)
        message = f"no comma or operator before {shorten(text)!r}"
        return NotationError(message, column=column, hint="Write one, or remove the term.")


def _missing_term(before: str, column: int) -> NotationError:
    hint = "Write the term, or remove the operator or comma before it."
    return NotationError(f"a term is missing before {before}", column=column, hint=hint)
