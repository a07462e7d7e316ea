"""Labels of program trees: chains, rests of long lists and parts come apart and together again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tree_fairseq.source_code import productions
from tree_fairseq.trees.tree import Tree

TOKENS = ("'(", "'if", "+distinct", "-desc", "kind=LEFT")


@st.composite
def flat_trees(draw, depth: int = 3) -> Tree:
    """A tree with one node for each production, as libraries have them."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return Tree(productions.leaf_label("Name", draw(st.sampled_from(["x", "a b", "", '"', " | y", "..."]))))
    words, children = [], []
    for name in draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=3)):
        words += draw(st.lists(st.sampled_from(TOKENS), max_size=1))
        count = draw(st.sampled_from([0, 1, 1, 2, 15, 40]))
        words.append(productions.counted_list(name, count) if count else name)
        few = [draw(flat_trees(depth=depth - 1)) for _ in range(min(count or 1, 2))]
        children += (few * (count or 1))[: count or 1]
    return Tree(" ".join([draw(st.sampled_from(["If", "Call"])), *words]), children)


def folded(tree: Tree) -> Tree:
    """The tree with chains and rests, built with `node` from the leaves up."""

    def fold(here: Tree, children: list[Tree]) -> Tree:
        type_name, *words = here.label.split(" ")
        return productions.node(type_name, words, children) if children else here

    return tree.fold(fold)


@settings(max_examples=80, deadline=None)
@given(tree=flat_trees())
def test_a_folded_tree_unfolds_to_the_same_tree(tree):
    short = folded(tree)
    assert productions.unfolded(short) == tree
    assert all(len(here.children) <= productions.MOST_CHILDREN for here in short.preorder())
    # No node has an only child, except the leaf of a piece.
    assert all(len(here.children) != 1 for here in short.preorder())


@settings(max_examples=80, deadline=None)
@given(tree=flat_trees())
def test_parts_of_a_node_join_to_the_same_node(tree):
    in_parts = tree.fold(lambda here, children: productions.parts(here.label, children) if children else here)
    assert productions.unfolded(in_parts) == tree
    for here in in_parts.preorder():
        fields = [name for name in productions.parse_label(here.label).fields if not name.endswith(productions.REST)]
        assert len(fields) <= 1


def test_fields_of_labels():
    assert productions.parse_label("If test body*2 orelse[]").fields == ("If.test", "If.body", "If.body", "If.orelse")
    assert productions.parse_label("Where this | EQ this expression").fields == ("EQ.this", "EQ.expression")
    assert productions.parse_label("If... body*2 ...").fields == ("If.body", "If.body", "If...")
    assert productions.parse_label("block '{ _*2 '}").fields == ("block '{", "block '{")
    assert productions.parse_label('Column this | Identifier "x y').type == "Column"
    assert productions.split_leaf('Column this | Identifier "x "y') == ("Column this | Identifier", 'x "y')
