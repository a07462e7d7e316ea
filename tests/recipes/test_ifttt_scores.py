"""Channels, functions and productions of IFTTT programs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.ifttt.scores import ProgramSet, production_f1, productions
from preprocess.ifttt import program
from tests.scoring.runs import scores, write_lines, write_outputs
from tests.strategies import symbol_trees
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

READ = notation_named("bracket").read
LINE = (
    "( ROOT IF ( TRIGGER Twitter ( FUNC New_tweet PARAMS ) ) THEN "
    "( ACTION Email ( FUNC Send_me ( PARAMS ( Body {{Text}} ) ) ) ) )"
)
TREES = symbol_trees(labels=("a", "b", "c"), max_children=2, max_leaves=5)


def rules(tree: Tree) -> list:
    if not tree.children:
        return []
    rule = (tree.label, [child.label for child in tree.children])
    return [rule, *(rule for child in tree.children for rule in rules(child))]


def f1(pairs) -> float:
    """Computes the F measure by removing each rule of the output from those of the reference."""
    common = found = wanted = 0
    for output, reference in pairs:
        ours, theirs = rules(output) if output else [], rules(reference)
        found, wanted = found + len(ours), wanted + len(theirs)
        for rule in ours:
            if rule in theirs:
                theirs.remove(rule)
                common += 1
    if not common:
        return 0.0
    precision, recall = common / found, common / wanted
    return 100 * 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize(
    ("line", "channels", "functions"),
    [
        (LINE, ("Twitter", "Email"), ("New_tweet", "Send_me")),
        ("x", None, None),
        ("( ROOT IF ( TRIGGER Twitter ( FUNC New ) ) THEN ( ACTION Email ) )", ("Twitter", "Email"), None),
        ("( ROOT IF ( TRIGGER ( FUNC New ) ) THEN ( ACTION Email ( FUNC Send ) ) )", None, ("New", "Send")),
        ("( ROOT ( TRIGGER Twitter FUNC ) ( ACTION Email ( FUNC Send ) ) )", ("Twitter", "Email"), None),
    ],
)
def test_channels_and_functions_of_programs(line, channels, functions):
    assert program(READ(line)) == (channels, functions)
    assert program(None) == (None, None) and sum(productions(READ(LINE)).values()) == 7


@given(st.lists(st.tuples(st.none() | TREES, TREES), max_size=4))
def test_production_f1_equals_removal_of_rules(pairs):
    assert production_f1(pairs) == pytest.approx(f1(pairs))


def test_programs_are_scored_by_their_parts(tmp_path):
    reference = "( ROOT IF ( TRIGGER A ( FUNC f PARAMS ) ) THEN ( ACTION B ( FUNC g PARAMS ) ) )"
    outputs = [reference, reference.replace("g P", "h P"), reference.replace("B", "C"), "( ROOT"]
    write_lines(tmp_path / "words" / "test.lf", [reference] * 4)
    write_lines(tmp_path / "words" / "test.groups", ["a b", "a", "", "b"])
    write_outputs(tmp_path / "runs" / "tree", outputs)
    arguments = ["--run", tmp_path / "runs" / "tree", "--references", tmp_path / "words", "--target-lang", "lf"]
    arguments += ["--notation", "bracket", "--primary", "channel_function_accuracy"]
    assert ProgramSet.main(list(map(str, arguments))) == 0
    found = scores(tmp_path)["metrics"]
    assert (found["channel_accuracy"], found["channel_function_accuracy"], found["accuracy"]) == (50, 25, 25)
    assert found["production_f1"] == pytest.approx(200 * (5 + 4 + 4) / (15 + 20))
    assert found["channel_accuracy_b"] == 50
