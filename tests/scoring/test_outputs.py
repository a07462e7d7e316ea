"""Reads the output of fairseq-generate."""

from __future__ import annotations

import pytest

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.outputs import read_hypotheses, read_outputs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("S-0\ta\n", "sentence 0 has no hypothesis and the closing line is missing"),
        ("H-0\t-1\ta\nH-2\t-1\tb\n", "sentence 1 was not translated"),
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
        read_hypotheses(path, 1 if text.startswith("S") else 3)


def test_steps_and_marks_of_unfinished_hypotheses(tmp_path):
    path = tmp_path / "generate-test.txt"
    path.write_text("H-1\t-1\ta\nI-1\t7 partial invalid\nH-1\t-2\tb\nI-1\t9\nH-0\t-1\tc\nI-0\t4\n")
    outputs = read_outputs(path)
    assert outputs.steps == {0: 4, 1: 7} and outputs.unfinished == {1: {"partial", "invalid"}}
