"""Python by the standard library's ``ast``: a symbol for each node, with its fields as in the abstract grammar."""

from __future__ import annotations

import ast
import functools
import platform
import re
import warnings
from typing import Any

from tree_fairseq.errors import EmptySymbolTreeError
from tree_fairseq.source_code.language import LINE_BREAK, Language, syntax_error
from tree_fairseq.source_code.productions import counted_list, leaf_label, list_word, node, parse_label
from tree_fairseq.trees.text import escape_label, unescape_label
from tree_fairseq.trees.tree import Tree

_FIELD = re.compile(r"(\w+)([?*]?) (\w+)")
_SKIPPED = frozenset(["ctx", "type_comment", "type_ignores", "kind"])
_ABSENT = "Absent"  # an element of a list that is None, such as the key of ``**`` in a dictionary
_SINGLETONS = {"None": None, "True": True, "False": False, "Ellipsis": ...}
_LITERALS = {"int": int, "float": float, "complex": complex, "bytes": ast.literal_eval}
_IDENTIFIER = "identifier"
OPENER = "Opener"  # the root of a line that opens a block, such as ``if x :``, without the block

# A line that opens a block is completed before it is parsed: a pattern of its first word, the text before the line, and
# the text after it.
_OPENERS = (
    (r"(?:async\s+)?(?:if|for|while|with|def|class)\b", "", " pass"),
    (r"else\b", "if x: pass\n", " pass"),
    (r"elif\b", "if x: pass\n", " pass"),
    (r"try\b", "", " pass\nfinally: pass"),
    (r"except\b(?!\s*\*)", "try: pass\n", " pass"),
    (r"finally\b", "try: pass\n", " pass"),
    (r"@", "", "\ndef f(): pass"),
)


class Python(Language):
    """Programs of the running version of Python, whole ones and single lines that open a block."""

    name = "python"
    is_exact = True

    def identity(self) -> dict[str, str]:
        version = ".".join(platform.python_version_tuple()[:2])
        return {"name": self.name, "library": "ast", "version": version}

    def parse(self, text: str) -> Tree:
        program = text.replace(LINE_BREAK, "\n").strip()
        if not program:
            raise EmptySymbolTreeError("there is no program on the line", hint="Remove it, and its parallel line.")
        try:
            return _tree(_parsed(program))
        except SyntaxError as error:
            opener = _opener(program)
            if opener is not None:
                return opener
            offset = len(text) - len(text.lstrip())
            column = None if error.offset is None else error.offset + offset * (error.lineno == 1)
            raise syntax_error("Python", error.msg, text, error.lineno, column) from None
        except ValueError as error:
            raise syntax_error("Python", str(error), text) from None

    def unparse(self, tree: Tree) -> str:
        if tree.label.partition(" ")[0] == OPENER:
            return _opener_text(tree)
        # Within a string, the character that stands for a line break is written by its code.
        return ast.unparse(tree.fold(_ast)).replace(LINE_BREAK, r"\xa7")


