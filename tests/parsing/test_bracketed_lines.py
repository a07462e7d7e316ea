"""Ready-made trees, well formed and not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tree_fairseq.errors import TreeFormatError
from tree_fairseq.parsing.input_lines import read_bracketed
from tree_fairseq.trees.bracket import write_forest
from tree_fairseq.trees.tree import forest_leaves


def test_good_lines_are_read():
    forest, failed = read_bracketed("(S (NP (NN a))) (S (NN -LRB-))", "stop")
    assert write_forest(forest) == "(S (NP (NN a))) (S (NN -LRB-))" and not failed
    assert read_bracketed("", "stop") == ((), False)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("(S (NP (NN a) (NN b))", "a b"),
        ("(S (NN a))) (NN b)", "a b"),
        ("(NN a b)", "a b"),
        ("(S (NN a) b)", "a b"),
        ("((NN a))", "a"),
        ("( (NN a) )", "a"),
        ("(S () (NN a))", "a"),
        ("(S (NN -LRB-) (NN", "("),
        ("(S (NN ) (NN a))", "a"),
    ],
)
def test_broken_brackets_leave_the_words(line, words):
    with pytest.raises(TreeFormatError) as stopped:
        read_bracketed(line, "stop", "trees.txt", 7)
    assert str(stopped.value).startswith("trees.txt:7:")
    forest, failed = read_bracketed(line, "flat", "trees.txt", 7)
    assert failed and forest_leaves(forest) == words.split() and len(forest) == 1 and forest[0].label == "FRAG"


@pytest.mark.parametrize(
    "line", ["just text", "(S (NN a)) b", "(NN a\u00a0b)", "()", "(", "(S 1=b 0=a)", "(S (N 1=b) (N 0=a))", "(NN"]
)
def test_words_in_doubt_stop_in_any_case(line):
    with pytest.raises(TreeFormatError, match="trees.txt:7"):
        read_bracketed(line, "flat", "trees.txt", 7)


@settings(deadline=None, max_examples=200)
@given(st.text(alphabet="() \tab-LRB\\=01\u00a0", max_size=25))
def test_any_line_is_read_or_refused(line):
    try:
        forest, _ = read_bracketed(line, "flat")
    except TreeFormatError:
        return
    assert read_bracketed(write_forest(forest), "stop") == (forest, False)
