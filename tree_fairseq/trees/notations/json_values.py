r"""Any JSON value as a tree; the two usual forms of trees in JSON become the trees that they describe.

=========================================  ====================================================================
value                                      tree
=========================================  ====================================================================
``{"tag": "If", "contents": [x, y]}``      ``If`` over ``x`` and ``y``
``{"tag": "Var", "contents": x}``          ``Var`` over ``x``; a list of fewer than two stays a list, ``[]``
``{"root": "f", "children": [x, y]}``      ``{root}`` over ``f`` over ``x`` and ``y``, if these have the same form
``{"a": x, "b": y}``                       ``{}`` over ``a`` over ``x`` and ``b`` over ``y``
``[x, y]``                                 ``[]`` over ``x`` and ``y``
``"a1"``, ``2``, ``true``                  leaves ``a1``, ``2``, ``true``
``"2"``, ``"true"``, ``"[]"``              leaves in quotation marks, as without them they would mean something else
``{"": ["f", x, y]}``                      ``f`` over ``x`` and ``y``, if no other value has this tree
=========================================  ====================================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tree_fairseq.errors import MultipleRootsError, NotationError
from tree_fairseq.trees.notations.notation import Notation
from tree_fairseq.trees.text import shorten
from tree_fairseq.trees.tree import Tree

LIST = "[]"
OBJECT = "{}"
ROOTED = "{root}"
"""The label above a tree that is written with the keys ``root`` and ``children``."""

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_TOKEN = re.compile(r'\s*([{}\[\],:"]|[^\s{}\[\],:"]+|\Z)')
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_BREAK = re.compile("[\x7f-\x9f\u2028\u2029]")  # characters that some readers treat as line breaks, and controls
_CLOSERS = {"{": "}", "[": "]"}
_DECODER = json.JSONDecoder()


class JsonNotation(Notation):
    """Trees as JSON values."""

    def _read(self, line: str) -> Tree:
        return _read_json(line)

    def write(self, tree: Tree) -> str:
        parts: list[str] = []
        # The rest of the output: text, or a node and whether it is below {root}.
        stack: list[str | tuple[Tree, bool]] = [(tree, False)]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                parts.append(item)
            else:
                stack.extend(reversed(_pieces(*item)))
        return "".join(parts)


# Writing.


def _pieces(node: Tree, is_rooted: bool) -> list[str | tuple[Tree, bool]]:
    """The text of a node, with its children as nodes."""
    label, children = node.label, node.children
    if is_rooted:
        return [f'{{"root":{_quote(label)},"children":[', *_listed(children, True), "]}"]
    if not _is_regular(node):
        return ['{"":[', _quote(label), "," if children else "", *_listed(children), "]}"]
    if not children and label not in (LIST, OBJECT):
        return [label if _is_literal(label) else _quote(_text_of(label))]
    if label == ROOTED:
        return [(children[0], True)]
    if label == LIST:
        return ["[", *_listed(children), "]"]
    if label == OBJECT:
        pieces: list[str | tuple[Tree, bool]] = []
        for key in children:
            pieces += [",", f"{_quote(key.label)}:", (key.children[0], False)]
        return ["{", *pieces[1:], "}"]
    contents = ["[", *_listed(children), "]"] if len(children) > 1 else [(children[0], False)]
    return [f'{{"tag":{_quote(_text_of(label))},"contents":', *contents, "}"]


def _listed(trees: tuple[Tree, ...], is_rooted: bool = False) -> list[str | tuple[Tree, bool]]:
    pieces: list[str | tuple[Tree, bool]] = []
    for tree in trees:
        pieces += [",", (tree, is_rooted)]
    return pieces[1:]


def _quote(text: str) -> str:
    return _LINE_BREAK.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


# The correspondence of values and trees.


def _is_literal(label: str) -> bool:
    """Whether a leaf with this label is a number, ``true``, ``false`` or ``null``, not a string."""
    return label in ("true", "false", "null") or _NUMBER.fullmatch(label) is not None


def _label_of(text: str, *, is_leaf: bool) -> str:
    """The label of a string (``is_leaf``) or a tag: in quotation marks if it would mean something else without them."""
    is_special = text in (LIST, OBJECT, ROOTED) or text.startswith('"') or is_leaf and _is_literal(text)
    return json.dumps(text, ensure_ascii=False) if is_special else text


def _text_of(label: str) -> str:
    """The string or tag of a label; the inverse of `_label_of`."""
    return json.loads(label) if label.startswith('"') else label


def _object_tree(keys: Sequence[str], values: Sequence[Tree]) -> Tree:
    """The tree of an object, given its keys in order and the trees of their values."""
    fields = dict(zip(keys, values, strict=True))
    if _is_tagged(keys, values):
        contents = fields["contents"]
        tag = _label_of(_text_of(fields["tag"].label), is_leaf=False)
        return Tree(tag, contents.children if contents.label == LIST and len(contents.children) > 1 else (contents,))
    if _is_rooted(keys, values):
        children = [child.children[0] for child in fields["children"].children]
        return Tree(ROOTED, (Tree(_text_of(fields["root"].label), children),))
    tree = _escaped_tree(keys, values)
    if tree is None or _is_regular(tree):
        return Tree(OBJECT, [Tree(key, (value,)) for key, value in zip(keys, values, strict=True)])
    return tree


def _is_regular(node: Tree) -> bool:
    """Whether some value other than ``{"": [...]}`` has this node, whatever its children are."""
    tree: Tree | None = node
    while tree is not None:
        label, children = tree.label, tree.children
        if label == LIST:
            return True
        if label == ROOTED:
            return len(children) == 1
        if label != OBJECT:
            is_nested = len(children) == 1 and children[0].label == LIST and len(children[0].children) > 1
            return not is_nested and (not children and _is_literal(label) or _is_text(label, is_leaf=not children))
        if not all(len(key.children) == 1 for key in children):
            return False
        keys, values = [key.label for key in children], [key.children[0] for key in children]
        if _is_tagged(keys, values) or _is_rooted(keys, values):
            return False
        # An object of the form {"": [...]} is an ordinary object if the tree that it describes is regular.
        tree = _escaped_tree(keys, values)
    return True


def _is_tagged(keys: Sequence[str], values: Sequence[Tree]) -> bool:
    return sorted(keys) == ["contents", "tag"] and _is_string(values[keys.index("tag")])


def _is_rooted(keys: Sequence[str], values: Sequence[Tree]) -> bool:
    if sorted(keys) != ["children", "root"] or not _is_string(values[keys.index("root")]):
        return False
    children = values[keys.index("children")]
    return children.label == LIST and all(
        child.label == ROOTED and len(child.children) == 1 for child in children.children
    )


def _escaped_tree(keys: Sequence[str], values: Sequence[Tree]) -> Tree | None:
    """The tree that ``{"": [label, child, ...]}`` describes; None for other objects."""
    if list(keys) != [""] or values[0].label != LIST or not values[0].children:
        return None
    label, *children = values[0].children
    return Tree(_text_of(label.label), children) if _is_string(label) else None


def _is_string(tree: Tree) -> bool:
    return not tree.children and not _is_literal(tree.label) and _is_text(tree.label, is_leaf=True)


def _is_text(label: str, *, is_leaf: bool) -> bool:
    """Whether this is the label of some string or tag."""
    try:
        text = _text_of(label)
    except ValueError:
        return False
    return isinstance(text, str) and _label_of(text, is_leaf=is_leaf) == label


# Reading, without recursion.


@dataclass
class _Open:
    """An object or a list that has not been closed; an object has as many keys as values, or one more."""

    column: int
    closer: str
    keys: list[str] = field(default_factory=list)
    values: list[Tree] = field(default_factory=list)

    def tree(self) -> Tree:
        return _object_tree(self.keys, self.values) if self.closer == "}" else Tree(LIST, self.values)


def _read_json(line: str) -> Tree:
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
        # The value may complete the object or list around it, which may in turn complete the one around that.
        while stack:
            stack[-1].values.append(value)
            token, place = _next(line, place)
            if token == ",":
                break
            if token != stack[-1].closer:
                raise _expected(f"',' or {stack[-1].closer!r}", line, place, token, stack)
            value = stack.pop().tree()
        else:
            token, place = _next(line, place)
            if token:
                message = f"{shorten(token)!r} follows a complete value"
                raise MultipleRootsError(message, column=place - len(token) + 1, hint="A line holds one JSON value.")
            return value


def _next(line: str, place: int) -> tuple[str, int]:
    """The next token, which is empty at the end of the line, and the place after it."""
    found = _TOKEN.match(line, place)
    assert found is not None  # the alternatives match any text
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
    """The leaf that begins with a token, and the place after it."""
    if token == '"':
        text, place = _string(line, place)
        return Tree(_label_of(text, is_leaf=True)), place
    if not _is_literal(token):
        raise _expected("a value", line, place, token)
    return Tree(token), place


def _string(line: str, place: int) -> tuple[str, int]:
    """The string that begins with the quotation mark before a place, and the place after it."""
    try:
        text, end = _DECODER.raw_decode(line, place - 1)
    except json.JSONDecodeError as error:
        hint = "Strings are written in quotation marks, with JSON's escapes."
        message = f"in a string: {error.msg.removesuffix(' at')}"
        raise NotationError(message, column=error.pos + 1, hint=hint) from None
    if _SURROGATE.search(text):
        raise NotationError("half of a character in a string", column=place, hint="Write both of its \\u codes.")
    return text, end


def _expected(name: str, line: str, place: int, token: str, stack: list[_Open] | None = None) -> NotationError:
    if not token and stack:
        return NotationError(
            f"the line ends where {len(stack)} more brackets should close, the first of them opened here",
            column=stack[0].column,
            hint="Write each value on one line.",
        )
    shown = repr(shorten(token)) if token else "the end of the line"
    message = f"expected {name}, found {shown}"
    return NotationError(message, column=place - len(token) + 1, hint="The line has to be JSON.")