def _parsed(program: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # An invalid escape in a string is a program nevertheless, under -W error too.
        return ast.parse(program)


@functools.cache
def _fields(node_class: type) -> tuple[tuple[str, str, str], ...]:
    """The type, the quantifier and the name of each field of a class, as its docstring has the abstract grammar."""
    inside = (node_class.__doc__ or "").partition("(")[2]
    return tuple((kind, many, name) for kind, many, name in _FIELD.findall(inside) if name not in _SKIPPED)


def _tree(here: ast.AST, type_name: str | None = None) -> Tree:
    words: list[str] = []
    children: list[Tree] = []
    if isinstance(here, ast.Constant):
        return _constant(here)
    text = None
    node_class = type(here)
    fields = _fields(node_class)
    for kind, many, name in fields:
        value = getattr(here, name, None)
        if value is None or value == []:
            continue
        if many == "*":
            if kind == "cmpop":
                words.append(f"{name}={','.join(type(item).__name__ for item in value)}")
                continue
            words.append(counted_list(name, len(value)))
            children += map(_child, value)
        elif isinstance(value, str):
            if len(fields) == 1:
                text = value
            else:
                words.append(name)
                children.append(Tree(leaf_label(_IDENTIFIER, value)))
        elif isinstance(value, int):
            if value:
                words.append(f"{name}={value}")
        elif not isinstance(value, ast.AST):
            words.append(f"{name}={escape_label(repr(value))}")
        elif not _fields(type(value)) and isinstance(value, (ast.operator, ast.unaryop, ast.boolop)):
            words.append(f"{name}={type(value).__name__}")
        else:
            words.append(name)
            children.append(_tree(value))
    type_name = type_name or node_class.__name__
    return Tree(leaf_label(type_name, text)) if text is not None else node(type_name, words, children)


def _child(value: Any) -> Tree:
    if isinstance(value, ast.AST):
        return _tree(value)
    return Tree(_ABSENT) if value is None else Tree(leaf_label(_IDENTIFIER, value))


def _constant(here: ast.Constant) -> Tree:
    value = here.value
    if value is None or value is True or value is False or value is ...:
        return Tree("Ellipsis" if value is ... else str(value))
    if isinstance(value, str):
        return Tree(leaf_label("str +u" if here.kind else "str", value))
    return Tree(leaf_label(type(value).__name__, repr(value)))


def _ast(here: Tree, children: list[Any]) -> Any:
    production = parse_label(here.label)
    [link] = production.links
    type_name = link.type.rstrip(":")
    if type_name == _IDENTIFIER:
        return production.text
    if type_name == _ABSENT:
        return None
    if type_name in _SINGLETONS:
        return ast.Constant(_SINGLETONS[type_name], kind=None)
    if type_name == "str":
        return ast.Constant(production.text, kind="u" if link.words else None)
    if type_name in _LITERALS:
        return ast.Constant(_LITERALS[type_name](production.text), kind=None)
    node_class = getattr(ast, type_name)
    values = iter(children)
    arguments: dict[str, Any] = {}
    kinds = {name: (kind, many) for kind, many, name in _fields(node_class)}
    for word in link.words:
        name, is_constant, constant = word.partition("=")
        if not is_constant:
            name, is_list, count = list_word(word)
            arguments[name] = [next(values) for _ in range(count)] if is_list else next(values)
        elif kinds[name][0] == "int":
            arguments[name] = int(constant)
        elif kinds[name][0] == "cmpop":
            arguments[name] = [getattr(ast, operator)() for operator in constant.split(",")]
        elif kinds[name][0] == "constant":
            arguments[name] = ast.literal_eval(unescape_label(constant))
        else:
            arguments[name] = getattr(ast, constant)()
    if next(values, None) is not None:
        raise ValueError(f"{here.label!r} has {len(children)} children")
    if production.text is not None:
        [name] = kinds
        arguments[name] = production.text
    for name, (kind, many) in kinds.items():
        if name not in arguments:
            arguments[name] = [] if many == "*" else 0 if kind == "int" and many != "?" else None
    if "lineno" in node_class._attributes:
        arguments["lineno"] = 1  # which `ast.unparse` looks for
    if "ctx" in node_class._fields:
        arguments["ctx"] = ast.Load()
    if node_class is ast.Module:
        arguments["type_ignores"] = []
    return node_class(**arguments)


def _opener(program: str) -> Tree | None:
    """The tree of a line that opens a block; None if it is not one."""
    for pattern, before, after in _OPENERS:
        if not re.match(pattern, program):
            continue
        try:
            statement = _parsed(before + program + after).body[0]
        except SyntaxError:
            return None
        word = re.match(r"\w*|@", program)[0] or "@"
        return node(OPENER, ["of"], [_opened(word, statement)])
    return None


def _opened(word: str, statement: Any) -> Tree:
    """The tree of the opener of a statement: its node without a block, under a type that ends in a colon."""
    if word == "@":
        return node("Decorator:", ["value"], [_tree(statement.decorator_list[0])])
    if word in ("else", "try", "finally"):
        return Tree(f"{word.capitalize()}:")
    opened = statement
    if word == "elif":
        opened = statement.orelse[0]
    elif word == "except":
        opened = statement.handlers[0]
    opened.body = []
    name = "Elif" if word == "elif" else type(opened).__name__
    return _tree(opened, f"{name}:")


def _opener_text(tree: Tree) -> str:
    """The text of an opener: that of its statement with a block, of which the first lines are kept."""
    [opened] = tree.children
    type_name = opened.label.partition(" ")[0].rstrip(":")
    if type_name in ("Else", "Try", "Finally"):
        return f"{type_name.lower()}:"
    if type_name == "Decorator":
        return f"@{ast.unparse(opened.children[0].fold(_ast))}"
    is_elif = type_name == "Elif"
    if is_elif:
        opened = Tree(opened.label.replace("Elif:", "If:", 1), opened.children)
    statement = opened.fold(_ast)
    statement.body = [ast.Pass()]
    if isinstance(statement, ast.ExceptHandler):
        statement = ast.Try(body=[ast.Pass()], handlers=[statement], orelse=[], finalbody=[])
    lines = ast.unparse(statement).split("\n")
    kept = lines[2:-1] if isinstance(statement, ast.Try) else lines[:-1]
    return ("el" if is_elif else "") + "\n".join(kept)
