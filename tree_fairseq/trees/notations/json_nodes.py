"""Trees in JSON whose nodes are objects: ``{"label": "NP", "children": [...]}`` and others of this kind.

The key of the label is ``label``, ``name`` or ``type``. A node may have a scalar ``value``, which becomes its first
child, a leaf ``="x"``, and an empty list of children a leaf ``=[]``. A label that begins with ``=`` gets another one. A
list whose nodes name their children by numbers is the same tree (py150; js150 ends with a zero). The functions work on
trees of any JSON, as :mod:`tree_fairseq.trees.notations.json_values` has them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from tree_fairseq.errors import NotationError
from tree_fairseq.trees.notations.notation import Piece, separated
from tree_fairseq.trees.tree import Tree

LIST, OBJECT = "[]", "{}"
KEYS = {"label": "{label}", "name": "{name}", "type": "{type}"}
"""The marker above a tree whose nodes have their labels under a key."""
FLAT, FLAT_ZERO = "[type]", "[type]0"
PARSE = "{parse}"  # the marker above the trees of a line of ``tree-fairseq parse --format json``
MARKERS = (*KEYS.values(), FLAT, FLAT_ZERO, PARSE)

_NO_CHILDREN = "=[]"
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LINE_BREAK = re.compile("[\x7f-\x9f\u2028\u2029]")  # characters that some readers treat as line breaks, and controls


def quote(text: str) -> str:
    """A string as JSON."""
    return _LINE_BREAK.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def is_literal(label: str) -> bool:
    """Whether a leaf with this label is a number, ``true``, ``false`` or ``null``, not a string."""
    return label in ("true", "false", "null") or _NUMBER.fullmatch(label) is not None


def text_of(label: str) -> str:
    """The string or tag of a label of any JSON."""
    return json.loads(label) if label.startswith('"') else label


def fields_of(node: Tree) -> dict[str, Tree]:
    """The values of an object by key; empty for an object that has a key twice, and for other values."""
    if node.label != OBJECT or not all(len(key.children) == 1 for key in node.children):
        return {}
    fields = {key.label: key.children[0] for key in node.children}
    return fields if len(fields) == len(node.children) else {}


def node_tree(fields: Mapping[str, Tree]) -> Tree | None:
    """The tree that an object with children describes, under its marker; None for other objects."""
    key = next((key for key in KEYS if key in fields), "label")
    children = fields.get("children", Tree(LIST))
    own = _bare_node({**fields, "children": Tree(LIST)}, key)
    if own is None or children.label != LIST or not children.children:
        return None
    below = []
    for child in children.children:
        below.append(child.children[0] if child.label == KEYS[key] else _bare_node(fields_of(child), key))
    nodes = [node for node in below if node is not None]
    own_children = [*own.children[:-1], *nodes]
    return Tree(KEYS[key], [Tree(own.label, own_children)]) if len(nodes) == len(below) else None


def _bare_node(fields: Mapping[str, Tree], key: str) -> Tree | None:
    """A node without children, of its label and perhaps its value and an empty list; None for other objects."""
    label, value = fields.get(key), fields.get("value")
    if label is None or not is_string(label) or not fields.keys() <= {key, "value", "children"}:
        return None
    if value is not None and not _is_scalar(value) or fields.get("children", Tree(LIST)) != Tree(LIST):
        return None
    marks = [] if value is None else ["=" + (value.label if is_literal(value.label) else quote(text_of(value.label)))]
    marks += [_NO_CHILDREN] if "children" in fields else []
    text = text_of(label.label)
    return Tree("=" + text if text.startswith("=") else text, map(Tree, marks))


def _is_scalar(node: Tree) -> bool:
    return not node.children and node.label not in (LIST, OBJECT)


def is_string(node: Tree) -> bool:
    """Whether a node of any JSON is a string."""
    return _is_scalar(node) and not is_literal(node.label)


def _is_mark(node: Tree) -> bool:
    return node.label.startswith("=") and not node.label.startswith("==")


def _is_value(node: Tree) -> bool:
    """Whether a node is a leaf that stands for a scalar value."""
    text = node.label[1:]
    if node.children or not _is_mark(node) or not text.startswith('"'):
        return not node.children and _is_mark(node) and is_literal(text)
    try:
        return quote(json.loads(text)) == text
    except ValueError:
        return False


def node_pieces(node: Tree, key: str) -> list[Piece]:
    """The text of a node, with its children in the place ``key``."""
    fields, below = _parts(node, key)
    children = ["" if below is None else ',"children":[', *separated([(child, key) for child in below or ()], ",")]
    return ["{", fields, *children, "}" if below is None else "]}"]


def _parts(node: Tree, key: str) -> tuple[str, list[Tree] | None]:
    """The fields of a node without its children, and these; None if it has no list of children."""
    has_value = bool(node.children) and _is_value(node.children[0])
    value = f',"value":{node.children[0].label[1:]}' if has_value else ""
    below = list(node.children[has_value:])
    text = node.label[1:] if node.label.startswith("==") else node.label
    return f'"{key}":{quote(text)}{value}', [child for child in below if not _is_mark(child)] if below else None


def _numbers(item: Tree) -> list[int] | None:
    """The numbers of the children of a node in a list of nodes; None for another item."""
    fields = fields_of(item)
    children = fields.get("children", Tree(LIST))
    is_node = _bare_node({**fields, "children": Tree(LIST)}, "type") is not None and children.label == LIST
    labels = [child.label for child in children.children if is_node and not child.children]
    are_numbers = len(labels) == len(children.children) and all(map(re.compile("[0-9]{1,9}").fullmatch, labels))
    return list(map(int, labels)) if is_node and are_numbers else None


def flat_tree(items: Sequence[Tree]) -> Tree | None:
    """The tree of a list in the form of py150: nodes with a type, and some with the numbers of their children.

    It is None for other lists; raises NotationError if the numbers do not make a tree in this order.
    """
    if not items or items[0].label != OBJECT:
        return None
    nodes = items[:-1] if items[-1] == Tree("0") else items
    below = [_numbers(item) for item in nodes]
    if None in below or not any(below):
        return None
    built: list[Tree] = [Tree("")] * len(nodes)
    sizes = [0] * len(nodes)
    for number in range(len(nodes) - 1, -1, -1):
        numbers, end = below[number] or [], number + 1
        for child in numbers:
            if child != end or child >= len(nodes):
                raise _not_a_tree(number)
            end += sizes[child]
        sizes[number] = end - number
        fields = {name: value for name, value in fields_of(nodes[number]).items() if name != "children" or not numbers}
        node = _bare_node(fields, "type") or Tree("")
        built[number] = Tree(node.label, [*node.children, *map(built.__getitem__, numbers)])
    if sizes[0] != len(nodes):
        raise _not_a_tree(sizes[0])
    return Tree(FLAT if nodes is items else FLAT_ZERO, [built[0]])


def _not_a_tree(number: int) -> NotationError:
    hint = "The nodes of one tree are numbered from top to bottom and from left to right, from 0 on."
    return NotationError(f"node {number} of a list of nodes, or its children, is not where its number says", hint=hint)


def flat_text(tree: Tree) -> str:
    """The text of a list in the form of py150."""
    written: list[str] = []
    numbers: list[list[str]] = []
    stack: list[tuple[Tree, int]] = [(tree.children[0], -1)]
    while stack:
        node, parent = stack.pop()
        fields, below = _parts(node, "type")
        if parent >= 0:
            numbers[parent].append(str(len(written)))
        stack += [(child, len(written)) for child in reversed(below or [])]
        written.append(fields if below is None else f'{fields},"children":[')
        numbers.append([])
    items = [f"{{{text}{','.join(own)}{']' * text.endswith('[')}}}" for text, own in zip(written, numbers)]
    return f"[{','.join([*items, *['0'] * (tree.label == FLAT_ZERO)])}]"


def words_of(tree: Tree) -> list[str] | None:
    """The words of a tree of `Tree.to_dict`, without its marker; None if it is another tree."""
    if any(map(_is_mark, tree.preorder())) or not tree.children:
        return None
    return [leaf[1:] if leaf.startswith("==") else leaf for leaf in tree.leaves()]


def parse_pieces(tree: Tree) -> list[Piece]:
    """The text of a line of ``--format json``."""
    words = [word for child in tree.children for word in words_of(child) or ()]
    head = f'{{"text":{quote(" ".join(words))},"leaves":[{",".join(map(quote, words))}],"trees":['
    return [head, *separated([(child, "label") for child in tree.children], ","), "]}"]


def parse_tree(fields: Mapping[str, Tree]) -> Tree | None:
    """The trees of an object of ``--format json``, under their marker; None for other objects."""
    if fields.keys() != {"text", "leaves", "trees"} or fields["trees"].label != LIST:
        return None
    trees = fields["trees"].children
    words = [words_of(tree.children[0]) if tree.label == KEYS["label"] else None for tree in trees]
    expected = [word for own in words for word in own or ()]
    strings = [fields["text"], *fields["leaves"].children]
    if not trees or None in words or not all(map(is_string, strings)) or fields["leaves"].label != LIST:
        return None
    if [text_of(leaf.label) for leaf in strings] != [" ".join(expected), *expected]:
        return None
    return Tree(PARSE, [tree.children[0] for tree in trees])
