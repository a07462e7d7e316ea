"""Treebanks as they are published: what is no word of a sentence goes, and all readers of brackets agree."""

from __future__ import annotations

import contextlib
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.strategies import forests, plain_trees
from tree_fairseq.classification.examples import read_class_tree
from tree_fairseq.errors import TreeFormatError
from tree_fairseq.parsing.line_parser import LineParser
from tree_fairseq.parsing.parsers import ParserOptions
from tree_fairseq.preprocessing.tree_files import encode_chunk
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.text import inspect_text
from tree_fairseq.trees.tree import Tree, forest_leaves
from tree_fairseq.trees.treebanks import Conventions, penn_trees, read_sentences, strip_function_tags


@pytest.mark.parametrize(
    ("line", "kept", "left_out"),
    [
        # Penn treebank, OntoNotes, Chinese treebank
        (
            "( (S (NP-SBJ-1 (PRP we)) (VP (VB try) (SBAR (-NONE- 0) (S (NP-SBJ (-NONE- *-1)) (VP (VB go)))))))",
            "(ROOT (S (NP-SBJ-1 (PRP we)) (VP (VB try) (SBAR (S (VP (VB go)))))))",
            {"-NONE-": 2},
        ),
        ("(TOP (S (WHNP-1 (-NONE- *OP*)) (NP (NN a))))", "(TOP (S (NP (NN a))))", {"-NONE-": 1}),
        # Switchboard
        ("( (CODE (SYM SpeakerA1) (. .)))", "", {"CODE": 1}),
        ("( (S (EDITED (RM (-DFL- [)) (PRP I)) (PRP I) (-DFL- E_S)))", "(ROOT (S (EDITED (PRP I)) (PRP I)))", None),
        # historical corpora
        (
            "( (META x) (IP-MAT (NP-SBJ *pro*) (NP *T1*) (CODE <P_2>) (CP (WNP-2 0) (C 0) (N man))) (ID MAL,2.3))",
            "(ROOT (IP-MAT (CP (N man))))",
            {"META": 1, "ID": 1, "CODE": 1, "*pro*": 1, "*T1*": 1, "0": 2},
        ),
        # words that look alike
        ("(S (ID a) (CD 0) (SYM *) (UH *grin*))", "(S (ID a) (CD 0) (SYM *) (UH *grin*))", {}),
    ],
)
def test_what_is_no_word_is_left_out_and_counted(line, kept, left_out):
    found = Counter[str]()
    assert write_forest(Conventions().apply(read_forest(line), found)) == kept
    assert left_out is None or found == left_out
    assert Conventions(keep_empty=True).apply(read_forest(line), found) == read_forest(line)


@pytest.mark.parametrize(
    ("labels", "stripped"),
    [
        ("NP-SBJ=2 NP=2 NP-SBJ-1 ADVP-TMP NR-SHORT PRT|ADVP", "NP NP NP ADVP NR PRT"),
        ("DET##lemma=le|g=m## NP-SUJ##x## NP*SB ART*NK NN#NK VVFIN+HD NX:OA NN--", "DET NP NP ART NN VVFIN NX NN"),
        ("$,-- $.--- $*LRB*-- -LRB--NK :-- *LRB*-NK", "$, $. $*LRB* -LRB- : *LRB*"),
        (
            "-NONE- -LRB- - = -- : # * | PRP$ NN_sub NN-X_sub sn.fs",
            "-NONE- -LRB- - = -- : # * | PRP$ NN_sub NN_sub sn.fs",
        ),
    ],
)
def test_function_tags(labels, stripped):
    for label, bare in zip(labels.split(), stripped.split()):
        assert strip_function_tags(Tree(label, [Tree("NP-word=1")])) == Tree(bare, [Tree("NP-word=1")])
    assert strip_function_tags(Tree("NP_SB-X", [Tree("a")]), "_") == Tree("NP", [Tree("a")])


def test_lines_beside_trees_are_counted_and_one_bad_tree_does_not_take_the_others():
    text = "<S ID=1>\n%% Sent 1 (a\n( END_OF_TEXT_UNIT )\n(S\n (NN a))\n\n(S (NN b)\n(S (NN c)) (X (NN d))\n</S>"
    skipped = Counter[str]()
    assert list(penn_trees(text, skipped)) == [(4, "(S (NN a))"), (7, "(S (NN b)"), (8, "(S (NN c)) (X (NN d))")]
    assert skipped == {"lines of markup": 4}
    # A bracket too many later does not hide the one that is missing.
    for text, numbers in (("(S (A a)\n\n(S (A b))\n(S (A c)))", [1, 3, 4]), ("(A a)\n(S (A b)\n(A c))\n", [1, 2, 3])):
        assert [number for number, _ in penn_trees(text, Counter())] == numbers


NOTES = ["(-NONE- *T*-1)", "(CODE <x>)", "(NN 1\\/2)", "(-LSB- -LSB-)", "(NN \\*)", "(C 0)", "(NN 0)", "(SYM -RCB-x)"]


@st.composite
def treebank_lines(draw):
    """Written trees, with notes and escapes among their constituents, often in outer brackets."""
    line = write_forest(draw(forests(plain_trees())))
    for note in draw(st.lists(st.sampled_from(NOTES), max_size=3)):
        line = line.replace(" (", f" {note} (", 1)
    return f"( {line} (ID x,1))" if line and draw(st.booleans()) else line


@given(treebank_lines())
@example("( (S (NN a)))")
@settings(deadline=None)
def test_the_same_bytes_through_every_reader_give_the_same_words(tmp_path_factory, line):
    path = tmp_path_factory.mktemp("lines") / "a.mrg"
    path.write_bytes(f"{line}\n".encode())
    options = ParserOptions(name="brackets")
    own = forest_leaves(read_sentences(line))
    assert forest_leaves(LineParser(options).parse_lines([line])[0].forest) == own
    [chunk] = inspect_text(path).chunks
    assert encode_chunk(path, options, chunk).text.decode().split() == own
    trees = [tree for _, text in penn_trees(line, Counter()) for tree in read_sentences(text)]
    assert forest_leaves(tuple(trees)) == own
    with contextlib.suppress(TreeFormatError, ValueError):  # one tree, of any words
        assert read_class_tree(line).tree.leaves == own
