"""Reads the output of fairseq-generate."""

from __future__ import annotations

import pytest

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.outputs import detokenize, read_hypotheses, read_outputs, read_text

OUTPUT = """2026-01-01 | INFO | fairseq | loaded
S-1\tsource one
H-1\t-0.5\tsecond hypothesis
H-1\t-0.9\tworse
P-1\t-0.5
H-0\t-0.1\t
S-2\tsource
H-2\t-1.0\tthird
Generate test with beam=5: BLEU4 = 1.0
"""


def test_best_hypotheses_have_the_order_of_the_data(tmp_path):
    path = tmp_path / "generate-test.txt"
    path.write_text(OUTPUT)
    assert read_hypotheses(path) == ["", "second hypothesis", "third"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("S-0\ta\n", "sentence 0 has no hypothesis"),
        ("H-0\t-1\ta\nH-2\t-1\tb\n", "sentence 1 has no hypothesis"),
        ("H-0\t-1\ta\nH-1\t-1\n", "2: not an H- line"),
        ("H-x\t-1\ta\n", "1: not an H- line"),
        ("H-0\t-1\ta\nI-0\tmany\n", "2: not an I- line"),
        ("H-0\t-1\ta\nI-0\n", "2: not an I- line"),
        ("H-0\t-1\ta\nI-x\t4 partial\n", "2: not an I- line"),
    ],
)
def test_incomplete_outputs_are_refused(tmp_path, text, message):
    path = tmp_path / "generate-test.txt"
    path.write_text(text)
    with pytest.raises(ScoringError, match=message):
        read_hypotheses(path)


def test_steps_and_marks_of_unfinished_hypotheses(tmp_path):
    path = tmp_path / "generate-test.txt"
    path.write_text("H-1\t-1\ta\nI-1\t7 partial invalid\nH-1\t-2\tb\nI-1\t9\nH-0\t-1\tc\nI-0\t4\n")
    outputs = read_outputs(path)
    assert outputs.steps == {0: 4, 1: 7} and outputs.unfinished == {1: {"partial", "invalid"}}


def test_a_wrong_number_of_lines_is_refused(tmp_path):
    (tmp_path / "words").write_text("a\nb\n")
    assert read_text(tmp_path / "words", 2) == ["a", "b"]
    with pytest.raises(ScoringError, match="has 2 lines, the hypotheses are 3"):
        read_text(tmp_path / "words", 3)


def test_detokenized_text():
    assert detokenize(["it &apos;s &quot; fine &quot; ( really ) !", ""], "en") == ['it\'s "fine" (really)!', ""]
