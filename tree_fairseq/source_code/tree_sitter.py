"""Any language with a grammar for tree-sitter: Java, C# and JavaScript by name, others by the module of their grammar.

A node has the tokens between its children as words: ``if_statement 'if condition consequence``. Text is the tokens from
left to right, with the blanks that people write. Comments are left out. Where the text of a program would not have the
same tree, because line breaks end its statements, the breaks between the parts of a node are words, too. A break says
whether the next line begins below the child before (``=``), deeper than the line in which the node begins (``>``), or
level with it (``<``). Where that is not enough, a word without text stands between parts that touch. In Bash it always
does, because blanks separate words.
"""

from __future__ import annotations

import enum
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from typing import Any, NamedTuple

from tree_fairseq.errors import EmptySymbolTreeError, MissingLibraryError, NotationError, SymbolTreeError
from tree_fairseq.source_code.language import LINE_BREAK, Language, syntax_error, unwritable
from tree_fairseq.source_code.productions import counted, leaf_label, list_word, node, parse_label, split_leaf
from tree_fairseq.source_code.spacing import BEGIN, BREAK, END, LEAF, PART, PREFIX, TABLE, TOUCH, Spacing, indentation
from tree_fairseq.support.python_versions import import_library
from tree_fairseq.trees.text import escape_label, unescape_label
from tree_fairseq.trees.tree import Tree

_TOUCH = "'"  # no blank between two parts
_SIGIL = re.compile(r"[-+*&$@!~#'^]+")  # where it begins a node, it belongs to what follows
_HIDDEN = re.compile(r"\s*(.*?(?:\\[ \t])?)\s*", re.DOTALL)  # text between tokens; a blank may be escaped, as in Bash
_LITERAL = re.compile("string|char(acter)?_literal|regex")


class Wrapper(NamedTuple):
    """Text around a fragment that is legal only inside something else, and the nodes that lead down to it."""

    name: str
    before: str
    after: str
    path: tuple[str, ...]


class Layout(enum.IntEnum):
    """How much of the layout of a program its tree keeps."""

    NONE = 0
    BREAKS = 1  # and how far lines are indented
    ALL = 2  # breaks, and which parts touch


_APART = Spacing(is_apart=True)
_WHOLE = Wrapper("file", "", "", ())


def _member(class_body: str) -> Wrapper:
    return Wrapper("member", "class X {", "\n}", ("class_declaration", class_body))  # may end with a comment


def _wrappers(class_body: str) -> tuple[Wrapper, ...]:
    member = _member(class_body)
    block = (*member.path, "method_declaration", "block")
    return (member, _WHOLE, Wrapper("statement", "class X {void x(){", "\n}}", block))


_WRAPPERS = {
    "java": _wrappers("class_body"),
    "c_sharp": _wrappers("declaration_list"),
    "javascript": (_WHOLE, _member("class_body")),
    "typescript": (_WHOLE, _member("class_body")),
    "php": (_WHOLE, _member("declaration_list")),
}


