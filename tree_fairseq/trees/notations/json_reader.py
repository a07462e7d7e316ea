"""Reads JSON without recursion, and says where it is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from json import JSONDecodeError
from json.decoder import scanstring

from tree_fairseq.errors import MultipleRootsError, NotationError
from tree_fairseq.trees.notations.json_shapes import LIST, is_literal, object_tree, quoted
from tree_fairseq.trees.notations.notation import shorten
from tree_fairseq.trees.tree import Tree

_TOKEN = re.compile(r'\s*([{}\[\],:"]|[^\s{}\[\],:"]+|\Z)')
_SURROGATE = re.compile("[\ud800-\udfff]")
_CLOSERS = {"{": "}", "[": "]"}


@dataclass
class _Open:
    """An object or a list that has not been closed; an object's keys are as many as its values, or one more."""

    column: int
    closer: str
    keys: list[str] = field(default_factory=list)
    values: list[Tree] = field(default_factory=list)

    def tree(self) -> Tree:
        return object_tree(self.keys, self.values) if self.closer == "}" else Tree(LIST, self.values)


def read_json(line: str) -> Tree:
    """The tree of a line.

    Raises:
        NotationError: it is not JSON; with the column
        MultipleRootsError: more follows a value
    """
    stack: list[_Open] = []
    place = 0
    while True:
        token, place = _next(line, place)
        if stack and not stack[-1].values and not stack[-1].keys and token == stack[-1].closer:
            value = stack.pop().tree()
        else:
            if stack and stack[-1].closer == "}":
                key, place = _key(line, place, token)
                stack[-1].keys.append(key)
                token, place = _next(line, place)
            if token in _CLOSERS:
                stack.append(_Open(place, _CLOSERS[token]))
                continue
            value, place = _scalar(line, place, token)
        # A value may be the last one of what surrounds it, and that the last one of what surrounds that.
        while stack:
            stack[-1].values.append(value)
            token, place = _next(line, place)
            if token == ",":
                break
            if token != stack[-1].closer:
                raise _expected(f"',' or {stack[-1].closer!r}", line, place, token, stack)
            value = stack.pop().tree()
        else:
            return _whole(value, line, place)


def _next(line: str, place: int) -> tuple[str, int]:
    """The next token, empty at the end of the line, and the place behind it."""
    found = _TOKEN.match(line, place)
    return found[1], found.end()


def _key(line: str, place: int, token: str) -> tuple[str, int]:
    if token != '"':
        raise _expected("a key in quotation marks", line, place, token)
    key, place = _string(line, place)
    token, place = _next(line, place)
    if token != ":":
        raise _expected("':'", line, place, token)
    return key, place


def _scalar(line: str, place: int, token: str) -> tuple[Tree, int]:
    """The leaf that begins with a token, and the place behind it."""
    if token == '"':
        text, place = _string(line, place)
        return Tree(quoted(text, is_leaf=True)), place
    if not is_literal(token):
        raise _expected("a value", line, place, token)
    return Tree(token), place


def _string(line: str, place: int) -> tuple[str, int]:
    """The string whose first quotation mark stands before a place, and the place behind it."""
    try:
        text, end = scanstring(line, place)
    except JSONDecodeError as error:
        message, hint = (
            f"in a string: {error.msg.removesuffix(' at')}",
            "Strings stand in quotation marks, escapes are JSON's.",
        )
        raise NotationError(message, column=error.pos + 1, hint=hint) from None
    if _SURROGATE.search(text):
        raise NotationError("half of a character in a string", column=place, hint="Write both of its \\u codes.")
    return text, end


def _whole(value: Tree, line: str, place: int) -> Tree:
    token, place = _next(line, place)
    if token:
        message = f"{shorten(token)!r} follows a complete value"
        raise MultipleRootsError(message, column=place - len(token) + 1, hint="A line holds one JSON value.")
    return value


def _expected(what: str, line: str, place: int, token: str, stack: list[_Open] | None = None) -> NotationError:
    if not token and stack:
        return NotationError(
            f"the line ends where {len(stack)} more brackets should close, the first of them opened here",
            column=stack[0].column,
            hint="A value has to stand on one line.",
        )
    shown = repr(shorten(token)) if token else "the end of the line"
    message = f"{what} should stand here, not {shown}"
    return NotationError(message, column=place - len(token) + 1, hint="The line has to be JSON.")
