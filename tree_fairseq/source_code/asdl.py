"""Grammars in the Abstract Syntax Description Language (Wang et al. 1997), in which ``ast`` of Python is defined.

    expr = BinOp(expr left, operator op, expr right) | Name(identifier id) | List(expr* elements)
    operator = Add | Sub

A node whose label is a constructor has its type and its fields. A label that is no constructor is a value, such as the
name in ``Name``: it may stand where the grammar names a type that it does not define.
"""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass
from typing import NamedTuple

from tree_fairseq.errors import NotationError
from tree_fairseq.source_code.field_types import ROOT
from tree_fairseq.support.files import require_plain_file

VALUE = "<value>"  # the type of labels that are not constructors

_TOKEN = re.compile(r"\s*(?:--[^\n]*|([A-Za-z_]\w*|[={}(),|?*]))")
_EITHER = "|"


class _Field(NamedTuple):
    type: str
    many: str  # "", "?" or "*"


@dataclass(frozen=True, eq=False)
class AsdlGrammar:
    """The constructors of a grammar; the root is of the first type that is defined."""

    # type and fields by name; a type without constructors is its own one
    constructors: dict[str, tuple[str, tuple[_Field, ...]]]
    types: tuple[str, ...]  # that the grammar defines, in order

    @classmethod
    def load(cls, path: str | os.PathLike) -> AsdlGrammar:
        """Reads a file; raises NotationError with the line where it is not ASDL."""
        require_plain_file(path)
        with open(path, encoding="utf-8") as file:
            return _Reader(file.read(), path).read()

    def type_of(self, label: str) -> str:
        """The type of a label."""
        return self.constructors[label][0] if label in self.constructors else VALUE

    def fields_of(self, label: str, arity: int) -> tuple[str, ...]:
        """The types of the children of a node, joined by ``|`` where several are possible; () for a text."""
        return self._fields_of(label, arity) if label in self.constructors else ()

    @functools.lru_cache(maxsize=100_000)  # noqa: B019  grammars are few and live as long as the program
    def _fields_of(self, label: str, arity: int) -> tuple[str, ...]:
        fields = self.constructors[label][1]
        # How many children the fields before each one can have together, and those after it.
        before, after = [{0}], [{0}]
        for item in fields:
            before.append(_with_field(before[-1], item.many, arity))
        for item in reversed(fields):
            after.insert(0, _with_field(after[0], item.many, arity))
        found: list[set[str]] = [set() for _ in range(arity)]
        for item, left, right in zip(fields, before, after[1:]):
            for child, types in enumerate(found):
                rest = arity - child - 1
                is_listed = item.many == "*" and min(left) <= child and min(right) <= rest
                if is_listed or (child in left and rest in right):
                    types.add(item.type)
        return tuple(_EITHER.join(sorted(types)) for types in found) if arity in before[-1] else ()

    def allows(self, field: str, type_name: str) -> bool:
        """Whether a node of a type may stand in a field."""
        names = [self.types[0]] if field == ROOT else field.split(_EITHER)
        return type_name in names or (type_name == VALUE and any(name not in self.types for name in names))


def _with_field(counts: set[int], many: str, arity: int) -> set[int]:
    """The numbers of children of some fields and one more, of which ``arity`` is the largest that matters."""
    if many == "*":
        return {*counts, *range(min(counts), arity + 1)}
    return {count + 1 for count in counts} | (counts if many == "?" else set())


class _Reader:
    def __init__(self, text: str, path: str | os.PathLike):
        self.path, self.tokens = path, list[tuple[str, int]]()
        place = 0
        while place < len(text.rstrip()):
            found = _TOKEN.match(text, place)
            if found is None:
                wrong = place + len(text[place:]) - len(text[place:].lstrip())
                raise NotationError(f"{text[wrong]!r} has no meaning in ASDL", path, text.count("\n", 0, wrong) + 1)
            if found[1]:
                self.tokens.append((found[1], text.count("\n", 0, found.start(1)) + 1))
            place = found.end()
        self.tokens.append(("", text.count("\n") + 1))

    def read(self) -> AsdlGrammar:
        constructors: dict[str, tuple[str, tuple[_Field, ...]]] = {}
        types: list[str] = []
        if self._peek() == "module":
            self._take("module"), self._take(), self._take("{")
        while self._peek() not in ("", "}"):
            name = self._take()
            types.append(name)
            self._take("=")
            constructor = name if self._peek() == "(" else self._take()
            constructors[constructor] = name, self._fields()
            while self._peek() == "|":
                self._take("|")
                constructor = self._take()
                constructors[constructor] = name, self._fields()
            if self._peek() == "attributes":
                self._take("attributes")
                self._fields()
        if not types:
            raise NotationError(
                "no type is defined", self.path, hint="A definition is `type = Constructor(field, ...)`."
            )
        return AsdlGrammar(constructors, tuple(types))

    def _fields(self) -> tuple[_Field, ...]:
        fields: list[_Field] = []
        if self._peek() != "(":
            return ()
        self._take("(")
        while self._peek() != ")":
            type_name = self._take()
            many = self._take() if self._peek() in ("?", "*") else ""
            if self._peek() not in (",", ")"):
                self._take()  # the name of the field
            fields.append(_Field(type_name, many))
            if self._peek() == ",":
                self._take(",")
        self._take(")")
        return tuple(fields)

    def _peek(self) -> str:
        return self.tokens[0][0]

    def _take(self, expected: str | None = None) -> str:
        text, line = self.tokens.pop(0)
        is_name = re.fullmatch(r"\w+", text) is not None
        if (text != expected) if expected is not None else not (is_name or text in "?*" and text):
            wanted = repr(expected) if expected else "a name"
            raise NotationError(f"{text!r} where {wanted} should be", self.path, line)
        return text
