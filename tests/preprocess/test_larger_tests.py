"""Test sets of larger trees than those of training: split by size, or made by adding adjectives."""

from __future__ import annotations

import pytest

from preprocess import toy_corpus
from preprocess.active_logical import MOST_ADJECTIVES, load
from preprocess.corpora import CorpusError
from preprocess.larger_tests import is_larger, main, nodes_and_depth, split_by_size
from preprocess.programs.__main__ import main as generate
from preprocess.semantic_parsing import main as prepare
from tree_fairseq.trees.notations import notation_named

READER = notation_named("bracket")
SMALL, LARGE, DEEP = "( f a )", "( f a b c )", "( f ( g ( h a ) ) )"


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def contents(folder):
    return {path.name: lines(path) for path in sorted(folder.iterdir())}


@pytest.fixture
def text(tmp_path):
    pairs = {"train": [(SMALL, SMALL), (LARGE, SMALL)], "valid": [(SMALL, "x"), ("x", DEEP)], "test": [("x", "y")] * 2}
    for split, rows in pairs.items():
        for side, column in zip(("for", "lam"), zip(*rows)):
            (tmp_path / f"{split}.{side}").write_text("".join(row + "\n" for row in column))
            raw = (f"{split} {side} {number}\n" for number in range(len(rows)))
            (tmp_path / f"{split}.raw.{side}").write_text("".join(raw))
    return tmp_path


def split(text, *flags):
    return main(["--text", str(text), "--source", "for", "--target", "lam", "--set", "test1", *flags])


def test_pairs_that_are_larger_on_either_side_are_tested(text):
    assert split(text, "--nodes", "3") == 0
    found = contents(text)
    assert [found[f"{name}.for"] for name in ("train", "valid", "test", "test1")] == [
        [SMALL],
        [SMALL],
        ["x", "x"],
        ["x", LARGE],
    ]
    assert found["test1.lam"] == [DEEP, SMALL]
    # What is typed goes with its trees.
    assert found["test1.raw.for"] == ["valid for 1", "train for 1"] and found["train.raw.lam"] == ["train lam 0"]


def test_depth_and_nodes_are_two_bounds():
    assert nodes_and_depth(READER.read(DEEP)) == (4, 3)
    assert is_larger((SMALL, DEEP), None, 2) and not is_larger((SMALL, LARGE), None, 2)
    assert is_larger((SMALL, LARGE), 3, None) and not is_larger((SMALL, LARGE), 4, 2)


def test_the_test_set_of_larger_pairs_has_a_limit(text, caplog):
    caplog.set_level("INFO")
    assert split_by_size(text, ("for", "lam"), 3, None, "test1", limit=1)["test1"] == 1
    assert lines(text / "test1.lam") == [DEEP] and "1 of 2 larger pairs are tested" in caplog.text


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--nodes", "1"), "no pair of valid is so small: raise the bounds"),
        (("--nodes", "30"), "no pair is larger: lower the bounds"),
    ],
)
def test_bounds_that_leave_a_split_empty(text, capsys, flags, message):
    before = contents(text)
    assert split(text, *flags) == 1
    assert message in capsys.readouterr().err and contents(text) == before


def test_files_that_do_not_belong_together(text, capsys):
    with pytest.raises(SystemExit):
        split(text)
    (text / "valid.raw.for").write_text("one\n")
    assert split(text, "--nodes", "3") == 1
    assert "the files of valid have different numbers of lines" in capsys.readouterr().err
    (text / "valid.for").unlink()
    with pytest.raises(CorpusError, match="valid.for and valid.lam are needed"):
        split_by_size(text, ("for", "lam"), 3, None, "test1")


def test_longer_programs_of_the_same_grammar(tmp_path):
    shared = ["--train", "0", "--valid", "0", "--output", str(tmp_path)]
    assert generate(["for2lam", "--setting", "SYN-S", "--train", "20", "--test", "5", "--output", str(tmp_path)]) == 0
    before = contents(tmp_path)
    assert generate(["for2lam", "--setting", "SYN-L", "--test", "5", "--test-as", "test1", *shared]) == 0
    after = contents(tmp_path)
    assert {name: after[name] for name in before} == before
    assert {*after} - {*before} == {f"test1.{suffix}" for suffix in ("for", "lam", "raw.for", "raw.lam")}
    trees = {name: [READER.read(line) for line in after[name]] for name in ("train.for", "test1.for")}
    sizes = {name: [nodes_and_depth(tree)[0] for tree in found] for name, found in trees.items()}
    assert max(sizes["train.for"]) < min(sizes["test1.for"])


@pytest.fixture
def active(tmp_path):
    toy_corpus.main(["active_logical", "--output", str(tmp_path / "raw"), "--train", "30", "--test", "12"])
    return tmp_path / "raw"


def test_deeper_pairs_have_the_same_adjectives_on_both_sides(active, tmp_path):
    splits = load(active, deeper=12)
    assert splits["test2"] == load(active, deeper=12)["test2"]
    known = {word for pair in splits["train"] for word in pair.source.split()}
    for number, (old, new) in enumerate(zip(splits["test"], splits["test2"])):
        more = number % MOST_ADJECTIVES + 1
        assert new.groups == (f"{more}_more_adjectives",)
        before, after = ([READER.read(side) for side in example.pair] for example in (old, new))
        phrases = [sorted(READER.write(node) for node in tree.subtrees("NP")) for tree in after]
        assert phrases[0] == phrases[1] and phrases[0]
        for tree, deeper in zip(before, after):
            assert deeper.height() == tree.height() + more
            assert deeper.leaves()[0] == tree.leaves()[0]
            nouns = [[node.leaves() for node in each.subtrees("N")] for each in (tree, deeper)]
            assert nouns[0] == nouns[1]
        assert {*new.source.split()} - {*old.source.split()} <= known | {"(", ")"}
    with pytest.raises(CorpusError, match="13 deeper pairs cannot be made of 12"):
        load(active, deeper=13)
    assert prepare(["active_logical", "--data", str(active), "--output", str(tmp_path / "o"), "--deeper", "4"]) == 0
    assert len(lines(tmp_path / "o" / "test2.groups")) == 4
