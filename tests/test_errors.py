"""Errors name the place of the problem, also across processes."""

from __future__ import annotations

import inspect
import pickle

import pytest

from tree_fairseq import errors


def test_the_place_precedes_the_message():
    error = errors.UnclosedTreeError("never closed", "train.en", 3, 7, "Close it.")
    assert str(error) == "train.en:3:7: never closed. Close it."


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ({}, "wrong"),
        ({"path": "a"}, "a: wrong"),
        ({"path": "a", "line": 2}, "a:2: wrong"),
        ({"column": 4}, "column 4: wrong"),
        ({"line": 2, "column": 4}, "line 2, column 4: wrong"),
        ({"hint": "Mend it."}, "wrong. Mend it."),
    ],
)
def test_missing_parts_of_the_place_are_left_out(place, shown):
    assert str(errors.InputError("wrong", **place)) == shown


def test_at_adds_the_place_and_keeps_the_rest():
    error = errors.EmptyTreeError("empty", column=5, hint="Remove it.").at("dev.mrg", 9)
    assert type(error) is errors.EmptyTreeError
    assert (error.path, error.line, error.column, error.hint) == ("dev.mrg", 9, 5, "Remove it.")
    assert str(error.at(line=10)) == "dev.mrg:10:5: empty. Remove it."


def test_a_path_may_be_a_path_object(tmp_path):
    assert errors.InputError("wrong", tmp_path / "a").path == str(tmp_path / "a")


def test_input_errors_survive_pickling():
    classes = [
        value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, errors.InputError)
    ]
    assert len(classes) > 10
    for error_class in classes:
        error = error_class("wrong", "a", 1, 2, "Mend it.")
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is error_class
        assert str(copy) == str(error)


def test_all_errors_have_the_same_base_class():
    classes = [
        value for value in vars(errors).values() if inspect.isclass(value) and value.__module__ == errors.__name__
    ]
    assert all(issubclass(error_class, errors.TreeFairseqError) for error_class in classes)
    assert all(inspect.getdoc(error_class) for error_class in classes)


def test_errors_are_subclasses_of_the_builtin_errors_that_callers_catch():
    assert issubclass(errors.TreeFormatError, ValueError)
    assert issubclass(errors.DestinationExistsError, FileExistsError)
    assert issubclass(errors.DiskFullError, OSError)
