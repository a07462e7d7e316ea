"""Converts FOR and LAMBDA programs to text, with blanks between the tokens, and back.

Operators associate to the left, so only a compound right operand needs brackets. The same is true for ``;``; in
dialects whose sequences are nested to the right, its left operand needs them.
"""

from __future__ import annotations

import re

from preprocess.programs.for_language import COMPARISONS, OPERATORS, Dialect
from tree_fairseq.errors import NotationError
from tree_fairseq.trees.tree import Tree

# Numbers are places of children; the other parts are words.
_TEMPLATES: dict[str, tuple[int | str, ...]] = {
    "For": ("for", 0, "=", 1, ";", 2, ";", 3, "do", 4, "endfor"),
    "Var": (0,),
    "Const": (0,),
    "Unit": ("()",),
    "Let": ("let", 0, "=", 1, "in", 2),
    "Letrec": ("letrec", 0, 1, "=", 2, "in", 3),
    "App": (0, 1),
} | {tag: (0, word, 1) for tag, word in COMPARISONS.items()}
_FOR_TEMPLATES = _TEMPLATES | {"Assign": (0, "=", 1), "If": ("if", 0, "then", 1, "else", 2, "endif")}
_LAMBDA_TEMPLATES = _TEMPLATES | {"If": ("if", 0, "then", 1, "else", 2)}
_TAGS = {word: tag for tag, word in (OPERATORS | COMPARISONS).items()}


def for_text(program: Tree, dialect: Dialect) -> str:
    """Returns a FOR program as text."""
    return _text(program, _FOR_TEMPLATES, dialect.right_sequences)


def lambda_text(program: Tree) -> str:
    """Returns a LAMBDA program as text."""
    return _text(program, _LAMBDA_TEMPLATES, False)


def _text(program: Tree, templates: dict[str, tuple[int | str, ...]], right_sequences: bool) -> str:
    words: list[str] = []
    stack: list[Tree | str] = [program]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            words.append(node)
        elif not node.children and node.label != "Unit":
            words.append(node.label)
        elif node.label in templates:
            stack.extend(
                part if isinstance(part, str) else node.children[part] for part in reversed(templates[node.label])
            )
        else:
            # An operator or a sequence: one of its operands may need brackets.
            is_sequence = node.label == "Seq"
            operands: list[tuple[Tree | str, ...]] = [(child,) for child in node.children]
            side = 0 if is_sequence and right_sequences else 1
            if node.children[side].label in (("Seq",) if is_sequence else OPERATORS):
                operands[side] = ("(", node.children[side], ")")
            stack.extend(reversed((*operands[0], ";" if is_sequence else OPERATORS[node.label], *operands[1])))
    return " ".join(words)


def read_for(text: str, dialect: Dialect) -> Tree:
    """Reads a FOR program: the inverse of ``for_text``. Raises NotationError if the text is not a FOR program."""
    return _ProgramReader(text, dialect.right_sequences).read("statements")


def read_lambda(text: str) -> Tree:
    """Reads a LAMBDA program: the inverse of ``lambda_text``."""
    return _ProgramReader(text, False).read("term")


