"""Fault 6: brackets in words are escaped by the writer alone, and a literal ``-LRB-`` survives."""

from __future__ import annotations

import pytest

from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.spans import decode, encode, read_spans
from tree_fairseq.trees.tree import Tree, forest_leaves

WORDS = r"( ) t(est) :) :-) ((( -LRB- -RRB- -LRB-b-RRB- (-LRB-) \( \-LRB- -LRB LRB".split() + ["\\"]


@pytest.mark.parametrize("word", WORDS)
def test_brackets_survive_every_road(word):
    forest = (Tree("S", [Tree("X", [Tree("a")]), Tree("X", [Tree(word)])]),)
    line = write_forest(forest)
    assert read_forest(line) == forest
    assert read_spans(line).leaves == ["a", word]
    assert decode(encode(forest)) == forest


def test_treebanks_are_read_as_they_mean_it():
    forest = read_forest("(PRN (-LRB- -LRB-) (NN b) (-RRB- -RRB-))")
    assert forest_leaves(forest) == ["(", "b", ")"]
    assert [child.label for child in forest[0].children] == ["-LRB-", "NN", "-RRB-"]
    assert write_forest(forest) == "(PRN (-LRB- -LRB-) (NN b) (-RRB- -RRB-))"


def test_a_literal_escape_differs_from_a_bracket():
    assert forest_leaves(read_forest("(X \\-LRB-b\\-RRB-) (X -LRB-b-RRB-)")) == ["-LRB-b-RRB-", "(b)"]
