"""Simplifies logical forms of Overnight as in Appendix B of Lukovnikov & Fischer (2021), and restores them.

``( call F a b )`` becomes ``( call-F a b )``. A filter becomes ``( filter base ( condition property ) ( condition
property comparator value ) ... )``; nested filters become one filter, whose innermost condition comes first. `restore`
undoes all of this. `simplify` also removes repeated conditions and sorts children whose order does not matter.
"""

from __future__ import annotations

from tree_fairseq.errors import SymbolTreeError
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

LONG = "edu.stanford.nlp.sempre.overnight.SimpleWorld."
SHORT = "SW:"
CALL = "call"
MERGED_CALL = "call-"
FILTER_CALL = f"{MERGED_CALL}{SHORT}filter"
FILTER = "filter"
CONDITION = "condition"

UNORDERED = (FILTER, f"{MERGED_CALL}{SHORT}concat")
"""Labels of simplified forms for which the order of the children does not matter."""

_NOTATION = notation_named("bracket")


def merge(tree: Tree) -> Tree:
    """Returns the form with merged calls and filters; `restore` returns the original form.

    Raises SymbolTreeError if `restore` could not return the original form: a call lacks the name of its function, a
    filter does not have one or three arguments after its base, or a label is one that only simplified forms have.
    """
    merged = tree.fold(_merge_node)
    if restore(merged) != tree:
        raise SymbolTreeError("the form has labels or filters that only simplified forms have")
    return merged


def simplify(tree: Tree) -> Tree:
    """Returns the merged form without repeated conditions and with sorted unordered children.

    Raises:
        SymbolTreeError: as `merge`
    """
    return merge(tree).fold(_order_node)


def restore(tree: Tree) -> Tree:
    """Returns the original form of a merged one. Conditions that do not form a filter stay as they are."""
    return tree.fold(_restore_node)


def _merge_node(node: Tree, children: list[Tree]) -> Tree:
    label = SHORT + node.label.removeprefix(LONG) if node.label.startswith(LONG) else node.label
    if label != CALL:
        return Tree(label, children)
    if not children or children[0].children:
        raise SymbolTreeError("a call without the name of a function", hint="It is written ( call NAME argument ... ).")
    label = MERGED_CALL + children[0].label
    if label != FILTER_CALL:
        return Tree(label, children[1:])
    if len(children) not in (3, 5):
        raise SymbolTreeError(
            f"a filter with {len(children) - 1} arguments",
            hint="It has a base and a property, and may have a comparator and a value.",
        )
    base, condition = children[1], Tree(CONDITION, children[2:])
    return Tree(FILTER, (*base.children, condition) if base.label == FILTER else (base, condition))


def _order_node(node: Tree, children: list[Tree]) -> Tree:
    if node.label not in UNORDERED:
        return Tree(node.label, children)
    if node.label == FILTER:
        base = [child for child in children if child.label != CONDITION]
        children = base + list(dict.fromkeys(child for child in children if child.label == CONDITION))
    return Tree(node.label, sorted(children, key=_NOTATION.write))


def _restore_node(node: Tree, children: list[Tree]) -> Tree:
    if node.label == FILTER and (nested := _restore_filter(children)):
        return nested
    if node.label.startswith(MERGED_CALL):
        name = node.label.removeprefix(MERGED_CALL)
        return Tree(CALL, (Tree(_long(name)), *children))
    return Tree(_long(node.label), children)


def _restore_filter(children: list[Tree]) -> Tree | None:
    """Returns nested filters, one for each condition, or None.

    None means that the children are not one base and conditions of one or three parts.
    """
    bases = [child for child in children if child.label != CONDITION]
    conditions = [child for child in children if child.label == CONDITION]
    if len(bases) != 1 or not all(len(condition.children) in (1, 3) for condition in conditions):
        return None
    nested = bases[0]
    for condition in conditions:
        nested = Tree(CALL, (Tree(f"{LONG}filter"), nested, *condition.children))
    return nested if conditions else None


def _long(label: str) -> str:
    return LONG + label.removeprefix(SHORT) if label.startswith(SHORT) else label
