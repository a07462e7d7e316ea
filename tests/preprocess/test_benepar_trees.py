"""Trees of benepar as bracketed lines, with a parser of nltk trees in benepar's place."""

from __future__ import annotations

import sys
import types

from hypothesis import given
from hypothesis import strategies as st
from nltk import Tree as NltkTree

from preprocess.benepar_trees import bracketed, escape, flat, load_parser, main, parse_lines
from tree_fairseq.trees import bracket


@given(st.text(st.sampled_from("\\()-LRBa"), min_size=1))
def test_escape_is_the_reader_s(word):
    assert escape(word) == bracket.escape(word)
    assert bracket.unescape(escape(word)) == word


def right_branching(words):
    tree = NltkTree("N", [words[-1]])
    for word in reversed(words[:-1]):
        tree = NltkTree("S", [NltkTree("D", [word]), tree])
    return tree


def test_leaves_are_the_words_given():
    words = ["l&apos;", "(", "-LRB-", "chat"]
    line = bracketed(right_branching(["l'", "-LRB-", "x", "chat"]), words)
    (tree,) = bracket.read_forest(line)
    assert tree.leaves() == words


def test_untagged_words_get_a_tag_and_wrong_counts_none():
    assert bracketed(NltkTree("S", ["a", NltkTree("N", ["b"]), "c"]), ["a", "b", "c"]) == "(S (XX a) (N b) (XX c))"
    assert bracketed(right_branching(["a", "b"]), ["a"]) is None
    assert bracketed(right_branching(["a", "b"]), ["a", "b", "c"]) is None


def test_deep_trees_need_no_recursion():
    words = ["w"] * 3000
    assert bracketed(right_branching(words), words).count("(") == 5999


def fake_benepar(monkeypatch, longest):
    """A benepar that raises on long sentences, whole batches at a time, as the real one does."""

    class Parser:
        def __init__(self, model, batch_size):
            assert model == "benepar_fr2"

        def parse_sents(self, inputs):
            inputs = list(inputs)
            if any(len(sentence.words) > longest for sentence in inputs):
                raise ValueError("sentence too long")
            return [right_branching(sentence.words) for sentence in inputs]

    module = types.SimpleNamespace(Parser=Parser, InputSentence=lambda words: types.SimpleNamespace(words=words))
    monkeypatch.setitem(sys.modules, "benepar", module)


def test_every_line_has_its_place(monkeypatch):
    fake_benepar(monkeypatch, longest=3)
    lines = ["a b", "", "a b c d", "c"]
    output = list(parse_lines(lines, load_parser("benepar_fr2", 2), block=2))
    assert output == ["(S (D a) (N b))", "", flat("a b c d".split()), "(N c)"]


def test_command(monkeypatch, tmp_path):
    fake_benepar(monkeypatch, longest=99)
    (tmp_path / "in").write_text("le chat\n\nil dort\n")
    main(["--input", str(tmp_path / "in"), "--output", str(tmp_path / "out")])
    assert (tmp_path / "out").read_text() == "(S (D le) (N chat))\n\n(S (D il) (N dort))\n"
