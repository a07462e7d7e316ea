"""Which tree a JSON value is, and which trees are one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from tree_fairseq.trees.tree import Tree

LIST = "[]"
OBJECT = "{}"
ROOTED = "{root}"
"""Stands above a tree that is written with the keys ``root`` and ``children``."""

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def is_literal(label: str) -> bool:
    """Whether a leaf with this label is a number or a word of JSON, not a string."""
    return label in ("true", "false", "null") or _NUMBER.fullmatch(label) is not None


def quoted(text: str, *, is_leaf: bool) -> str:
    """The label of a string (``is_leaf``) or a tag: itself, in quotation marks if it would be taken for something else."""
    is_special = text in (LIST, OBJECT, ROOTED) or text.startswith('"') or is_leaf and is_literal(text)
    return json.dumps(text, ensure_ascii=False) if is_special else text


def unquoted(label: str) -> str:
    """The string or tag that has this label: the inverse of ``quoted``."""
    return json.loads(label) if label.startswith('"') else label


def object_tree(keys: Sequence[str], values: Sequence[Tree]) -> Tree:
    """The tree of an object.

    Args:
        keys: as they stand in it
        values: their trees
    """
    fields = dict(zip(keys, values, strict=True))
    if _is_tagged(keys, values):
        contents = fields["contents"]
        tag = quoted(unquoted(fields["tag"].label), is_leaf=False)
        return Tree(tag, contents.children if contents.label == LIST and len(contents.children) > 1 else (contents,))
    if _is_rooted(keys, values):
        children = [child.children[0] for child in fields["children"].children]
        return Tree(ROOTED, (Tree(unquoted(fields["root"].label), children),))
    tree = _escaped_tree(keys, values)
    if tree is None or is_regular(tree):
        return Tree(OBJECT, [Tree(key, (value,)) for key, value in zip(keys, values, strict=True)])
    return tree


def is_regular(node: Tree) -> bool:
    """Whether a value other than ``{"": [...]}`` has this node; what the node's children are like does not count."""
    tree: Tree | None = node
    while tree is not None:
        label, children = tree.label, tree.children
        if label == LIST:
            return True
        if label == ROOTED:
            return len(children) == 1
        if label != OBJECT:
            is_nested = len(children) == 1 and children[0].label == LIST and len(children[0].children) > 1
            return not is_nested and (not children and is_literal(label) or _is_text(label, is_leaf=not children))
        if not all(len(key.children) == 1 for key in children):
            return False
        keys, values = [key.label for key in children], [key.children[0] for key in children]
        if _is_tagged(keys, values) or _is_rooted(keys, values):
            return False
        # An object that could be {"": [...]} is a plain one where that one's tree is regular.
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
    """The tree that ``{"": [label, child, ...]}`` says; None of other objects."""
    if list(keys) != [""] or values[0].label != LIST or not values[0].children:
        return None
    label, *children = values[0].children
    return Tree(unquoted(label.label), children) if _is_string(label) else None


def _is_string(tree: Tree) -> bool:
    return not tree.children and not is_literal(tree.label) and _is_text(tree.label, is_leaf=True)


def _is_text(label: str, *, is_leaf: bool) -> bool:
    """Whether this is the label of some string or tag."""
    try:
        text = unquoted(label)
    except ValueError:
        return False
    return isinstance(text, str) and quoted(text, is_leaf=is_leaf) == label
