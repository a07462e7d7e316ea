"""Control trees, compared with recursive definitions."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions, build_parser, flat_tree
from tree_fairseq.trees.bracket import write_forest


def parse(name, words):
    return build_parser(ParserOptions(name=name)).parse([words])[0]


def written(words, split):
    """The slow twin: by recursion."""
    if len(words) == 1:
        return f"(X {words[0]})"
    middle = split(len(words))
    return f"(X {written(words[:middle], split)} {written(words[middle:], split)})"


@settings(deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=25))
def test_fixed_shapes(words):
    assert write_forest((parse("right-branching", words),)) == written(words, lambda width: 1)
    assert write_forest((parse("balanced", words),)) == written(words, lambda width: -(-width // 2))


@settings(deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=25))
def test_random_trees_are_binary_and_determined_by_the_words(words):
    tree = parse("random", words)
    assert tree.leaves() == words
    assert all(node.is_leaf or node.is_preterminal or len(node.children) == 2 for node in tree.preorder())
    # The tree depends neither on other sentences nor on the position.
    again = build_parser(ParserOptions(name="random")).parse([["x", "y", "z"], words])[1]
    assert again == tree


def test_random_trees_vary():
    roots = Counter(len(parse("random", ["w", str(number), "x", "y"]).children[0].leaves()) for number in range(600))
    # All three split points are equally likely.
    assert set(roots) == {1, 2, 3} and all(150 < count < 250 for count in roots.values())


def test_long_sentences_need_no_recursion():
    words = ["w"] * 20_000
    tree = parse("right-branching", words)
    assert tree.height() == 20_000 and len(tree.leaves()) == 20_000


@pytest.mark.parametrize("name", ["right-branching", "balanced", "random"])
def test_the_identity_names_the_parser(name):
    parser = build_parser(ParserOptions(name=name))
    assert parser.identity()["name"] == name and parser.inventory() == ["X"]


def test_the_flat_parser_gives_the_trees_of_failed_parses():
    lines = ["the man sees", "a"]
    parser = LineParser(ParserOptions(name="flat"))
    assert [line.forest for line in parser.parse_lines(lines)] == [(flat_tree(line.split()),) for line in lines]
    assert parser.labels() == (["FRAG", "XX"], ["XX"])
    assert parser.parse_lines([""])[0].forest == ()
