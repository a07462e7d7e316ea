"""Fault 10: the parser's leaves are not the tokens, or its trees come in another order."""

from __future__ import annotations

import pytest

from tests.parsing.fake_parsers import ToyParser
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.trees.tree import forest_leaves

LINES = ["a b c", "d", "e f LEAVES", "g h", "i &quot; j@@ k"]


@pytest.mark.parametrize(
    "shuffle",
    [
        lambda trees: trees[::-1],
        lambda trees: trees[1:] + trees[:1],
        lambda trees: sorted(trees, key=lambda tree: -len(tree.leaves())),
    ],
)
def test_another_order_is_noticed(shuffle):
    class Shuffling(ToyParser):
        def parse(self, sentences):
            return shuffle(super().parse(sentences))

    lines = ["a", "b b", "c c c", "d d", "e"]
    parsed = LineParser(ParserOptions(name="toy"), Shuffling()).parse_lines(lines)
    assert [forest_leaves(line.forest) for line in parsed] == [line.split() for line in lines]
    # Asked alone, each sentence gets its own tree.
    assert not any(line.failed for line in parsed)


@pytest.mark.parametrize("change", [lambda trees: trees[:-1], lambda trees: [*trees, trees[0]], lambda trees: []])
def test_another_number_of_trees_is_noticed(change):
    class Miscounting(ToyParser):
        def parse(self, sentences):
            trees = super().parse(sentences)
            return change(trees) if len(trees) > 1 else trees

    parsed = LineParser(ParserOptions(name="toy"), Miscounting()).parse_lines(["a", "b b", "c"])
    assert [forest_leaves(line.forest) for line in parsed] == [["a"], ["b", "b"], ["c"]] and not any(
        line.failed for line in parsed
    )
