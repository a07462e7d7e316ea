"""Binary trees from split points, against the recursion that defines them."""

from __future__ import annotations

import random

import pytest

from tree_fairseq.trees.spans import encode
from tree_fairseq.trees.tree import Tree, binary_tree


def recursive(words, split, start, end):
    if end - start == 1:
        return Tree("X", [Tree(words[start])])
    middle = split[start, end]
    return Tree("X", [recursive(words, split, start, middle), recursive(words, split, middle, end)])


@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_recursion(seed):
    chance = random.Random(seed)
    words = [f"w{k}" for k in range(chance.randrange(1, 12))]
    n = len(words)
    split = {(start, end): chance.randrange(start + 1, end) for start in range(n) for end in range(start + 2, n + 1)}
    assert binary_tree(words, lambda start, end: split[start, end], "X") == recursive(words, split, 0, n)


def test_splits_are_asked_for_from_the_root_down_and_from_left_to_right():
    asked = []

    def middle(start, end):
        asked.append((start, end))
        return (start + end) // 2

    binary_tree("abcd", middle, "X")
    assert asked == [(0, 4), (0, 2), (2, 4)]


def test_a_chain_of_many_words():
    tree = binary_tree(["w"] * 20_000, lambda start, end: start + 1, "X")
    assert len(encode((tree,)).labels) == 39_999
