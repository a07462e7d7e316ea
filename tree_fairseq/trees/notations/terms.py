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
===============================  =====================================================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from tree_fairseq.errors import MultipleRootsError, NotationError
from tree_fairseq.trees.notations.notation import (
    GROUP,
    LITERAL_CODE,
    Notation,
    Piece,
    escape_first,
    escape_name,
    separated,
    unclosed_error,
    unescape_name,
)
from tree_fairseq.trees.symbols import UNKNOWN_LABEL
from tree_fairseq.trees.text import shorten
from tree_fairseq.trees.tree import Tree

LIST = "[]"  # the label of a list
TAILED_LIST = "[|]"  # the label of a list whose last child is the rest of the list
WHOLE = 1200  # the highest priority of a term in brackets or of a whole line
ARGUMENT = 999  # the highest priority of an argument or of an item of a list
_END = r"(?![^\s(),;\[\]|])"


@dataclass(frozen=True)
class Infix:
    """An operator between terms; ``chained`` means that ``a , b , c`` is one node with three children."""

    priority: int  # as in Prolog, where a higher priority binds more loosely
    left: int  # the highest priorities of the operands without brackets
    right: int
    chained: bool = False


def _chain(priority: int) -> Infix:
    return Infix(priority, priority - 1, priority - 1, chained=True)


@dataclass(frozen=True)
class Prefix:
    """Operators before a term, with patterns of their text and of their labels."""

    pattern: str
    label: str
    priority: int  # also the highest priority of the operand


@dataclass(frozen=True)
class TermGrammar:
    """The grammar of a notation of terms."""

    name: str  # of the notation, for messages
    word: str  # pattern of a name without quotation marks
    refused: str  # pattern of the parts that such a name may not contain
    infixes: dict[str, Infix] = field(default_factory=dict)  # by their text
    prefixes: tuple[Prefix, ...] = ()
    quoted: str = "(?!)"  # pattern of names in quotation marks
    lists: bool = False  # whether square brackets contain lists
    spaced: bool = True  # whether brackets are surrounded by blanks
    joints: str = ""  # characters of names that are surrounded by blanks in text but not in labels

    @cached_property
    def token(self) -> re.Pattern:
        """Matches a token; the matching group has the name of its kind. Unexpected characters are ``text``."""
        operators = sorted(self.infixes, key=len, reverse=True)
        kinds = {
            "quoted": rf"(?:{self.quoted}){_END}",
            "unknown": re.escape(UNKNOWN_LABEL) + _END,
            "prefix": "|".join(prefix.pattern for prefix in self.prefixes) or "(?!)",
            "infix": "|".join(rf"\b{text}\b" if text.isalpha() else re.escape(text) for text in operators) or "(?!)",
            "mark": r"[(),\[\]|]" if self.lists else "[(),]",
            "word": self.word,
            "text": r"\S",
        }
        return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in kinds.items()))

    def label_of(self, text: str) -> str:
        """The label of a name or an operator."""
        if self.joints:
            text = re.sub(rf"\s*([{self.joints}])\s*", r"\1", " ".join(text.split()))
        return unescape_name(text)

    def text_of(self, label: str) -> str:
        """The text of a name; the inverse of `label_of`."""
        if label == UNKNOWN_LABEL or re.fullmatch(self.quoted, label):
            return label
        name = escape_name(label, re.compile(f"{LITERAL_CODE}|{self.refused}"))
        text = self.joined(name)
        found = self.token.match(text)
        is_word = found is not None and found.lastgroup == "word" and found.end() == len(text)
        return text if is_word else self.joined(escape_first(name))

    def joined(self, label: str) -> str:
        """A label with blanks around the joints."""
        return re.sub(rf"[{self.joints}]", r" \g<0> ", label).rstrip() if self.joints else label

    def prefix_of(self, label: str) -> Prefix | None:
        """The operator with this label, or None."""
        return next((prefix for prefix in self.prefixes if re.fullmatch(prefix.label, label)), None)

    def prefix_priority(self, text: str) -> int:
        """The priority of an operator with this text."""
        return next(prefix.priority for prefix in self.prefixes if re.fullmatch(prefix.pattern, text))


