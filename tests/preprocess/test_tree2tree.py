"""Published programs in JSON become lines of brackets."""

from __future__ import annotations

import json

import pytest

from preprocess.tree2tree import main, tree_of
from tests.preprocess.files import lines
from tree_fairseq.trees.notations import notation_named


def leaf(label):
    return {"root": label, "children": []}


def program(value):
    source = {"root": "Block\n", "children": [{"root": "Value NumberLiteral", "children": [leaf(f"{value}\n")]}]}
    target = {"root": "Literal", "children": [leaf(str(value))]}
    return {"source_prog": [], "source_ast": source, "target_ast": target}


def write_folder(folder, size=6):
    folder.mkdir()
    for split in ("train", "valid", "test"):
        (folder / f"preprocessed_progs_{split}.json").write_text(json.dumps([program(value) for value in range(size)]))
    return folder


def prepare(data, output, *flags):
    return main(["--data", str(data), "--source", "cs", "--target", "js", "--output", str(output), *flags])


def test_both_sides_are_written(tmp_path):
    data, out = write_folder(tmp_path / "data"), tmp_path / "out"
    assert prepare(data, out, "--subset", "4", "--limit", "5") == 0
    assert lines(out / "test.cs")[1] == "( Block ( Value_NumberLiteral 1 ) )"
    assert lines(out / "test.js")[1] == "( Literal 1 )"
    assert len(lines(out / "train.js")) == 4 and len(lines(out / "valid.cs")) == 5


def test_lines_are_the_trees(tmp_path):
    bracket = notation_named("bracket")
    value = {"root": "f", "children": [{"root": "g", "children": [leaf("("), leaf("x y")]}, leaf("f")]}
    tree = tree_of(value)
    assert bracket.read(bracket.write(tree)) == tree
    assert [tree.label, tree.children[0].children[1].label, tree.children[1].label] == ["f", "x_y", "f"]


def test_deep_trees_need_no_recursion():
    value = leaf("x")
    for _ in range(20000):
        value = {"root": "f", "children": [value]}
    assert tree_of(value).children[0].label == "f"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", "not JSON"),
        ("{}", "not a list of programs"),
        ('[{"source_ast": {"root": "a", "children": []}}]', "program 1: 'target_ast'"),
        ('[{"source_ast": {"root": " ", "children": []}, "target_ast": 1}]', "program 1: a node has an empty label"),
        ('[{"source_ast": {"root": "a", "children": ["b"]}, "target_ast": 1}]', "program 1: a node is "),
        ("[]", "train is empty"),
    ],
)
def test_mistakes_are_named(tmp_path, capsys, content, message):
    data = write_folder(tmp_path / "data")
    (data / "preprocessed_progs_train.json").write_text(content)
    assert prepare(data, tmp_path / "out") == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