class _ProgramReader:
    """A predictive parser with a stack of expected items and a stack of finished trees.

    An expected item is a word, ``("name",)`` for any name or number, ``("rule", r)`` for the items that the method
    ``_r`` returns, or ``("build", tag, n)``, which reads no word and joins the last n trees to one.
    """

    def __init__(self, text: str, right_sequences: bool):
        found = list(re.finditer(r"\S+", text))
        self.words = [word.group() for word in found]
        self.columns = [word.start() + 1 for word in found] + [len(text.rstrip()) + 1]
        self.position = 0
        self.right_sequences = right_sequences
        self.built: list[Tree] = []

    def read(self, rule: str) -> Tree:
        """Returns the tree of the whole text, which ``rule`` describes."""
        stack: list[str | tuple] = [("rule", rule)]
        while stack:
            expected = stack.pop()
            if isinstance(expected, str):
                if self._word() != expected:
                    raise self._error(f"{expected!r}")
                self.position += 1
            elif expected[0] == "rule":
                stack.extend(reversed(getattr(self, f"_{expected[1]}")()))
            elif expected[0] == "name":
                if not self._starts_atom() or self._word() == "(":
                    raise self._error("a name or a number")
                self.built.append(Tree(self._word()))
                self.position += 1
            else:
                _, tag, count = expected
                first = len(self.built) - count
                self.built[first:] = [Tree(tag, self.built[first:])]
        if self.position < len(self.words):
            raise self._error("the end")
        return self.built[0]

    def _word(self, ahead: int = 0) -> str:
        position = self.position + ahead
        return self.words[position] if position < len(self.words) else ""

    def _starts_atom(self, ahead: int = 0) -> bool:
        word = self._word(ahead)
        return word == "(" or word.isalnum() and word not in _RESERVED

    def _error(self, expected: str) -> NotationError:
        found = repr(self._word()) if self._word() else "the end"
        return NotationError(f"{found} where {expected} is expected", column=self.columns[self.position])

    def _statements(self) -> list[str | tuple]:
        return [("rule", "statement"), ("rule", "more_statements")]

    def _more_statements(self) -> list[str | tuple]:
        if self._word() != ";":
            return []
        if self.right_sequences:
            return [";", ("rule", "statements"), ("build", "Seq", 2)]
        return [";", ("rule", "statement"), ("build", "Seq", 2), ("rule", "more_statements")]

    def _statement(self) -> list[str | tuple]:
        word = self._word()
        if word == "(":
            return ["(", ("rule", "statements"), ")"]
        if word == "if":
            return _expected(_FOR_TEMPLATES["If"], ("comparison", "statements", "statements"), "If")
        if word == "for":
            return _expected(_FOR_TEMPLATES["For"], ("", "expression", "comparison", "expression", "statements"), "For")
        return _expected(_FOR_TEMPLATES["Assign"], ("", "expression"), "Assign")

    def _term(self) -> list[str | tuple]:
        word = self._word()
        if word == "()":
            return ["()", ("build", "Unit", 0)]
        if word == "let":
            return _expected(_LAMBDA_TEMPLATES["Let"], ("", "term", "term"), "Let")
        if word == "letrec":
            return _expected(_LAMBDA_TEMPLATES["Letrec"], ("", "", "term", "term"), "Letrec")
        if word == "if":
            return _expected(_LAMBDA_TEMPLATES["If"], ("comparison", "term", "term"), "If")
        if word != "(" and self._starts_atom() and self._starts_atom(1):
            return [("name",), ("rule", "expression"), ("build", "App", 2)]
        return [("rule", "expression")]

    def _comparison(self) -> list[str | tuple]:
        return [("rule", "expression"), ("rule", "comparison_rest")]

    def _comparison_rest(self) -> list[str | tuple]:
        if self._word() not in COMPARISONS.values():
            raise self._error("a comparison")
        return [self._word(), ("rule", "expression"), ("build", _TAGS[self._word()], 2)]

    def _expression(self) -> list[str | tuple]:
        return [("rule", "atom"), ("rule", "more_operands")]

    def _more_operands(self) -> list[str | tuple]:
        if self._word() not in OPERATORS.values():
            return []
        return [self._word(), ("rule", "atom"), ("build", _TAGS[self._word()], 2), ("rule", "more_operands")]

    def _atom(self) -> list[str | tuple]:
        if self._word() == "(":
            return ["(", ("rule", "expression"), ")"]
        return [("name",), ("build", "Const" if self._word().isdigit() else "Var", 1)]


def _expected(template: tuple[int | str, ...], rules: tuple[str, ...], tag: str) -> list[str | tuple]:
    """Returns the items of a template; its children follow the given rules, "" for a name, and are joined to a tree."""
    children = [("rule", rule) if rule else ("name",) for rule in rules]
    return [*(part if isinstance(part, str) else children[part] for part in template), ("build", tag, len(rules))]


_RESERVED = {
    part
    for template in (*_FOR_TEMPLATES.values(), *_LAMBDA_TEMPLATES.values())
    for part in template
    if isinstance(part, str)
}
