"""Fault 5: one function cuts tokens, and no tree holds whitespace at which fairseq would cut them differently."""

from __future__ import annotations

import sys

import pytest

from tree_fairseq.errors import UnsupportedCharacterError
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.tree import Tree

WHITESPACE = [chr(codepoint) for codepoint in range(sys.maxunicode + 1) if chr(codepoint).isspace()]


@pytest.mark.parametrize("character", [character for character in WHITESPACE if character not in " \t"])
def test_whitespace_inside_words_and_labels_is_refused(character):
    for line, column in ((f"(CD 10{character}000)", 7), (f"(C{character}D 10)", 3), (f"(CD 10) {character}", 9)):
        if line.endswith("\n"):
            continue
        with pytest.raises(UnsupportedCharacterError) as caught:
            read_forest(line, path="a", line_number=1)
        assert (caught.value.line, caught.value.column) == (1, column)
        assert f"U+{ord(character):04X}" in str(caught.value)


@pytest.mark.parametrize("character", WHITESPACE)
def test_whitespace_is_not_written(character):
    for tree in (Tree("CD", [Tree(f"10{character}000")]), Tree(f"C{character}D", [Tree("10")])):
        with pytest.raises(UnsupportedCharacterError):
            write_forest((tree,))
