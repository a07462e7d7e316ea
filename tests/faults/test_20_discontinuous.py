"""Fault 20: discontinuous trees are refused by name instead of being read with positions for words."""

from __future__ import annotations

import pytest

from tree_fairseq.errors import DiscontinuousTreeError
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.tree import forest_leaves

LINES = [
    ("(S (VP (VB 0=is) (JJ 2=rich)) (NP (NNP 1=John)) (. 3=?))", 1),
    ("(ROOT (S (NP (NN 0=wer)) (VP (VB 1=kommt))))", 1),
    ("(NN a) (S (A 1=b) (B 0=c))", 8),
]


@pytest.mark.parametrize(("line", "column"), LINES)
def test_discontinuous_lines_are_refused_by_name(line, column):
    with pytest.raises(DiscontinuousTreeError, match="projective") as caught:
        read_forest(line, path="tiger.discbracket", line_number=12)
    assert (caught.value.path, caught.value.line, caught.value.column) == ("tiger.discbracket", 12, column)


@pytest.mark.parametrize(
    ("line", "leaves"),
    [
        ("(S (NN x=1) (NN 0=0))", ["x=1", "0=0"]),
        ("(S (NN 2=3) (NN 5=6))", ["2=3", "5=6"]),
        ("(S (NN 0=a) (NN 0=b))", ["0=a", "0=b"]),
        ("(S (NN 0=) (NN 1=))", ["0=", "1="]),
        ("(NN 0=a)", ["0=a"]),
    ],
)
def test_words_with_equals_signs_are_words(line, leaves):
    assert forest_leaves(read_forest(line)) == leaves
    assert write_forest(read_forest(line)) == line
