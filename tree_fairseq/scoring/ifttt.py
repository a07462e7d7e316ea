"""How IFTTT programs are compared: channels, functions, productions (Quirk, Mooney and Galley 2015, section 6).

A program is ``( ROOT IF ( TRIGGER channel ( FUNC function ... ) ) THEN ( ACTION channel ( FUNC function ... ) ) )``.

============================  ==================================================================================
metric                        value
============================  ==================================================================================
``channel_accuracy``          programs whose two channels are both right
``channel_function_accuracy`` programs whose two channels and two functions are all right; parameters do not count
``production_f1``             balanced F measure of productions: of all rules ``label -> labels of its children`` of
                              the outputs and of the references, with their multiplicities, over the whole set
============================  ==================================================================================

An output that is no tree, or no program, has no channel, no function and no production.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tree_fairseq.trees.tree import Tree


class Program(NamedTuple):
    """What a program does, as far as it is scored; None for what it does not have."""

    channels: tuple[str, str] | None
    functions: tuple[str, str] | None


def program(tree: Tree | None) -> Program:
    """Channels and functions of trigger and action."""
    parts = [_call(tree, label) for label in ("TRIGGER", "ACTION")]
    channels, functions = zip(*parts)
    return Program(None if None in channels else channels, None if None in functions else functions)


def _call(tree: Tree | None, label: str) -> tuple[str | None, str | None]:
    """Channel and function of the first child with this label."""
    part = _child(tree, label)
    if part is None:
        return None, None
    channel = next((node.label for node in part.children if node.label != "FUNC"), None)
    function = _child(part, "FUNC")
    return channel, function.children[0].label if function is not None and function.children else None


def _child(tree: Tree | None, label: str) -> Tree | None:
    return next((node for node in tree.children if node.label == label), None) if tree is not None else None


def productions(tree: Tree | None) -> Counter[tuple[str, tuple[str, ...]]]:
    """The rules that a tree is made of, with multiplicities; leaves have none."""
    if tree is None:
        return Counter()
    return Counter((node.label, tuple(child.label for child in node.children)) for node in tree.preorder() if node.children)


def production_f1(pairs: Iterable[tuple[Tree | None, Tree]]) -> float:
    """Balanced F measure, in percent, of the productions of outputs and references together."""
    common = found = wanted = 0
    for output, reference in pairs:
        ours, theirs = productions(output), productions(reference)
        common += (ours & theirs).total()
        found += ours.total()
        wanted += theirs.total()
    return 200 * common / (found + wanted) if found + wanted else 0.0
