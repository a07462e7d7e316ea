"""SQL by sqlglot: all dialects that it reads, one symbol for each of its expressions."""

from __future__ import annotations

import enum
import logging
import re
from collections.abc import Iterable
from importlib import metadata
from typing import Any

from tree_fairseq.errors import NotationError
from tree_fairseq.source_code.language import LINE_BREAK, Language, syntax_error
from tree_fairseq.source_code.productions import counted_list, leaf_label, list_word, node, parse_label
from tree_fairseq.support.python_versions import import_library
from tree_fairseq.trees.text import escape_label, unescape_label
from tree_fairseq.trees.tree import Tree

_ENUM = "@"  # begins the name of a member of an enumeration of sqlglot
_USUAL = {"Identifier": {"quoted": False}, "Literal": {"is_string": False}}  # which labels leave out
_TEXT = "text"  # the type of a leaf that is a string in sqlglot
# What a line may be. sqlglot also reads expressions, such as ``hello world`` (a column with an alias), and as a command
# all that follows a word like SHOW or EXPLAIN.
_STATEMENTS = (
    *("Query", "Values", "Insert", "Update", "Delete", "Merge"),
    *("Create", "Drop", "Alter", "TruncateTable"),
)


def _line_breaks(comments: Iterable[str], has_escapes: bool) -> re.Pattern:
    """Finds line breaks, and what holds no break: strings, quoted names, and comments up to their end."""
    inner = r"(?:\\.|[^\\%s])*" if has_escapes else "[^%s]*"
    kept = [quote + inner % quote + quote for quote in "'\"`"]
    kept += [f"{re.escape(comment)}[^{LINE_BREAK}]*" for comment in comments]
    return re.compile(rf"({'|'.join(kept)}|/\*.*?\*/)|{LINE_BREAK}")


_LINE_BREAKS = _line_breaks(["--"], False)


def with_line_breaks(query: str, line_breaks: re.Pattern = _LINE_BREAKS) -> str:
    """A query with the line breaks that a corpus of one query a line marks; in strings the mark stands for itself."""
    return line_breaks.sub(lambda found: found[1] or "\n", query) if LINE_BREAK in query else query


def quiet_sqlglot(needed_for: str) -> Any:
    """The library sqlglot, which no longer warns of statements that it does not read."""
    sqlglot = import_library("sqlglot", "code", needed_for)
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    return sqlglot


def leave_out_schemas(expression: Any) -> Any:
    """Leaves out the schemas before names of tables, which SQLite does not have: ``public.city`` is ``city``."""
    for part in expression.walk():
        for qualifier in ("db", "catalog"):
            if part.args.get(qualifier):
                part.set(qualifier, None)
    return expression


