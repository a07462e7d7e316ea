"""Checks of arrays find exactly the lines that cannot be decoded."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import strategies
from tree_fairseq.data_bin.kinds import malformed_lines
from tree_fairseq.data_bin.tree_store import TreeBlock
from tree_fairseq.errors import TreeFormatError
from tree_fairseq.trees.spans import TreeSpans, decode, encode


def is_forest(leaves: int, spans: np.ndarray) -> bool:
    """The slow twin: whether the arrays can be decoded and encoding the result gives them back."""
    try:
        forest = decode(TreeSpans(["x"] * leaves, ["X"] * len(spans), spans))
    except TreeFormatError:
        return False
    return np.array_equal(encode(forest).spans, spans)


def block_of(lines: list[tuple[int, np.ndarray]]) -> TreeBlock:
    rows = [np.insert(spans, 0, 4, axis=1) for _, spans in lines]
    return TreeBlock(
        np.array([leaves for leaves, _ in lines], np.int32),
        np.array([len(spans) for _, spans in lines], np.int32),
        np.concatenate([np.zeros((0, 4), np.int32), *rows]).astype(np.int32),
    )


@st.composite
def damaged_lines(draw):
    """A line's arrays, some with a number changed, a node lost or twice, or a leaf too many."""
    spans = encode(draw(strategies.forests(strategies.plain_trees(6)))).spans
    leaves = int(spans[:, 1].max(initial=0))
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        what = draw(st.sampled_from(["number", "lose", "twice", "leaves"]))
        if what == "leaves":
            leaves = max(0, leaves + draw(st.sampled_from([-1, 1])))
        elif len(spans):
            node = draw(st.integers(0, len(spans) - 1))
            if what == "number":
                spans = spans.copy()
                spans[node, draw(st.integers(0, 2))] += draw(st.sampled_from([-3, -1, 1, 5]))
            else:
                spans = np.delete(spans, node, 0) if what == "lose" else np.insert(spans, node, spans[node], axis=0)
    return leaves, spans


@settings(deadline=None, max_examples=300)
@given(st.lists(damaged_lines(), max_size=5))
def test_damage_is_found_exactly_if_decoding_fails(lines):
    assert malformed_lines(block_of(lines)).tolist() == [not is_forest(*line) for line in lines]


def test_very_deep_lines_are_checked():
    deep = encode((strategies.deep_tree(20_000),)).spans
    chain = encode((strategies.deep_tree(20_000, branching=False),)).spans
    wrong = deep.copy()
    wrong[10_000, 1] -= 1
    lines = [(20_000, deep), (1, chain), (20_000, wrong), (0, deep[:0])]
    assert malformed_lines(block_of(lines)).tolist() == [False, False, True, False]
