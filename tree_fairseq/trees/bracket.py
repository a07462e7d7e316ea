"""Bracketed trees, one forest a line: ``(S (NP (DT the) (NN man)) (VP (VBZ sleeps)))``.

The reader is strict: it returns a forest whose written form reads back equal, or raises a `TreeFormatError` with the
place of the fault. Every leaf is the only child of its preterminal. Only blanks and tabs separate. Outer brackets
without a label, ``((S ...))``, are labelled ``ROOT``.

Words are escaped as in the Penn treebank: ``(`` is written ``-LRB-`` and ``)`` is written ``-RRB-``. The reader also
knows ``-LSB-``, ``-RSB-``, ``-LCB-``, ``-RCB-``, and a backslash before a slash or an asterisk. Backslashes make this
invertible: ``k`` backslashes before a bracket, a slash or an asterisk are doubled, and ``k`` backslashes before
characters that really are ``-LRB`` and the like become ``2k + 1``. Labels are not escaped: the tag ``-LRB-`` is written
as is.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from tree_fairseq import errors
from tree_fairseq.trees.text import character_name, shorten
from tree_fairseq.trees.tree import Forest, Tree, check_preterminals

ROOT = "ROOT"  # the label of outer brackets without a label
DEPTH_LIMIT = 100_000  # the greatest depth of a tree: so many brackets may be open at once

_INDEX = re.compile(r"([0-9]{1,9})=.")
_TOKEN = re.compile(r"[()]|[^ \t()]+")
_ON_LINES = "tree-fairseq parse --read penn turns other files into such lines."
_OTHER_FORMS = {
    "\ufeff": "Save the file without a byte order mark.",
    r"#(?:FORMAT|BO[ST]|\d+\t)|[^\t]+\t+(?:[^\t]+\t+){3,4}\d+\s*$": "This is the export format of NEGRA and TIGER: "
    "take the treebank's brackets, as its own tools write them.",
    r"[^\t()]+\t[^\t()]+$": "These are two columns, no tree: give a text and its class to --task tree_classification.",
}  # lines of other formats, and the way out
_MIXED_HINT = "Give every word a tag of its own, as in (NP (DT the) (NN man))."

# Unicode's whitespace (str.isspace) except blank and tab. fairseq splits tokens at every such character.
_WHITESPACE = "\n\x0b\x0c\r\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SURROGATES = "\ud800-\udfff"  # UTF-8 cannot encode them
_REFUSED = re.compile(f"[{_WHITESPACE}{_SURROGATES}]")
_REFUSED_IN_WORD = re.compile(f"[ \t{_WHITESPACE}{_SURROGATES}]")
_REFUSED_IN_LABEL = re.compile(f"[() \t{_WHITESPACE}{_SURROGATES}]")
# Both patterns begin at the first backslash of a run, so their time is linear in the length of the run.
_TO_ESCAPE = re.compile(r"(?<!\\)(\\*)(?:([()])|(-[LR][RSC]B)|(?<=\\)([/*]))")
_ESCAPED = re.compile(r"(?<!\\)((?:\\\\)*)(?:\\(-[LR][RSC]B|[/*])|(-[LR][RSC]B-)|(?<=\\)([/*]))")
_NAMES = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}

_CHARACTER_HINT = "Replace it in the tree and in the text by a visible character."


def read_forest(line: str, *, path: str | os.PathLike | None = None, line_number: int | None = None) -> Forest:
    """Reads the trees of one line; a blank line is ``()``, and a line break at the end is ignored.

    ``path`` and ``line_number`` are the place of the line, for messages. Raises a subclass of TreeFormatError, with the
    column.
    """
    try:
        whole = line[:-1].removesuffix("\r") if line.endswith("\n") else line
        return _StrictReader(whole).read()
    except errors.TreeFormatError as error:
        raise error.at(path, line_number) from None


def read_tree(line: str) -> Tree:
    """Reads a line that holds exactly one tree; raises subclasses of `TreeFormatError`."""
    forest = read_forest(line)
    if not forest:
        raise errors.EmptyTreeError("a blank line where one tree is expected")
    if len(forest) > 1:
        raise errors.OutsideTreeError(
            f"{len(forest)} trees where one is expected", hint="Put each tree on its own line."
        )
    return forest[0]


@dataclass
class _OpenNode:
    column: int
    label: str = ""
    children: list[Tree] = field(default_factory=list)


class _StrictReader:
    def __init__(self, line: str):
        self.line = line
        self.trees: list[Tree] = []
        self.open_nodes: list[_OpenNode] = []

    def read(self) -> Forest:
        if found := _REFUSED.search(self.line):
            message = f"{character_name(found.group())} in a line of trees"
            raise errors.UnsupportedCharacterError(message, column=found.start() + 1, hint=_CHARACTER_HINT)
        for found in _TOKEN.finditer(self.line):
            text, column = found.group(), found.start() + 1
            if text == "(":
                self._open(column)
            elif text == ")":
                self._close(column)
            else:
                self._text(text, column)
        if self.open_nodes:
            count = len(self.open_nodes)
            message = f"{count} bracket{' is' if count == 1 else 's are'} never closed, the first of them opened here"
            raise errors.UnclosedTreeError(
                message, column=self.open_nodes[0].column, hint=f"Write each tree on one line. {_ON_LINES}"
            )
        return tuple(self.trees)

    def _open(self, column: int) -> None:
        if self.open_nodes:
            parent = self.open_nodes[-1]
            if not parent.label and (len(self.open_nodes) == 1 or self.open_nodes[-2].label == ROOT):
                parent.label = ROOT
            if not parent.label:
                hint = "Write a label after each opening bracket, such as (ROOT (S ...))."
                raise errors.UnlabelledTreeError("a constituent without a label", column=parent.column, hint=hint)
            if parent.children and not parent.children[0].children:
                message = f"a constituent beside the word {shorten(parent.children[0].label)!r}"
                raise errors.MixedChildrenError(message, column=column, hint=_MIXED_HINT)
        if len(self.open_nodes) >= DEPTH_LIMIT:
            message = f"the tree is deeper than {DEPTH_LIMIT}"
            raise errors.DepthLimitError(message, column=column, hint="Look for brackets that are never closed.")
        self.open_nodes.append(_OpenNode(column))

    def _close(self, column: int) -> None:
        if not self.open_nodes:
            raise errors.ExtraCloseError("a closing bracket without an opening one", column=column, hint="Remove it.")
        node = self.open_nodes.pop()
        if not node.children:
            shown = f"({shorten(node.label)} )" if node.label else "()"
            hint = "Remove it, or write the word; a bracket as a word is written -LRB- or -RRB-."
            raise errors.EmptyTreeError(f"the constituent {shown} holds no word", column=node.column, hint=hint)
        tree = Tree(node.label, node.children)
        if self.open_nodes:
            self.open_nodes[-1].children.append(tree)
            return
        _refuse_indexed_leaves(tree.leaves(), node.column)
        self.trees.append(tree)

    def _text(self, text: str, column: int) -> None:
        if not self.open_nodes:
            default = f"A line holds only whole trees, such as (S ...). {_ON_LINES}"
            hint = next((hint for form, hint in _OTHER_FORMS.items() if re.match(form, self.line)), default)
            raise errors.OutsideTreeError(f"{shorten(text)!r} belongs to no tree", column=column, hint=hint)
        node = self.open_nodes[-1]
        if not node.label:
            node.label = text
            return
        if node.children:
            beside = "a constituent" if node.children[0].children else f"the word {shorten(node.children[0].label)!r}"
            raise errors.MixedChildrenError(
                f"the word {shorten(text)!r} beside {beside}", column=column, hint=_MIXED_HINT
            )
        node.children.append(Tree(unescape(text)))


def _refuse_indexed_leaves(leaves: list[str], column: int | None = None) -> None:
    """Raises an error for leaves such as ``0=a 2=b 1=c``, which are not words. A single such leaf may be a word."""
    if len(leaves) < 2 or not _INDEX.match(leaves[0]):
        return
    indices = [int(match[1]) for leaf in leaves if (match := _INDEX.match(leaf))]
    if len(indices) == len(leaves) and sorted(indices) == list(range(len(leaves))):
        message = f"leaves that carry their position, such as {leaves[0]!r}"
        hint = "Discontinuous trees are not supported; make them projective with the tool of their treebank first."
        raise errors.DiscontinuousTreeError(message, column=column, hint=hint)


def write_forest(forest: Forest) -> str:
    """Writes the trees of one line, separated by blanks; `read_forest` reads an equal forest back.

    Raises TreeFormatError if a word is not alone under its tag, a word or label is empty or contains whitespace, or a
    label contains a bracket.
    """
    return " ".join(map(_write_tree, forest))


def _write_tree(tree: Tree) -> str:
    parts: list[str] = []
    words: list[str] = []
    stack: list[Tree | None] = [tree]  # None closes a constituent
    while stack:
        node = stack.pop()
        if node is None:
            parts.append(")")
            continue
        if not node.children:
            check_preterminals((tree,))  # raises the error about the word
        if not node.label:
            raise errors.UnlabelledTreeError("a constituent without a label cannot be written")
        _refuse_characters(_REFUSED_IN_LABEL, "label", node.label)
        parts.append(f" ({node.label}")
        if node.is_preterminal:
            word = node.children[0].label
            if not word:
                raise errors.EmptyTreeError("an empty word cannot be written")
            _refuse_characters(_REFUSED_IN_WORD, "word", word, _CHARACTER_HINT)
            words.append(word)
            parts.append(f" {escape(word)})")
        else:
            stack += (None, *reversed(node.children))
    _refuse_indexed_leaves(words)
    return "".join(parts)[1:]


def _refuse_characters(refused: re.Pattern, kind: str, text: str, hint: str = "") -> None:
    if found := refused.search(text):
        raise errors.UnsupportedCharacterError(f"{character_name(found.group())} in the {kind} {text!r}", hint=hint)


def escape(word: str) -> str:
    """A word as it is written between brackets; the inverse is `unescape`."""
    may_change = "(" in word or ")" in word or "\\" in word or "B" in word
    return _TO_ESCAPE.sub(_escaped, word) if may_change else word


def _escaped(found: re.Match) -> str:
    backslashes, bracket, literal, slash = found.groups()
    return backslashes * 2 + (slash or (f"\\{literal}" if literal else "-LRB-" if bracket == "(" else "-RRB-"))


def unescape(text: str) -> str:
    """The word that `escape` wrote or that a treebank contains (``-LSB-`` is ``[``, ``1\\/2`` is ``1/2``)."""
    return _ESCAPED.sub(_unescaped, text) if "\\" in text or "B-" in text else text


def _unescaped(found: re.Match) -> str:
    backslashes, literal, name, slash = found.groups()
    return backslashes[::2] + (literal or slash or _NAMES[name])
