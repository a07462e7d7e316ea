"""Programs of the IFTTT corpus: ``(ROOT (IF) (TRIGGER (Twitter) (FUNC (New_tweet) (PARAMS))) (THEN) (ACTION ...))``.

Every node has brackets of its own, also a leaf. A name ends at a blank or a closing bracket, unless it stands in quotation
marks, where a backslash takes the meaning from the character behind it.
"""

from __future__ import annotations

import re

from preprocess.corpora import CorpusError, clean_line
from tree_fairseq.trees.tree import Tree

ARGUMENTS = ("all", "names", "none")

_TOKEN = re.compile(r'\s*(?:(?P<close>\))|\(\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<name>[^\s)"][^\s)]*)))')
_PARAMETERS = ("PARAMS", "OUTPARAMS")


def read_program(text: str) -> Tree:
    """The tree of a program. Raises CorpusError, naming the column, where the text is none."""
    position = 0
    text = text.rstrip()
    # Of each open bracket its name, and what stands in it so far; above them what stands in none.
    stack: list[tuple[str, list[Tree]]] = [("", [])]
    while position < len(text):
        found = _TOKEN.match(text, position)
        complete = len(stack) == 1 and stack[0][1]
        if found is None or complete or len(stack) == 1 and found["close"]:
            rest = text[position:].lstrip()
            raise CorpusError(f"no program: {rest[:30]!r} in column {len(text) - len(rest) + 1}")
        position = found.end()
        if found["close"]:
            label, children = stack.pop()
            stack[-1][1].append(Tree(label, children))
        else:
            stack.append((_label(found), []))
    if len(stack) > 1:
        raise CorpusError(f"no program: {len(stack) - 1} brackets are never closed")
    if not stack[0][1]:
        raise CorpusError("no program: it is empty")
    return stack[0][1][0]


def _label(found: re.Match) -> str:
    if found["name"] is not None:
        return found["name"]
    return clean_line(re.sub(r"\\(.)", r"\1", found["quoted"]))


def prune(tree: Tree, arguments: str) -> Tree:
    """A program with all its parameters, with their names only, or with none."""
    if arguments == "all":
        return tree

    def rebuild(node: Tree, children: list[Tree]) -> Tree:
        if arguments == "none":
            return Tree(node.label, [child for child in children if child.label not in _PARAMETERS])
        if node.label in _PARAMETERS:
            return Tree(node.label, [Tree(child.label) for child in children])
        return Tree(node.label, children)

    return tree.fold(rebuild)
