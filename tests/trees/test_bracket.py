"""Reading and writing brackets: any line, and nltk's reading."""

from __future__ import annotations

import nltk
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.strategies import any_trees, forests, plain_trees, words
from tree_fairseq import errors
from tree_fairseq.trees.bracket import escape, read_forest, read_tree, unescape, write_forest
from tree_fairseq.trees.text import tokens
from tree_fairseq.trees.tree import Tree, forest_leaves

_PIECES = [*"()() \t\\\xa0\u2028\r\n\xe9\x00", "(S ", "(NN a)", " (NP", "the", "-LRB-", "-RRB-", "0=a", "1=b"]
_BRACKET_SOUP = st.lists(st.sampled_from(_PIECES), max_size=25).map("".join)


@st.composite
def damaged_lines(draw):
    """Written forests in which a piece has been deleted, inserted or doubled."""
    line = write_forest(draw(forests(plain_trees())))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(line)))
        end = draw(st.integers(start, min(len(line), start + 4)))
        line = (
            line[:start] + draw(_BRACKET_SOUP.map(lambda text: text[:3])) + line[draw(st.sampled_from([start, end])) :]
        )
    return line


ANY_LINE = _BRACKET_SOUP | damaged_lines() | st.text()


@given(ANY_LINE)
@settings(deadline=None, max_examples=200)
@example("(S (A 0=x) (B " + "1" * 5000 + "=y))")
@example("(S (A 0=x) (B \u0661=y))")
def test_any_line_gives_a_forest_that_reads_back_or_a_typed_error(line):
    try:
        forest = read_forest(line)
    except errors.TreeFormatError as error:
        assert str(error)
        return
    written = write_forest(forest)
    assert read_forest(written) == forest
    assert tokens(" ".join(forest_leaves(forest))) == forest_leaves(forest)


@given(forests() | any_trees().map(lambda tree: (tree,)))
@settings(deadline=None)
def test_the_reader_accepts_all_that_the_writer_writes(forest):
    try:
        line = write_forest(forest)
    except errors.TreeFormatError:
        return
    assert read_forest(line) == forest


@given(words() | st.text(alphabet="\\-LRB()", max_size=12))
@settings(deadline=None, max_examples=800)
def test_escapes_have_an_inverse(word):
    escaped = escape(word)
    assert "(" not in escaped and ")" not in escaped
    assert unescape(escaped) == word


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("(", "-LRB-"),
        (")", "-RRB-"),
        ("t(est)", "t-LRB-est-RRB-"),
        (":)", ":-RRB-"),
        ("-LRB-", "\\-LRB-"),
        ("\\(", "\\\\-LRB-"),
        ("\\-RRB-", "\\\\\\-RRB-"),
        ("1\\/2", "1\\\\/2"),
        ("-LSB-", "\\-LSB-"),
        ("-LRB-RRB-", "\\-LRB\\-RRB-"),
    ],
)
def test_written_form_of_brackets(word, written):
    assert write_forest((Tree("X", [Tree(word)]),)) == f"(X {written})"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("-LRB", "-LRB"),
        ("\\\\-LRB", "\\\\-LRB"),
        ("\\-LRB", "-LRB"),
        ("-LRB--RRB-", "()"),
        ("-LSB-x-RCB-", "[x}"),
        (r"1\/2\*", "1/2*"),
        (r"\\/", r"\/"),
    ],
)
def test_reading_of_unusual_escapes(text, word):
    assert unescape(text) == word


# At this length, a regular expression of quadratic time would take minutes.
LONG = 200_000


@pytest.mark.parametrize("end", ["x(", "(", "-LRB-", "", "-LR"])
def test_long_runs_of_backslashes_take_linear_time(end):
    word = "\\" * LONG + end
    assert unescape(escape(word)) == word
    assert unescape(word + "x") is not None


@pytest.mark.parametrize(
    ("line", "is_tree"),
    [
        ("(S" + " " * LONG + "(A" + "\t" * LONG + "a" + " " * LONG + ")" + " " * LONG + ")", True),
        ("(" + "S" * LONG + " " + "a" * LONG + ")", True),
        ("(S" + " " * LONG + "a" + " " * LONG + "b)", False),
        ("(S a" + " " * LONG, False),
        ("(" + "S" * LONG, False),
        ("(S (A " + "a" * LONG + " " * LONG + "(", False),
        (" " * LONG + "a", False),
    ],
)
def test_long_runs_of_blanks_and_letters_take_linear_time(line, is_tree):
    if is_tree:
        assert read_forest(line)
    else:
        with pytest.raises(errors.TreeFormatError):
            read_forest(line)


def test_a_tag_is_not_escaped():
    tree = read_tree("(-LRB- -LRB-)")
    assert (tree.label, tree.leaves()) == ("-LRB-", ["("])


@given(plain_trees())
@settings(deadline=None)
def test_nltk_reads_what_is_written(tree):
    line = write_forest((tree,))
    theirs = nltk.Tree.fromstring(line)
    assert theirs.leaves() == tree.leaves()
    assert from_nltk(theirs) == tree
    assert read_tree(" ".join(str(theirs).split("\n"))) == tree
    assert theirs.height() == tree.height() + 1


def from_nltk(tree):
    if isinstance(tree, str):
        return Tree(tree)
    return Tree(tree.label(), [from_nltk(child) for child in tree])


def test_spacing_does_not_matter():
    expected = read_tree("(S (NP (NN a)) (VP (VB b)))")
    for line in (
        "(S(NP(NN a))(VP(VB b)))",
        "\t( S\t(NP ( NN\ta ) ) ( VP (VB b)\t) )  ",
        "(S (NP (NN a)) (VP (VB b)))\r\n",
    ):
        assert read_tree(line) == expected


def test_read_tree_wants_exactly_one():
    with pytest.raises(errors.EmptyTreeError, match="blank"):
        read_tree(" ")
    with pytest.raises(errors.OutsideTreeError, match="2 trees"):
        read_tree("(A a) (B b)")


@pytest.mark.parametrize(
    ("tree", "error"),
    [
        (Tree("word"), errors.OutsideTreeError),
        (Tree("NP", [Tree("a"), Tree("b")]), errors.MixedChildrenError),
        (Tree("NP", [Tree("NN", [Tree("a")]), Tree("b")]), errors.MixedChildrenError),
        (Tree("", [Tree("a")]), errors.UnlabelledTreeError),
        (Tree("NN", [Tree("")]), errors.EmptyTreeError),
        (Tree("NN", [Tree("a b")]), errors.UnsupportedCharacterError),
        (Tree("N N", [Tree("a")]), errors.UnsupportedCharacterError),
        (Tree("N(", [Tree("a")]), errors.UnsupportedCharacterError),
        (Tree("NN", [Tree("\ud800")]), errors.UnsupportedCharacterError),
        (Tree("S", [Tree("A", [Tree("1=a")]), Tree("B", [Tree("0=b")])]), errors.DiscontinuousTreeError),
    ],
)
def test_trees_that_cannot_be_written_are_refused(tree, error):
    with pytest.raises(error):
        write_forest((tree,))