class TreeSitter(Language):
    """A language whose grammar is a Python module such as ``tree_sitter_java``."""

    def __init__(self, module: str, name: str | None = None):
        self.name = name or f"tree-sitter:{module}"
        self._module = module
        purpose = f"--notation {self.name}"
        # A folder names its notation, so no module is imported that nobody has installed as a grammar.
        known = "tree_sitter_" + re.sub(r"\W", "_", re.sub("^tree.sitter.", "", module))
        if module != known or not any(metadata.distributions(name=_distribution(module))):
            message = f"{purpose} needs a grammar of tree-sitter, and {module} is not installed as one"
            way_out = f"pip install {_distribution(known)}, and give tree-sitter:{known}"
            raise MissingLibraryError(f"{message}: {way_out}")
        library = import_library("tree_sitter", "code", purpose)
        key = module.replace("tree_sitter_", "")
        grammars = import_library(module, "code", purpose)
        # A module with several dialects has a function for each, such as that of TypeScript. With language_php, PHP
        # without a tag is the text of a page.
        names = ("language", f"language_{key}_only", f"language_{key}")
        function = next((getattr(grammars, name) for name in names if hasattr(grammars, name)), None)
        if function is None:
            raise MissingLibraryError(f"{purpose}: {module} has neither language() nor language_{key}()")
        self._parser = library.Parser(library.Language(function()))
        self._wrappers = _WRAPPERS.get(key, (_WHOLE,))
        self._spacing = TABLE.get(key, Spacing())
        self._is_known = key in TABLE
        # Where blanks separate words, the same tree may be another program: `[-z` is no `[ -z`.
        self._layouts = (Layout.ALL,) if self._spacing.is_apart else tuple(Layout)

    def identity(self) -> dict[str, str]:
        return {"name": self.name, "library": self._module, "version": metadata.version(_distribution(self._module))}

    def parse(self, text: str, layout: Layout | None = None) -> Tree:
        layout = self._layouts[0] if layout is None else layout
        if not text.replace(LINE_BREAK, "").strip():
            raise EmptySymbolTreeError("there is no program on the line", hint="Remove it, and its parallel line.")
        first_error = None
        for wrapper in self._wrappers:
            source = (wrapper.before + text.replace(LINE_BREAK, "\n") + wrapper.after).encode()
            root = self._parser.parse(source).root_node
            if not root.has_error:
                inside = self._inside(root, wrapper)
                if inside is not None:
                    return _Reader(source, layout).tree(inside, f"{wrapper.name}:", skip_ends=bool(wrapper.path))
            elif first_error is None:
                below = preorder(root, lambda node: not node.has_error)
                first_error = next((node for node in below if node.type == "ERROR" or node.is_missing), root), wrapper
        if first_error is None:
            raise NotationError(f"not {self.name}: no fragment that can be parsed")
        found, wrapper = first_error
        row, column = found.start_point
        before = wrapper.before if row == 0 else ""
        line = before + text.split(LINE_BREAK)[row] if row <= text.count(LINE_BREAK) else ""
        # Columns of tree-sitter are bytes.
        place = max(0, len(line.encode()[:column].decode("utf-8", "ignore")) - len(before))
        rest = line[len(before) + place :][:40]
        message = f"{found.type} is missing" if found.is_missing else f"cannot be parsed from {rest!r} on"
        raise syntax_error(self.name, message, text, row + 1, place + 1)

    def _as_written(self, line: str, tree: Tree) -> Tree:
        """The tree with the least layout that makes its text have the same tree."""
        for layout in self._layouts:
            kept = tree if layout == self._layouts[0] else self.parse(line, layout)
            written = self.write(kept)
            if not written:
                message = "there are only comments on the line"
                raise EmptySymbolTreeError(message, hint="Remove it, and its parallel line.")
            if written == line or self._is_tree_of(written, kept, layout):
                return kept
            if layout and self._is_tree_of(written, self.parse(line, Layout.NONE), Layout.NONE):
                return self._as_written(written, self.parse(written))  # lines of several depths have become level
        raise unwritable(self.name)

    def _is_tree_of(self, text: str, tree: Tree, layout: Layout) -> bool:
        try:
            return self.whole(self.parse(text, layout)) == self.whole(tree)
        except SymbolTreeError:
            return False

    def is_tree_of(self, text: str, whole: Tree) -> bool:
        return any(self._is_tree_of(text, whole, layout) for layout in _layouts(_tokens(whole)))

    @staticmethod
    def _inside(root: Any, wrapper: Wrapper) -> Any:
        """The node whose children are the fragment; None if the fragment closes what is around it."""
        here = root
        for kind in wrapper.path:
            named = [child for child in here.children if child.type == kind]
            if len(named) != 1 or (here is root and len(here.children) != 1):
                return None
            here = named[0]
        is_all = not wrapper.path or here.end_byte + wrapper.after.count("}") - 1 >= root.end_byte
        return here if is_all else None

    def unparse(self, tree: Tree) -> str:
        tokens = list(_tokens(tree))
        if ("", TOUCH) not in tokens:
            text = self._spacing.join(tokens)
            if self._is_known or self.is_tree_of(text, tree):
                return text
        return _APART.join(tokens)


def _tokens(tree: Tree) -> Iterator[tuple[str, str]]:
    """Yields the tokens from left to right, each with the type of its node or one of the kinds of spacing."""
    stack: list[tuple[str, str] | Tree] = [tree]
    while stack:
        item = stack.pop()
        if not isinstance(item, Tree):
            yield item
            continue
        head, text = split_leaf(item.label)
        if text is not None:
            yield text, LEAF
            continue
        [link] = parse_label(item.label).links
        parts: list[tuple[str, str] | Tree] = []
        children = iter(item.children)
        for word in link.words:
            if word[0] == "'":
                parts.append(_token(unescape_label(word[1:]), link.type))
            else:
                parts += [next(children) for _ in range(list_word(word)[2])]
        if next(children, None) is not None:
            raise ValueError(f"{item.label!r} has {len(item.children)} children")
        if len(parts) > 1 and isinstance(parts[0], tuple) and _SIGIL.fullmatch(parts[0][0]):
            parts[0] = parts[0][0], PREFIX
        if any(isinstance(part, tuple) and part[1] == BREAK for part in parts):
            marked = ([("", PART), part] if isinstance(part, Tree) else [part] for part in parts)
            parts = [("", BEGIN), *itertools.chain.from_iterable(marked), ("", END)]
        stack += reversed(parts)


