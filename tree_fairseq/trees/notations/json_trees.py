r"""Any JSON value as a tree; the two usual ways of writing a tree in JSON become the trees that they mean.

=========================================  ====================================================================
value                                      tree
=========================================  ====================================================================
``{"tag": "If", "contents": [x, y]}``      ``If`` over ``x`` and ``y``
``{"tag": "Var", "contents": x}``          ``Var`` over ``x``; a list of one or none stays a list, ``[]``
``{"root": "f", "children": [x, y]}``      ``f`` over ``x`` and ``y`` if these are written so too; the root has
                                           ``{root}`` above it
``{"a": x, "b": y}``                       ``{}`` over ``a`` over ``x`` and ``b`` over ``y``
``[x, y]``                                 ``[]`` over ``x`` and ``y``
``"a1"``, ``2``, ``true``                  leaves ``a1``, ``2``, ``true``
``"2"``, ``"true"``, ``"[]"``              leaves with quotation marks: whatever could be taken for something else
``{"": ["f", x, y]}``                      ``f`` over ``x`` and ``y``, where no other value has this tree
=========================================  ====================================================================
"""

from __future__ import annotations

import json
import re

from tree_fairseq.trees.notations.json_reader import read_json
from tree_fairseq.trees.notations.json_shapes import LIST, OBJECT, ROOTED, is_literal, is_regular, unquoted
from tree_fairseq.trees.notations.notation import Notation
from tree_fairseq.trees.tree import Tree

# Line breaks for some readers.
_NOT_IN_LINE = re.compile("[\x7f-\x9f\u2028\u2029]")


class JsonNotation(Notation):
    """Trees as JSON values."""

    def _read(self, line: str) -> Tree:
        return read_json(line)

    def write(self, tree: Tree) -> str:
        parts: list[str] = []
        # What is still to be written: text, or a node and whether it stands below {root}.
        stack: list[str | tuple[Tree, bool]] = [(tree, False)]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                parts.append(item)
            else:
                stack.extend(reversed(_pieces(*item)))
        return "".join(parts)


def _pieces(node: Tree, is_rooted: bool) -> list[str | tuple[Tree, bool]]:
    """What a node is written as, its children as nodes."""
    label, children = node.label, node.children
    if is_rooted:
        return [f'{{"root":{_string(label)},"children":[', *_listed(children, True), "]}"]
    if not is_regular(node):
        return ['{"":[', _string(label), "," if children else "", *_listed(children), "]}"]
    if not children and label not in (LIST, OBJECT):
        return [label if is_literal(label) else _string(unquoted(label))]
    if label == ROOTED:
        return [(children[0], True)]
    if label == LIST:
        return ["[", *_listed(children), "]"]
    if label == OBJECT:
        pieces: list[str | tuple[Tree, bool]] = []
        for key in children:
            pieces += [",", f"{_string(key.label)}:", (key.children[0], False)]
        return ["{", *pieces[1:], "}"]
    contents = ["[", *_listed(children), "]"] if len(children) > 1 else [(children[0], False)]
    return [f'{{"tag":{_string(unquoted(label))},"contents":', *contents, "}"]


def _listed(trees: tuple[Tree, ...], is_rooted: bool = False) -> list[str | tuple[Tree, bool]]:
    pieces: list[str | tuple[Tree, bool]] = []
    for tree in trees:
        pieces += [",", (tree, is_rooted)]
    return pieces[1:]


def _string(text: str) -> str:
    return _NOT_IN_LINE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))