class Sql(Language):
    """Statements of SQL in a dialect of sqlglot, such as ``sqlite`` or ``postgres``; without one, in its superset."""

    def __init__(self, dialect: str = ""):
        self.dialect = dialect
        self.name = f"sql:{dialect}" if dialect else "sql"
        self._is_foreign = dialect not in ("", "sqlite")  # SQLite runs translations
        self._sqlglot = quiet_sqlglot(f"--notation {self.name}")
        self._statements = tuple(getattr(self._sqlglot.exp, name) for name in _STATEMENTS)
        try:
            tokenizer = self._sqlglot.Dialect.get_or_raise(dialect or None).tokenizer_class
        except ValueError as error:
            raise NotationError(f"{self.name}: {error}") from None
        comments = (mark for mark in tokenizer.COMMENTS if isinstance(mark, str))  # pairs are those of /* ... */
        self._line_breaks = _line_breaks(comments, "\\" in tokenizer.STRING_ESCAPES)

    def identity(self) -> dict[str, str]:
        return {"name": self.name, "library": "sqlglot", "version": metadata.version("sqlglot")}

    def parse(self, text: str) -> Tree:
        try:
            statements = self._sqlglot.parse(self.with_line_breaks(text), read=self.dialect or None)
        except self._sqlglot.errors.SqlglotError as error:
            found = (getattr(error, "errors", None) or [{}])[0]
            message = (found.get("description") or str(error).split("\n")[0]).partition(" but got <")[0].rstrip(".")
            raise syntax_error("SQL", message, text, found.get("line"), found.get("col")) from None
        except (AttributeError, TypeError, ValueError, KeyError, IndexError):
            raise syntax_error("SQL", "sqlglot cannot read this query", text) from None
        semicolon = self._sqlglot.exp.Semicolon  # one with a comment behind it
        statements = [each for each in statements if each is not None and not isinstance(each, semicolon)]
        if len(statements) != 1:
            raise NotationError(f"{len(statements)} statements", hint="A line contains one statement.")
        if not isinstance(statements[0], self._statements):
            start = len(text) - len(text.lstrip()) + 1
            raise syntax_error("SQL", "neither a query nor a statement that changes rows or tables", text, 1, start)
        return _tree(statements[0])

    def unparse(self, tree: Tree) -> str:
        return _text_in(self.dialect, tree.fold(self._expression))

    def with_line_breaks(self, query: str) -> str:
        """A query with the line breaks that are marked outside of the strings and comments of the dialect."""
        return with_line_breaks(query, self._line_breaks)

    def translated(self, query: str) -> str:
        """A query of another dialect as SQLite runs it; without one, and if it does not parse, as it is."""
        try:
            return self.write_for_sqlite(self.parse(query)) if self._is_foreign else query
        except (NotationError, RecursionError):
            return query

    def write_for_sqlite(self, tree: Tree) -> str:
        """Writes a query of another dialect as one of SQLite, which runs it on a schema; without one, as it is."""
        if not self._is_foreign:
            return self.write(tree)
        sqlite = self._sqlglot.Dialect.get_or_raise("sqlite")
        sqlite.IDENTIFIER_START = sqlite.IDENTIFIER_END = "`"  # SQLite takes "x" for a text where x is no column
        try:
            return _text_in(sqlite, leave_out_schemas(self.whole(tree).fold(self._expression)))
        except Exception:  # what sqlglot cannot write does not run
            return ""

    def _expression(self, here: Tree, children: list[Any]) -> Any:
        production = parse_label(here.label)
        [link], values = production.links, iter(children)
        if link.type == _TEXT:
            return production.text
        arguments: dict[str, Any] = dict(_USUAL.get(link.type, {}))
        for word in link.words:
            name, is_constant, constant = word.partition("=")
            if word[0] in "+-":
                arguments[word[1:]] = word[0] == "+"
            elif is_constant:
                arguments[name] = self._constant(unescape_label(constant))
            else:
                name, is_list, count = list_word(word)
                arguments[name] = [next(values) for _ in range(count)] if is_list else next(values)
        if next(values, None) is not None:
            raise ValueError(f"{here.label!r} has {len(children)} children")
        if production.text is not None:
            arguments["this"] = production.text
        return getattr(self._sqlglot.exp, link.type)(**arguments)

    def _constant(self, text: str) -> Any:
        if not text.startswith(_ENUM):
            return text
        kind, _, member = text[1:].partition(".")
        return int(member) if kind == "int" else getattr(self._sqlglot.exp, kind)[member]


def _text_in(dialect: Any, expression: Any) -> str:
    return expression.sql(dialect=dialect or None, comments=False, normalize_functions=False)


def _tree(expression: Any) -> Tree:
    """The tree of an expression of sqlglot. Comments are left out."""
    type_name, words, children, text = type(expression).__name__, list[str](), list[Tree](), None
    for name in _ordered(expression):
        value = expression.args[name]
        if value is None or value == [] or value is _USUAL.get(type_name, {}).get(name):
            continue
        if value is True or value is False:
            words.append(f"{'+' if value else '-'}{name}")
        elif hasattr(value, "args"):
            words.append(name)
            children.append(_tree(value))
        elif isinstance(value, list):
            words.append(counted_list(name, len(value)))
            children += map(_item, value)
        elif isinstance(value, enum.Enum):
            words.append(f"{name}={_ENUM}{type(value).__name__}.{value.name}")
        elif isinstance(value, int):
            words.append(f"{name}={_ENUM}int.{value}")
        elif name == "this":
            text = _text(value)
        else:
            words.append(f"{name}={escape_label(_text(value))}")
    if text is None:
        return node(type_name, words, children)
    if not children:
        return Tree(leaf_label(" ".join((type_name, *words)), text))
    return node(type_name, ["this", *words], [Tree(leaf_label(_TEXT, text)), *children])


def _item(value: Any) -> Tree:
    return _tree(value) if hasattr(value, "args") else Tree(leaf_label(_TEXT, _text(value)))


def _ordered(expression: Any) -> list[str]:
    """The names of an expression's arguments, in the order of its class and then by name."""
    known = [name for name in expression.arg_types if name in expression.args]
    return known + sorted(expression.args.keys() - set(known))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise NotationError(f"a part of the query cannot be written as a tree: {value!r}")
