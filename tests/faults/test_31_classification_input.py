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
    ("a good film\tvery pos", errors.LabelColumnError, 13, "'very pos' is not one word"),
    ("", errors.EmptyDocumentError, None, "no text"),
    (" \u3000 \tpos", errors.EmptyDocumentError, None, "no text"),
    ("\tpos", errors.EmptyDocumentError, None, "no text"),
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
UNKNOWN_ROW = (
    "a good film\tneutral",
    errors.UnknownClassError,
    None,
    "'neutral' is not a class, the classes are neg, pos",
)
UNKNOWN_TREES = [
    ("(7 (1 good) (0 film))", errors.UnknownClassError, None, "'7' is not a class, the classes are 0, 1"),
    ("(1 (NP (1 good) (0 film)) (1 .))", errors.UnknownClassError, None, "'NP' is not a class, the classes are 0, 1"),
    ("(1 (1 good) (2 film))", errors.UnknownClassError, None, "'2' is not a class"),
]


def into(folder):
    return "--trainpref", folder / "train", "--destdir", folder / "bin"


def refused(folder, kind, split, lines, error, column, message):
    path = write_lines(folder / f"{split}.{kind}", lines)
    if split != "train":
        write_lines(folder / f"train.{kind}", GOOD_ROWS if kind == "tsv" else GOOD_TREES)
    arguments = ["--input-format", kind, *into(folder), "--tree-parser", "balanced"]
    if split != "train":
        arguments += [f"--{split}pref", folder / split]
    before = sorted(folder.iterdir())
    with pytest.raises(error) as caught:
        classify(*arguments)
    assert type(caught.value) is error
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), len(lines), column)
    assert message in str(caught.value)
    assert caught.value.hint.endswith(".")
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("split", ["train", "valid", "test"])
@pytest.mark.parametrize(("line", "error", "column", "message"), ROWS)
def test_rows(tmp_path, split, line, error, column, message):
    refused(tmp_path, "tsv", split, [*GOOD_ROWS, line], error, column, message)


@pytest.mark.parametrize("split", ["train", "valid", "test"])
@pytest.mark.parametrize(("line", "error", "column", "message"), TREES)
def test_trees(tmp_path, split, line, error, column, message):
    refused(tmp_path, "trees", split, [*GOOD_TREES, line], error, column, message)


@pytest.mark.parametrize("split", ["valid", "test"])
def test_a_class_that_train_does_not_have(tmp_path, split):
    refused(tmp_path, "tsv", split, [*GOOD_ROWS, UNKNOWN_ROW[0]], *UNKNOWN_ROW[1:])


@pytest.mark.parametrize("split", ["valid", "test"])
@pytest.mark.parametrize(("line", "error", "column", "message"), UNKNOWN_TREES)
def test_a_label_that_is_no_class(tmp_path, split, line, error, column, message):
    refused(tmp_path, "trees", split, [*GOOD_TREES, line], error, column, message)


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
