"""The interface of programming languages: text to tree and back, and whether a text belongs to the language."""

from __future__ import annotations

from abc import abstractmethod

from tree_fairseq.errors import InputError, NotationError
from tree_fairseq.source_code.productions import split_leaf, unfolded, unspelled
from tree_fairseq.trees.notations import Notation, notation_named
from tree_fairseq.trees.symbols import UNKNOWN_LABEL
from tree_fairseq.trees.tree import Tree

LINE_BREAK = "\N{SECTION SIGN}"
"""Stands for a line break within a program, as in the Hearthstone data, because a corpus has one program a line."""
_SKIP = "fairseq-preprocess --on-parse-error skip-pair leaves such lines out of training"


class Language(Notation):
    """A language whose programs become trees of productions (see :mod:`tree_fairseq.source_code.productions`).

    Subclasses parse a text into a tree, and write a tree whose chains are unfolded and whose leaves are whole.
    """

    name: str  # under which the language is registered, such as ``sql``
    is_exact = False  # whether every tree that the parser gives is written as a text with the same tree

    @abstractmethod
    def identity(self) -> dict[str, str]:
        """The library that parses the language and its version; folders keep it."""

    @abstractmethod
    def parse(self, text: str) -> Tree:
        """The tree of a program. Raises NotationError with the column for a text that does not parse."""

    @abstractmethod
    def unparse(self, tree: Tree) -> str:
        """The text of a tree without chains; any exception means that the tree is not of this language."""

    def __reduce__(self):
        # Parsers of libraries cannot be pickled, so each process makes its own language.
        return notation_named, (self.name,)

    def _read(self, line: str) -> Tree:
        try:
            tree = self.parse(line)
            return tree if self.is_exact else self._as_written(line, tree)
        except RecursionError:
            raise NotationError("the program is nested too deeply for its parser", hint=f"{_SKIP}.") from None

    def _as_written(self, line: str, tree: Tree) -> Tree:
        """The tree of what is written for a tree, which may lack what a library names but does not write."""
        try:
            written = self.write(tree)
            if written == line:
                return tree
            before, tree = tree, self.parse(written)
            is_stable = tree == before or self.write(tree) == written
        except InputError:
            is_stable = False
        if not is_stable:
            raise unwritable(self.name)
        return tree

    def write(self, tree: Tree) -> str:
        """Writes a program. A tree that the library cannot write becomes its leaves, which do not parse."""
        try:
            text = self.unparse(self.whole(tree))
        except Exception:
            leaves = [(label, split_leaf(label)[1]) for label in unspelled(tree).leaves()]
            text = " ".join(label if own is None else own for label, own in leaves)
        return LINE_BREAK.join(text.splitlines()) if "\n" in text else text

    def accepts(self, tree: Tree) -> bool:
        """Whether the language's own parser reads what is written for a tree."""
        if any(UNKNOWN_LABEL in node.label for node in tree.preorder()):
            return False
        try:
            whole = self.whole(tree)
            text = self.unparse(whole).replace("\n", LINE_BREAK)
            # The tree that was written needs no second writing to show that it is stable.
            return (not self.is_exact and self.is_tree_of(text, whole)) or self._read(text) is not None
        except Exception:
            return False

    def is_tree_of(self, text: str, whole: Tree) -> bool:
        """Whether the parser finds a tree, whose leaves are not spelled, in the text that is written for it."""
        try:
            return self.whole(self.parse(text)) == whole
        except InputError:
            return False

    def leaf_text(self, label: str) -> str | None:
        """The text of a leaf or of a piece."""
        return split_leaf(label)[1]

    @staticmethod
    def whole(tree: Tree) -> Tree:
        """The tree as libraries know it: leaves are not spelled, and each node stands alone."""
        return unfolded(unspelled(tree))


def syntax_error(
    language: str, message: str, text: str, line: int | None = None, column: int | None = None
) -> InputError:
    """The error of a program that does not parse; ``line`` counts within the program, ``column`` from one."""
    lines = text.split(LINE_BREAK)
    if line is not None and column is not None:
        before = sum(len(part) + 1 for part in lines[: line - 1])
        column = min(before + column, len(text) + 1)
    marked = f" {LINE_BREAK} stands for a line break." if len(lines) > 1 else ""
    return NotationError(f"not {language}: {message}", column=column, hint=f"Correct it; {_SKIP}.{marked}")


def unwritable(language: str) -> InputError:
    """The error of a program that parses, but whose tree has another text."""
    message = f"{language}: this parses, but cannot be written back as it was read"
    return NotationError(message, hint=f"Write it in another way; {_SKIP}.")
