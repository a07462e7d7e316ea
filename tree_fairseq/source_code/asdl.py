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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tree_fairseq.errors import NotationError
from tree_fairseq.source_code.field_types import ROOT
from tree_fairseq.support.files import require_plain_file

VALUE = "<value>"  # the type of labels that are not constructors

_TOKEN = re.compile(r"--[^\n]*|(?P<known>[A-Za-z_]\w*|[={}(),|?*])|(?P<unknown>\S)")
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
        if arity not in _counts(fields, arity):
            return ()
        found: list[set[str]] = [set() for _ in range(arity)]
        for place, item in enumerate(fields):
            before, after = _counts(fields[:place], arity), _counts(fields[place + 1 :], arity)
            for child, types in enumerate(found):
                rest = arity - child - 1
                is_listed = item.many == "*" and before.start <= child and after.start <= rest
                if is_listed or (child in before and rest in after):
                    types.add(item.type)
        return tuple(_EITHER.join(sorted(types)) for types in found)

    def allows(self, field: str, type_name: str) -> bool:
        """Whether a node of a type may stand in a field."""
        names = [self.types[0]] if field == ROOT else field.split(_EITHER)
        return type_name in names or (type_name == VALUE and any(name not in self.types for name in names))


def _counts(fields: Sequence[_Field], arity: int) -> range:
    """How many children some fields can have together, of which ``arity`` is the largest number that matters."""
    most = arity if any(item.many == "*" for item in fields) else len(fields)
    return range(sum(item.many == "" for item in fields), most + 1)


class _Reader:
    def __init__(self, text: str, path: str | os.PathLike):
        self.path, self.tokens = path, list[tuple[str, int]]()
        for found in _TOKEN.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            if found["unknown"]:
                raise NotationError(f"{found['unknown']!r} has no meaning in ASDL", path, line)
            if found["known"]:
                self.tokens.append((found["known"], line))
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
            many = ""
            while self._peek() in ("?", "*"):
                many = self._take()  # of "?*", as in the grammar of Python 3.14, the children that are there count
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
