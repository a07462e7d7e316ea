"""Fault 2: a blank line keeps its slot and is an empty forest at every step."""

from __future__ import annotations

import pytest

from tree_fairseq.drawing.tree_pictures import tree_to_svg
from tree_fairseq.trees.bracket import read_forest, write_forest
from tree_fairseq.trees.spans import decode, encode, read_spans, reduce_spans
from tree_fairseq.trees.subwords import align_pieces, join_bpe, join_sentencepiece, join_words, split_words
from tree_fairseq.trees.text import read_lines, tokens
from tree_fairseq.trees.tree import forest_leaves, tree_to_text


@pytest.mark.parametrize("line", ["", " ", "\t  ", "\n", "\r\n"])
def test_a_blank_line_is_an_empty_forest(line):
    assert read_forest(line) == ()
    assert read_spans(line) == encode(())
    assert forest_leaves(read_forest(line)) == tokens(line) == []


def test_an_empty_forest_is_a_blank_line():
    assert write_forest(()) == ""
    encoded = encode(())
    assert (encoded.leaves, encoded.labels, encoded.spans.shape) == ([], [], (0, 3))
    assert decode(encoded) == ()
    assert len(reduce_spans(encoded.spans)) == 0


def test_subwords_of_nothing():
    assert split_words((), []) == join_words(()) == align_pieces((), [], [], []) == ()
    assert join_bpe([]) == join_sentencepiece([]) == ([], [])


def test_drawings_of_nothing():
    assert tree_to_text(()) == ""
    assert tree_to_svg(()).startswith("<?xml")


def test_blank_lines_keep_their_slot_in_a_file(tmp_path):
    path = tmp_path / "train.mrg"
    path.write_bytes(b"\n(NN a)\n\n \r\n(NN b)\n\n")
    assert [len(read_forest(line)) for line in read_lines(path)] == [0, 1, 0, 0, 1, 0]
