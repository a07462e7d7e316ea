"""Fault 31: a line that is no example is named with file, line and a way to mend it, before anything is parsed or
written.
"""

from __future__ import annotations

import pytest

from tests.classification.examples import classify
from tests.data_bin.corpora import write_lines
from tree_fairseq import errors

GOOD_ROWS = ["a good film\tpos", "a bad film\tneg"]
GOOD_TREES = ["(1 (1 good) (1 film))", "(0 (0 bad) (1 film))", "(1 film)"]

ROWS = [
    ("a good film", errors.LabelColumnError, None, "0 tabs"),
    ("a\tgood film\tpos", errors.LabelColumnError, 12, "2 tabs"),
    ("a good film\tpos\t", errors.LabelColumnError, 16, "2 tabs"),
    ("a good film\t", errors.LabelColumnError, 13, "no class after the tab"),
    ("a good film\t  ", errors.LabelColumnError, 13, "no class after the tab"),
    ("a good film\tvery pos", errors.LabelColumnError, 13, "Join the words of a class by _."),
    ("", errors.EmptyDocumentError, None, "no text"),
    (" \u3000 \tpos", errors.EmptyDocumentError, None, "no text"),
    ("\tpos", errors.EmptyDocumentError, None, "no text"),
    ("pos\ta good film", errors.LabelColumnError, 5, "If the class comes first, swap the columns: awk"),
    ("a good film\t-", errors.UnlabelledExampleError, None, "an example without a class"),
    ("a good film\t<unk>", errors.ClassError, None, "special symbol"),
    ("a good film\t<pad>", errors.ClassError, None, "special symbol"),
    ("a good\x0cfilm\tpos", errors.LineBreakError, 7, "FORM FEED"),
]
TREES = [
    ("", errors.EmptyDocumentError, None, "blank line"),
    ("(1 (1 good) (0 film)", errors.UnclosedTreeError, 1, "never closed"),
    ("(1 (1 good) film)", errors.MixedChildrenError, 13, "film"),
    ("(1 ((1 good)))", errors.UnlabelledTreeError, 4, "without a label"),
    ("(1 good) (0 bad)", errors.OutsideTreeError, None, "2 trees"),
    ("good film", errors.OutsideTreeError, 1, "belongs to no tree"),
    ("(- (1 good) (0 film))", errors.UnlabelledExampleError, None, "the root"),
    ("(1 (<s> good) (0 film))", errors.ClassError, None, "special symbol"),
]
UNKNOWN = [
    ("tsv", "a good film\tneutral", "'neutral' is not a class, the classes are neg, pos"),
    ("trees", "(7 (1 good) (0 film))", "'7' is not a class, the classes are 0, 1"),
    ("trees", "(1 (NP (1 good) (0 film)) (1 .))", "'NP' is not a class, the classes are 0, 1"),
    ("trees", "(1 (1 good) (2 film))", "'2' is not a class"),
]


def into(folder):
    return "--trainpref", folder / "train", "--destdir", folder / "bin"


def refused(folder, split, kind, line, error, column, message):
    good = GOOD_ROWS if kind == "tsv" else GOOD_TREES
    write_lines(folder / f"train.{kind}", good)
    path = write_lines(folder / f"{split}.{kind}", [*good, line])
    arguments = ["--input-format", kind, *into(folder), "--tree-parser", "balanced"]
    if split != "train":
        arguments += [f"--{split}pref", folder / split]
    before = sorted(folder.iterdir())
    with pytest.raises(error) as caught:
        classify(*arguments)
    assert type(caught.value) is error
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), len(good) + 1, column)
    assert message in str(caught.value)
    assert caught.value.hint.endswith(".")
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("split", ["train", "valid", "test"])
@pytest.mark.parametrize("kind, case", [*(("tsv", row) for row in ROWS), *(("trees", tree) for tree in TREES)])
def test_a_line_that_is_no_example(tmp_path, split, kind, case):
    refused(tmp_path, split, kind, *case)


@pytest.mark.parametrize("split", ["valid", "test"])
@pytest.mark.parametrize("kind, line, message", UNKNOWN)
def test_a_class_that_train_does_not_have(tmp_path, split, kind, line, message):
    refused(tmp_path, split, kind, line, errors.UnknownClassError, None, message)


@pytest.mark.parametrize("header", ["sentence\tlabel", "review\tstars"])
def test_a_header(tmp_path, header):
    path = write_lines(tmp_path / "train.tsv", [header, *GOOD_ROWS, *GOOD_ROWS])
    with pytest.raises(errors.LabelColumnError, match="a header: no other line has the class .*tail -n") as caught:
        classify(*into(tmp_path), "--tree-parser", "balanced")
    assert (caught.value.path, caught.value.line) == (str(path), 1)


@pytest.mark.parametrize("kind", ["tsv", "trees"])
def test_an_empty_file(tmp_path, kind):
    (tmp_path / f"train.{kind}").write_bytes(b"")
    with pytest.raises(errors.InputError, match="the file is empty") as caught:
        classify("--input-format", kind, *into(tmp_path), "--tree-parser", "balanced")
    assert caught.value.path == str(tmp_path / f"train.{kind}")


def test_a_missing_file(tmp_path):
    write_lines(tmp_path / "train.tsv", GOOD_ROWS)
    with pytest.raises(errors.InputError, match="no such file") as caught:
        classify("--input-format", "trees", "--trainpref", tmp_path / "train", "--destdir", tmp_path / "bin")
    assert caught.value.path == str(tmp_path / "train.trees")


def test_malformed_parses_in_the_text_column(tmp_path):
    """The file in the message is the user's, not the column that was cut out of it."""
    path = write_lines(tmp_path / "train.tsv", ["(S (NP a))\t1", "(S (NP a)\t0"])
    with pytest.raises(errors.UnclosedTreeError) as caught:
        classify("--trainpref", tmp_path / "train", "--destdir", tmp_path / "bin", "--tree-parser", "brackets")
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), 2, 1)


def test_a_dictionary_with_the_mark_of_no_class(tmp_path):
    write_lines(tmp_path / "train.tsv", GOOD_ROWS)
    write_lines(tmp_path / "dict", ["pos 1", "neg 1", "- 1"])
    with pytest.raises(errors.UnknownClassError, match="marks nodes without a class"):
        classify(*into(tmp_path), "--tree-parser", "balanced", "--tgtdict", tmp_path / "dict")
