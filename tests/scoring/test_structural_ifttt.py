"""Channels, functions and productions of IFTTT programs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import symbol_trees
from tree_fairseq.scoring.outcomes import production_f1, productions, program
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

READ = notation_named("bracket").read
LINE = (
    "( ROOT IF ( TRIGGER Twitter ( FUNC New_tweet PARAMS ) ) THEN "
    "( ACTION Email ( FUNC Send_me ( PARAMS ( Body {{Text}} ) ) ) ) )"
)
TREES = symbol_trees(labels=("a", "b", "c"), max_children=2, max_leaves=5)


def rules(tree: Tree) -> list:
    """Collects all rules of a tree recursively."""
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


def test_channels_and_functions_of_a_program():
    assert program(READ(LINE)) == (("Twitter", "Email"), ("New_tweet", "Send_me"))
    assert sum(productions(READ(LINE)).values()) == 7


@pytest.mark.parametrize(
    ("line", "channels", "functions"),
    [
        ("x", None, None),
        ("( ROOT IF ( TRIGGER Twitter ( FUNC New ) ) THEN ( ACTION Email ) )", ("Twitter", "Email"), None),
        ("( ROOT IF ( TRIGGER ( FUNC New ) ) THEN ( ACTION Email ( FUNC Send ) ) )", None, ("New", "Send")),
        ("( ROOT ( TRIGGER Twitter FUNC ) ( ACTION Email ( FUNC Send ) ) )", ("Twitter", "Email"), None),
    ],
)
def test_programs_with_missing_parts(line, channels, functions):
    assert program(READ(line)) == (channels, functions)
    assert program(None) == (None, None)


@given(st.lists(st.tuples(st.none() | TREES, TREES), max_size=4))
def test_production_f1_equals_removal_of_rules(pairs):
    assert production_f1(pairs) == pytest.approx(f1(pairs))