_PLAIN = r"[^\s(),;=*.\\]+"
_CODE = r"\\(?:u[0-9a-f]{4}|e)"
_QUOTED = r"'(?:[^'\\\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]|''|\\.)*'"
_REFUSED = r"""[\s(),;\[\]|'"\\=<>]"""

PROLOG = TermGrammar(
    "prolog",
    word=rf"""(?:(?!->|:-)[^\s(),;\[\]|'"\\=<>]|{_CODE})+""",
    refused=rf"{_REFUSED}|-(?=>)|:(?=-)",
    infixes={
        ":-": Infix(1200, 1199, 1199),
        ";": _chain(1100),
        "->": Infix(1050, 1049, 1050),
        ",": _chain(1000),
        **dict.fromkeys(("=", "\\=", "==", "\\==", "=:=", "=\\=", "<", ">", "=<", ">="), Infix(700, 699, 699)),
    },
    prefixes=(Prefix(r"\\\+", r"\\\+", 900),),
    quoted=rf"""{_QUOTED}|{_QUOTED.replace("'", '"')}""",
    lists=True,
)
r"""Terms of Prolog, ``answer ( A , ( state ( A ) , \+ next_to ( A , B ) ) )``."""

FUNQL = TermGrammar(
    "funql",
    word=rf"""(?:[^\s()\[\],;|'"\\]|{_CODE})+""",
    refused=r"""[\s()\[\],;|'"\\]""",
    quoted=rf"""{_QUOTED}|{_QUOTED.replace("'", '"')}""",
    lists=True,
    spaced=False,
)
"""Functional query language, ``answer(city(loc_2(stateid('virginia'))))``."""

_PART = rf"(?:[^\s(),;=*.\\]|{_CODE})+"
_NAME = rf"{_PART}(?:\s*\.\s*{_PART})*"

VARIABLE_FREE = TermGrammar(
    "variable-free",
    word=_NAME,
    refused=r"[\s(),;=*\\]|^\.|\.$|\.(?=\.)",
    infixes={"AND": _chain(1000)},
    prefixes=(
        Prefix(rf"\bLAMBDA\s+{_PART}\s*\.", rf"LAMBDA {_PLAIN}\.", 1100),
        Prefix(rf"{_NAME}\s*=", rf"{_PLAIN}(?:\.{_PLAIN})*=", 990),
        Prefix(r"\*", r"\*", 200),
    ),
    joints=".=",
)
"""The meaning of a sentence without variables, ``paint ( agent = Paula , theme = cake ( nmod . in = closet ) )``."""


class TermNotation(Notation):
    """Trees as terms of a grammar. The place of a node is the highest priority that it may have without brackets."""

    WHOLE = WHOLE

    def __init__(self, grammar: TermGrammar):
        self.grammar = grammar

    def _read(self, line: str) -> Tree:
        return _TermReader(line, self.grammar).read()

    def _pieces(self, node: Tree, limit: int) -> list[Piece]:
        groups = 0
        while node.label == GROUP and len(node.children) == 1:
            node, groups = node.children[0], groups + 1
        priority, pieces = self._term(node)
        groups += priority > limit
        blank = " " if self.grammar.spaced else ""
        return [*[f"({blank}"] * groups, *pieces, *[f"{blank})"] * groups]

    def _term(self, node: Tree) -> tuple[int, list[Piece]]:
        """The priority of a term and its pieces, without the brackets that its place may require."""
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
    """Reads one line by operator precedence, without recursion."""

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
        """Reads a token where a term begins, and returns how many more tokens it has read."""
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
        elif kind in ("word", "quoted", "unknown"):
            label = text if kind == "quoted" else self.grammar.label_of(text)
            if following is not None and following.group() == "(":
                self.open.append(_Open(following.start() + 1, ")", label))
                return 1
            self._add(_Operand(Tree(label), column))
        else:
            raise self._unexpected(token)
        return 0

    def _after_term(self, token: re.Match) -> None:
        """Reads a token where an operator, a comma or a closing bracket is expected."""
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
