"""Task-oriented parses, as TOP, TOPv2 and MTOP have them: ``[IN:GET_EVENT the [SL:NAME_EVENT Eagles ] game ]``."""

from __future__ import annotations

import re

from tree_fairseq.errors import EmptySymbolTreeError, MultipleRootsError, NotationError
from tree_fairseq.trees.notations import notation
from tree_fairseq.trees.text import shorten
from tree_fairseq.trees.tree import Tree

_TOKEN = re.compile(r"\[(?P<label>[^\s\[\]]*)|(?P<close>\])|[^\s\[\]]+")
_REFUSED = re.compile(rf"[\s\[\]]|{notation.LITERAL_CODE}")
_NAME = re.compile("(?:IN|SL):")  # begins the labels of intents and slots, which may be empty: [IN:GET_WEATHER ]


class TopNotation(notation.Notation):
    """Trees in square brackets, whose words are leaves. The place of a node is always the same."""

    def _read(self, line: str) -> Tree:
        columns: list[int] = []
        labels: list[str] = []
        contents: list[list[Tree]] = [[]]  # the trees in the line so far, then those in each open bracket
        for found in _TOKEN.finditer(line):
            text, column = found.group(), found.start() + 1
            if len(contents) == 1 and contents[0] and text != "]":
                hint = "A line contains one tree, such as [IN:GET_EVENT the game ], and nothing else."
                raise MultipleRootsError(f"{shorten(text)!r} follows a complete tree", column=column, hint=hint)
            if found["close"]:
                if not columns:
                    raise NotationError("a closing bracket without an opening one", column=column, hint="Remove it.")
                opened, label, children = columns.pop(), labels.pop(), contents.pop()
                if not children and not _NAME.match(label):
                    hint = "Put words into the bracket, or remove it."
                    raise EmptySymbolTreeError(f"there is nothing in [{label} ]", column=opened, hint=hint)
                contents[-1].append(Tree(label, children))
            elif found["label"] is not None:
                if not found["label"]:
                    raise NotationError("a bracket without a label", column=column, hint="Write [IN:... or [SL:...")
                columns.append(column)
                labels.append(notation.unescape_name(found["label"]))
                contents.append([])
            elif _NAME.match(text):
                raise NotationError(f"the label {shorten(text)!r} is outside of brackets", column=column, hint="Add [.")
            else:
                contents[-1].append(Tree(notation.unescape_name(text)))
        if columns:
            raise notation.unclosed_error(columns)
        return contents[0][0]

    def _pieces(self, node: Tree, place: None) -> list[notation.Piece]:
        name = notation.escape_name(node.label, _REFUSED)
        if not node.children and not _NAME.match(node.label):
            return [name]
        return [f"[{name} ", *(piece for child in node.children for piece in ((child, None), " ")), "]"]
