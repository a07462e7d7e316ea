"""Fault 9: the parser fails on one sentence: isolated, counted, named; and too many such sentences end the run with an
error.
"""

from __future__ import annotations

import pytest

from tests.parsing import fake_parsers  # noqa: F401 (registers)
from tests.parsing.conftest import content, parse_file, small_blocks, write_text  # noqa: F401 (a fixture)
from tree_fairseq.commands.parse import main
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.tree import forest_leaves


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("fault", ["RAISE", "NONE", "DROP", "HUGE"])
def test_one_sentence_is_isolated_and_named(tmp_path, small_blocks, fault, workers, caplog):
    lines = [f"sentence {index} of many" for index in range(50)]
    lines[31] += f" {fault}"
    options = ParserOptions(name="faulty", batch_size=10)
    parsed = parse_file(write_text(tmp_path / "text.en", lines), tmp_path / "out", options, workers)
    forests = content(parsed.shards).decode().splitlines()
    assert [forest_leaves(read_forest(forest)) for forest in forests] == [line.split() for line in lines]
    assert [index for index, forest in enumerate(forests) if forest.startswith("(FRAG")] == [31]
    assert parsed.failed == {32: 1} and parsed.lines == 50
    assert "text.en:32: flat tree" in caplog.text


def test_too_many_end_the_command_with_an_error(tmp_path, caplog):
    lines = [f"sentence {index} of many" for index in range(50)]
    lines[3] = lines[40] = "a NONE"
    text = write_text(tmp_path / "text.en", lines)
    arguments = [str(text), str(tmp_path / "out.brackets"), "--tree-parser", "faulty", "--workers", "0"]
    assert main([*arguments, "--max-parse-failures", "1"]) == 1
    assert "text.en: 2 of 50 sentences could not be parsed" in caplog.text and "Lines: 4, 41" in caplog.text
    assert not (tmp_path / "out.brackets").exists()
    assert main([*arguments, "--max-parse-failures", "5%"]) == 0
    assert len((tmp_path / "out.brackets").read_text().splitlines()) == 50
