"""Fault 8: a line of 2,000 tokens, or of more pieces than some models take, costs its own time and nothing else."""

from __future__ import annotations

from tests.parsing.conftest import content, english_models, parse_file, write_text  # noqa: F401 (a fixture)
from tests.parsing.fake_parsers import FaultyParser
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.tree import forest_leaves


def test_a_line_of_600_pieces_stays_one_line():
    line = " ".join(["un@@ for@@ tunate@@ ly"] * 150)
    parser = FaultyParser()
    (parsed,) = LineParser(ParserOptions(name="faulty"), parser).parse_lines([line])
    assert forest_leaves(parsed.forest) == line.split() and len(parser.calls[0][0]) == 150


def test_what_does_not_fit_even_alone_gets_a_flat_tree(tmp_path):
    lines = ["a b"] * 3 + ["HUGE " + "w " * 1999] + [f"MEMORY {index}" for index in range(9)]
    options = ParserOptions(name="faulty", batch_size=8)
    parsed = parse_file(write_text(tmp_path / "text", lines), tmp_path / "out", options)
    forests = content(parsed.shards).decode().splitlines()
    assert [forest_leaves(read_forest(forest)) for forest in forests] == [line.split() for line in lines]
    assert parsed.failed == {4: 1} and forests[3].startswith("(FRAG (XX HUGE) (XX w)")
    assert all(forest.startswith("(S ") for index, forest in enumerate(forests) if index != 3)


def test_the_real_parser_takes_a_long_line(english_models):
    options = ParserOptions(parser_dir=str(english_models), device="cpu")
    line = "the man that sees the woman sleeps , " * 250
    short = "the man sleeps ."
    parsed = LineParser(options).parse_lines([short, line, short])
    assert [forest_leaves(each.forest) for each in parsed] == [short.split(), line.split(), short.split()]
    assert not any(each.failed for each in parsed)
    assert parsed[0].forest == LineParser(options).parse_lines([short])[0].forest
