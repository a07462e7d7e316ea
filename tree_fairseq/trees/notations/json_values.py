r"""Any JSON value as a tree; the two usual forms of trees in JSON become the trees that they describe.

=========================================  ====================================================================
value                                      tree
=========================================  ====================================================================
``{"tag": "If", "contents": [x, y]}``      ``If`` over ``x`` and ``y``
``{"tag": "Var", "contents": x}``          ``Var`` over ``x``; a list of fewer than two stays a list, ``[]``
``{"root": "f", "children": [x, y]}``      ``{root}`` over ``f`` over ``x`` and ``y``, if these have the same form
``{"label": "f", "children": [x, y]}``     ``f`` over ``{label}`` over ``x`` and ``y``, which are nodes of this form,
                                           too; within other values ``{label}`` over ``f`` over both
``{"a": x, "b": y}``                       ``{}`` over ``a`` over ``x`` and ``b`` over ``y``
``[x, y]``                                 ``[]`` over ``x`` and ``y``
``"a1"``, ``2``, ``true``                  leaves ``a1``, ``2``, ``true``
``"2"``, ``"true"``, ``"[]"``              leaves in quotation marks, as without them they would mean something else
``{"": ["f", ["x"], ["y"]]}``              ``f`` over ``x`` and ``y``, if no other value has this tree
=========================================  ====================================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tree_fairseq.errors import InputError, MultipleRootsError, NotationError
from tree_fairseq.trees.notations.json_nodes import (
    FLAT,
    FLAT_ZERO,
    KEYS,
    LIST,
    MARKERS,
    OBJECT,
    PARSE,
    fields_of,
    flat_text,
    flat_tree,
    is_literal,
    is_string,
    node_pieces,
    node_tree,
    parse_pieces,
    parse_tree,
    quote,
    text_of,
)
from tree_fairseq.trees.notations.notation import Notation, Piece, separated
from tree_fairseq.trees.text import shorten
from tree_fairseq.trees.tree import Tree

ROOTED = "{root}"  # the label above a tree that is written with the keys ``root`` and ``children``

_TOKEN = re.compile(r'\s*([{}\[\],:"]|[^\s{}\[\],:"]+|\Z)')
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPELLED = "spelled"  # the place of the nodes of a tree that no other value has
_CLOSERS = {"{": "}", "[": "]"}
_DECODER = json.JSONDecoder()


class JsonNotation(Notation):
    """Trees as JSON values. The place of a node is the key of its label: that of the marker above it, or none."""

    WHOLE: str = ""

    def _read(self, line: str) -> Tree:
        tree = _with_marker_moved(_JsonReader(line).read())
        spelled = _spelled_tree(tree)
        return tree if spelled is None or self._plain(spelled) is not None else spelled

    def write(self, tree: Tree) -> str:
        plain = self._plain(tree)
        return f'{{"":{self._text(tree, _SPELLED)}}}' if plain is None else plain

    def _plain(self, tree: Tree) -> str | None:
        """The text of the JSON value that is read as this tree, or None if no value is."""
        try:
            text = super().write(_with_marker_moved(tree))
            return text if self._read(text) == tree else None
        except (InputError, ValueError, IndexError):
            return None

    def _pieces(self, node: Tree, key: str) -> list[Piece]:
        label, children = node.label, node.children
        items = separated([(child, key) for child in children], ",")
        if key == _SPELLED:
            return ["[", quote(label), "," * bool(children), *items, "]"]
        if key in KEYS:
            return node_pieces(node, key)
        if key:
            return [f'{{"root":{quote(label)},"children":[', *items, "]}"]
        if not children and label not in (LIST, OBJECT):
            return [label if is_literal(label) else quote(text_of(label))]
        if label == ROOTED:
            return [(children[0], "root")]
        if label in KEYS.values():
            return [(children[0], label[1:-1])]
        if label in (FLAT, FLAT_ZERO):
            return [flat_text(node)]
        if label == PARSE:
            return parse_pieces(node)
        if label == LIST:
            return ["[", *items, "]"]
        if label == OBJECT:
            fields: list[Piece] = []
            for entry in children:
                fields += [",", f"{quote(entry.label)}:", (entry.children[0], "")]
            return ["{", *fields[1:], "}"]
        contents = ["[", *items, "]"] if len(children) > 1 else items
        return [f'{{"tag":{quote(text_of(label))},"contents":', *contents, "}"]


def _label_of(text: str, *, is_leaf: bool) -> str:
    """The label of a string (``is_leaf``) or a tag: in quotation marks if it would mean something else without them."""
    is_special = text in (LIST, OBJECT, ROOTED, *MARKERS) or text.startswith('"') or is_leaf and is_literal(text)
    return json.dumps(text, ensure_ascii=False) if is_special else text


def _object_tree(keys: Sequence[str], values: Sequence[Tree]) -> Tree:
    """The tree of an object, given its keys in order and the trees of their values."""
    tree = Tree(OBJECT, [Tree(key, (value,)) for key, value in zip(keys, values)])
    fields = fields_of(tree)
    if fields.keys() == {"tag", "contents"} and is_string(fields["tag"]):
        contents = fields["contents"]
        tag = _label_of(text_of(fields["tag"].label), is_leaf=False)
        return Tree(tag, contents.children if contents.label == LIST and len(contents.children) > 1 else (contents,))
    if fields.keys() == {"root", "children"} and is_string(fields["root"]) and fields["children"].label == LIST:
        children = fields["children"].children
        if all(child.label == ROOTED and len(child.children) == 1 for child in children):
            return Tree(ROOTED, (Tree(text_of(fields["root"].label), [child.children[0] for child in children]),))
    return node_tree(fields) or parse_tree(fields) or tree


def _with_marker_moved(tree: Tree) -> Tree:
    """Exchanges a marker and the label of the tree below it: the root of a tree is the root that it describes."""
    labels = [tree.label, *(child.label for child in tree.children)]
    if len(labels) == 2 and (labels[0] in MARKERS) != (labels[1] in MARKERS):
        return Tree(labels[1], [Tree(labels[0], tree.children[0].children)])
    return tree


def _spelled_tree(tree: Tree) -> Tree | None:
    """The tree that ``{"": [label, child, ...]}`` spells out, in which children are lists, too; None for others."""

    def spelled(node: Tree, children: list[Tree | None]) -> Tree | None:
        is_node = node.label == LIST and children and None not in children[1:] and is_string(node.children[0])
        # The first item of a list is a string, which is no node.
        return Tree(text_of(node.children[0].label), filter(None, children[1:])) if is_node else None

    fields = fields_of(tree)
    return fields[""].fold(spelled) if list(fields) == [""] else None


@dataclass
class _Open:
    """An object or a list that has not been closed; an object has as many keys as values, or one more."""

    closer: str
    keys: list[str] = field(default_factory=list)
    values: list[Tree] = field(default_factory=list)

    def tree(self) -> Tree:
        if self.closer == "}":
            return _object_tree(self.keys, self.values)
        return flat_tree(self.values) or Tree(LIST, self.values)


class _JsonReader:
    def __init__(self, line: str):
        self.line, self.place = line, 0
        self.open: list[_Open] = []

    def read(self) -> Tree:
        while True:
            token = self._next()
            top = self.open[-1] if self.open else None
            if top and not top.values and not top.keys and token == top.closer:
                value = self.open.pop().tree()
            else:
                if top and top.closer == "}":
                    top.keys.append(self._key(token))
                    token = self._next()
                if token in _CLOSERS:
                    self.open.append(_Open(_CLOSERS[token]))
                    continue
                if token == '"':
                    value = Tree(_label_of(self._string(), is_leaf=True))
                elif is_literal(token):
                    value = Tree(token)
                else:
                    raise self._expected("a value", token)
            # The value may complete the object or list around it, which may in turn complete the one around that.
            while self.open:
                self.open[-1].values.append(value)
                token = self._next()
                if token == ",":
                    break
                if token != self.open[-1].closer:
                    raise self._expected(f"',' or {self.open[-1].closer!r}", token)
                value = self.open.pop().tree()
            else:
                if token := self._next():
                    message = f"{shorten(token)!r} follows a complete value"
                    column = self.place - len(token) + 1
                    raise MultipleRootsError(message, column=column, hint="A line holds one JSON value.")
                return value

    def _next(self) -> str:
        found = _TOKEN.match(self.line, self.place)
        assert found is not None  # the alternatives match any text
        self.place = found.end()
        return found[1]

    def _key(self, token: str) -> str:
        if token != '"':
            raise self._expected("a key in quotation marks", token)
        key = self._string()
        if (token := self._next()) != ":":
            raise self._expected("':'", token)
        return key

    def _string(self) -> str:
        """The rest of the string whose quotation mark was the last token."""
        start = self.place
        try:
            text, self.place = _DECODER.raw_decode(self.line, start - 1)
        except json.JSONDecodeError as error:
            hint = "Strings are written in quotation marks, with JSON's escapes."
            message = f"in a string: {error.msg.removesuffix(' at')}"
            raise NotationError(message, column=error.pos + 1, hint=hint) from None
        if _SURROGATE.search(text):
            raise NotationError("half of a character in a string", column=start, hint="Write both of its \\u codes.")
        return text

    def _expected(self, name: str, token: str) -> NotationError:
        message = f"expected {name}, found {repr(shorten(token)) if token else 'the end of the line'}"
        return NotationError(message, column=self.place - len(token) + 1, hint="The line has to be JSON.")
