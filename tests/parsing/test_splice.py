"""Pieces put into written trees, against the same on trees."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tree_fairseq.parsing.controls import ControlParser
from tree_fairseq.parsing.pieces import splice_pieces
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.subwords import split_words

WORDS = st.one_of(
    st.sampled_from(["(", ")", "-LRB-", "\\(", "\\-RRB-", "a", "S)", "@@", "x@@", "&apos;"]),
    st.text(alphabet="ab()\\-LRB", min_size=1, max_size=6),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(WORDS, st.lists(WORDS, min_size=1, max_size=3)), min_size=1, max_size=8), st.randoms())
def test_equal_to_splitting_the_tree(split, generator):
    words, pieces = [word for word, _ in split], [parts for _, parts in split]
    tree = ControlParser("random", lambda width, _: generator.randrange(1, width)).parse([words])[0]
    written = write_forest((tree,))
    assert splice_pieces(written, words, pieces) == write_forest(split_words((tree,), pieces))
    assert splice_pieces(written, words, [[word] for word in words]) == written


def test_a_split_word_keeps_its_tag():
    assert (
        splice_pieces("(S (NN dogs) (VB run))", ["dogs", "run"], [["do@@", "gs"], ["run"]])
        == "(S (NN (NN_sub do@@) (NN_sub gs)) (VB run))"
    )


def test_a_tree_over_other_words_is_refused():
    written = "(S (NN dogs) (VB run))"
    for words in (["dogs", "ran"], ["dogs"], ["dogs", "run", "fast"], ["run", "dogs"]):
        assert splice_pieces(written, words, [[word] for word in words]) is None


def test_the_result_reads_back():
    spliced = splice_pieces("(S (-LRB- -LRB-) (NN x))", ["(", "x"], [["("], ["\\-LRB-", ")"]])
    assert [leaf for tree in read_forest(spliced) for leaf in tree.leaves()] == ["(", "\\-LRB-", ")"]
