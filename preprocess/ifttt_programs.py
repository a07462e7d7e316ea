"""Programs of the IFTTT corpus: ``(ROOT (IF) (TRIGGER (Twitter) (FUNC (New_tweet) (PARAMS))) (THEN) (ACTION ...))``.

Every node has its own brackets, leaves too. A name ends at a blank or a closing bracket. A name in quotation marks may
contain any character; a backslash escapes the character after it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from preprocess.corpora import CorpusError, clean_line
from tree_fairseq.trees.tree import Tree

_TOKEN = re.compile(r'\s*(?:(?P<close>\))|\(\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<name>[^\s)"][^\s)]*)))')


def read_program(text: str) -> Tree:
    """Returns the tree of a program. Raises CorpusError, naming the column, if the text is malformed."""
    position = 0
    text = text.rstrip()
    # The name and the children of each open bracket. The first entry collects the finished program.
    stack: list[tuple[str, list[Tree]]] = [("", [])]
    while position < len(text):
        found = _TOKEN.match(text, position)
        complete = len(stack) == 1 and stack[0][1]
        if found is None or complete or len(stack) == 1 and found["close"]:
            rest = text[position:].lstrip()
            raise CorpusError(f"malformed program: {rest[:30]!r} in column {len(text) - len(rest) + 1}")
        position = found.end()
        if found["close"]:
            label, children = stack.pop()
            stack[-1][1].append(Tree(label, children))
        else:
            stack.append((_label(found), []))
    if len(stack) > 1:
        raise CorpusError(f"malformed program: {len(stack) - 1} brackets are never closed")
    if not stack[0][1]:
        raise CorpusError("the program is empty")
    return stack[0][1][0]


def _label(found: re.Match) -> str:
    if found["name"] is not None:
        return found["name"]
    return clean_line(re.sub(r"\\(.)", r"\1", found["quoted"]))


class Program(NamedTuple):
    """The scored parts of a program, those of trigger and action; None for a missing one."""

    channels: tuple[str, str] | None
    functions: tuple[str, str] | None


def program(tree: Tree | None) -> Program:
    """Returns the channels and functions of trigger and action."""
    parts = [_child(tree, label) for label in ("TRIGGER", "ACTION")]
    channels = [next((node.label for node in part.children if node.label != "FUNC"), None) for part in parts if part]
    calls = [_child(part, "FUNC") for part in parts]
    functions = [call.children[0].label for call in calls if call and call.children]
    return Program(*(None if None in names or len(names) < 2 else tuple(names) for names in (channels, functions)))


def _child(tree: Tree | None, label: str) -> Tree | None:
    """The first child with this label."""
    return next((node for node in tree.children if node.label == label), None) if tree else None
