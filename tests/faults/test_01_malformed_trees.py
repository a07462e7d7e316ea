"""Fault 1: malformed trees are refused with file, line and column, one exception class a malformation."""

from __future__ import annotations

import pytest

from tree_fairseq import errors
from tree_fairseq.trees.bracket import read_forest

CASES = [
    ("(S (NP (NN dog))", errors.UnclosedTreeError, 1, "never closed"),
    ("(S (NP (NN dog", errors.UnclosedTreeError, 1, "3 brackets"),
    ("(NN dog) (", errors.UnclosedTreeError, 10, "1 bracket"),
    ("(NN dog))", errors.ExtraCloseError, 9, "without an opening one"),
    (")", errors.ExtraCloseError, 1, "without an opening one"),
    ("()", errors.EmptyTreeError, 1, "holds no word"),
    ("(S (NN dog) ())", errors.EmptyTreeError, 13, "holds no word"),
    ("(S (NN ) (VB barks))", errors.EmptyTreeError, 4, "(NN )"),
    ("(NN)", errors.EmptyTreeError, 1, "(NN )"),
    ("(S ( (NN dog)))", errors.UnlabelledTreeError, 4, "(ROOT (S ...))"),
    ("(NP (DT the) dog)", errors.MixedChildrenError, 14, "'dog' beside a constituent"),
    ("(NP the (NN dog))", errors.MixedChildrenError, 9, "a constituent beside the word 'the'"),
    ("(S (NN a b))", errors.MixedChildrenError, 10, "'b' beside the word 'a'"),
    ("the dog barks", errors.OutsideTreeError, 1, "'the' belongs to no tree"),
    ("(NN dog) . (VB barks)", errors.OutsideTreeError, 10, "'.' belongs to no tree"),
    ("\ufeff(NN dog)", errors.OutsideTreeError, 1, "byte order mark"),
    ("#BOS 1 0 1 0", errors.OutsideTreeError, 1, "export format of NEGRA"),
    ("Die\tART\t--\tNK\t500", errors.OutsideTreeError, 1, "export format of NEGRA"),
    ("Die\tdie\tART\tNom\tNK\t500", errors.OutsideTreeError, 1, "export format of NEGRA"),
    ("pos\tthe film is good", errors.OutsideTreeError, 1, "to --task tree_classification"),
]


@pytest.mark.parametrize(("line", "error", "column", "message"), CASES)
def test_a_malformed_tree_is_an_error_with_its_place_and_a_way_to_mend_it(line, error, column, message):
    with pytest.raises(error) as caught:
        read_forest(line, path="train.mrg", line_number=17)
    assert type(caught.value) is error
    assert (caught.value.path, caught.value.line, caught.value.column) == ("train.mrg", 17, column)
    assert str(caught.value).startswith(f"train.mrg:17:{column}: ")
    assert message in str(caught.value)
    assert caught.value.hint.endswith(".")


def test_long_words_are_shortened_in_messages():
    with pytest.raises(errors.OutsideTreeError) as caught:
        read_forest("x" * 10_000)
    assert len(str(caught.value)) < 200
