"""The reader of many lines gives what the reader of one line gives, and leaves it the lines that are not plain."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import strategies
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.spans import SpanBlock, encode, read_span_block


def check(lines: list[str]) -> SpanBlock:
    block = read_span_block("".join(f"{line}\n" for line in lines).encode("utf-8"))
    assert len(block.is_plain) == len(lines)
    plain = [encode(read_forest(line)) for line, is_plain in zip(lines, block.is_plain) if is_plain]
    assert block.leaf_counts.tolist() == [len(forest.leaves) for forest in plain]
    assert block.node_counts.tolist() == [len(forest.labels) for forest in plain]
    rows = [forest.spans for forest in plain]
    assert np.array_equal(block.rows[:, 1:], np.concatenate([np.zeros((0, 3), np.int32), *rows]))
    labels = [label for forest in plain for label in forest.labels]
    assert [block.labels[number] for number in block.rows[:, 0]] == labels
    assert sorted(block.labels) == sorted(set(labels))
    assert block.text == "".join(" ".join(forest.leaves) + "\n" for forest in plain).encode("utf-8")
    return block


@settings(deadline=None, max_examples=150)
@given(st.lists(strategies.forests(), max_size=6))
def test_written_forests(forests):
    check([write_forest(forest) for forest in forests])


@settings(deadline=None, max_examples=400)
@given(st.lists(st.text(alphabet="()a\u00e9 =1\t\u00a0RBL-\\", max_size=14), max_size=4))
def test_any_text(lines):
    # The reader of one line raises an error for a malformed line that is taken for a plain one.
    check(lines)


def test_any_change_of_a_plain_line():
    generator, line = random.Random(2), "(S (NP (DT the) (NN man)) (VP (VBZ is))) (X (Y y))"
    for _ in range(3000):
        position = generator.randrange(len(line))
        length = generator.randrange(2)
        check([line[:position] + generator.choice(["", *"() a\t="]) + line[position + length :], line])


@pytest.mark.parametrize(
    "line",
    [
        "",
        "(S (NN a))",
        "(S (NN a) (NN b)) (T (NN c))",
        "(NP (NN \u00e4\u4e2d) (, ,))",
        "(A-B=2 (X a=1))",
        "(X (-LRB- -LRB-))",
    ],
)
def test_usual_lines_are_plain(line):
    assert check([line]).is_plain.tolist() == [True]


def test_deep_and_wide_trees():
    deep = "(X " * 70_000 + "(N a)" + ")" * 70_000
    too_deep = "(X " * 100_001 + "(N a)" + ")" * 100_001
    wide = f"(S{' (N a)' * 5000})"
    assert read_span_block(f"{wide}\n{deep}\n{too_deep}\n".encode()).is_plain.tolist()[0]
    block = read_span_block(f"{deep}\n{wide}\n".encode())
    assert block.rows[:70_001, 3].tolist() == list(range(70_001)) and (block.rows[:70_001, 2] == 1).all()
    check([wide, "(S (N b))"])


def test_long_labels():
    check([f"({name} (T a) (T b))" for name in ("L", "\u00c4" * 9)])