def _layouts(tokens: Iterable[tuple[str, str]]) -> tuple[Layout, ...]:
    """How much of its layout the tree of these tokens may keep."""
    kinds = {kind for _, kind in tokens}
    if TOUCH in kinds:
        return (Layout.ALL,)
    return (Layout.BREAKS,) if BREAK in kinds else (Layout.NONE, Layout.BREAKS)


def _token(text: str, type_name: str) -> tuple[str, str]:
    if not text:
        return "", TOUCH
    return (text[1:], BREAK) if text[0] == "\n" else (text, type_name)


def _distribution(module: str) -> str:
    return module.replace("_", "-")


def _is_text(here: Any) -> bool:
    """Whether a node is a leaf: a name, a number, or a literal with quotation marks."""
    return here.is_named and (here.child_count == 0 or _LITERAL.search(here.type) is not None)


def _token_text(here: Any) -> str:
    """The text of a token, in the usual form: a grammar may name several by one, as Bash's names ``$$`` ``$``."""
    text = here.text.decode()
    return here.type if "".join(text.split()).lower() in ("", "".join(here.type.split()).lower()) else text


def _first_token(here: Any) -> Any:
    """The first token of a node, which may begin with blanks or a break, such as Ruby's "rescue"."""
    while not _is_text(here):
        first = next((child for child in here.children if not child.is_extra), None)
        if first is None:
            break
        here = first
    return here


class _Before(NamedTuple):
    """Where the part of a node before another ends, and the column where it begins, if it is a child."""

    row: int | None
    byte: int = -1
    column: int = -1


class _Reader:
    """Makes trees of tree-sitter's nodes, with a layout."""

    def __init__(self, source: bytes, layout: Layout):
        self._source, self._layout = source, layout
        self._lines = source.decode().split("\n") if layout else []

    def tree(self, here: Any, type_name: str | None = None, skip_ends: bool = False) -> Tree:
        """The tree of a node, under a name of its own; ``skip_ends`` leaves out its brackets."""
        if type_name is None and _is_text(here):
            return Tree(leaf_label(here.type, here.text.decode()))
        names: list[str] = []
        children: list[Tree] = []
        below = here.children
        last = here.start_byte  # the end of the token or comment before
        before = _Before(None if type_name else here.start_point.row)
        for place, child in enumerate(below):
            # Ends of statements, and of files, may be tokens without text.
            if child.start_byte == child.end_byte and not child.is_named:
                continue
            if not child.is_extra and not (skip_ends and place in (0, len(below) - 1)):
                if self._layout:
                    names += self._between(before, child, here, last)
                    row = child.start_point.row + child.text.rstrip().count(b"\n")  # a node may end with its break
                    before = _Before(
                        row, child.end_byte, _first_token(child).start_point.column if child.is_named else -1
                    )
                if child.is_named:
                    names.append(here.field_name_for_child(place) or "_")
                    children.append(self.tree(child))
                else:
                    names.append("'" + escape_label(_token_text(child)))
            last = child.end_byte
        words: list[str] = []
        for name, group in itertools.groupby(names):
            same = list(group)
            words += same if name[0] == "'" else [counted(name, len(same))]
        return node(type_name or here.type, words, children)

    def _between(self, before: _Before, child: Any, here: Any, last: int) -> Iterator[str]:
        """Yields the words for what stands between a part of a node and the part before."""
        if hidden := _HIDDEN.fullmatch(self._source[last : child.start_byte].decode())[1]:
            yield "'" + escape_label(hidden)  # such as the semicolon between the rows of a matrix in Julia
        first = _first_token(child)
        if first.start_point.row > child.start_point.row:
            return  # the node has the break
        if before.row is not None and child.start_point.row > before.row:
            is_deeper = first.start_point.column > indentation(self._lines[here.start_point.row])
            place = "=" if first.start_point.column == before.column else ">" if is_deeper else "<"
            yield "'" + escape_label("\n" + place)
        elif self._layout == Layout.ALL and first.start_byte == before.byte:
            yield _TOUCH


def preorder(root: Any, is_whole: Callable[[Any], bool] = lambda node: False) -> Iterator[Any]:
    """Yields the nodes of tree-sitter's tree; what is below a node that ``is_whole`` is left out."""
    stack = [root]
    while stack:
        here = stack.pop()
        yield here
        if not is_whole(here):
            stack += reversed(here.children)
