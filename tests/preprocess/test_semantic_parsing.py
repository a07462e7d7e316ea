"""Data sets of logical forms, from the made-up corpus in each layout to aligned splits."""

from __future__ import annotations

import pytest

from preprocess import toy_corpus, toy_logical_forms
from preprocess.semantic_parsing import ABOUT, main
from tests.preprocess.files import DATA, lines, write
from tree_fairseq.trees.notations import notation_named

NAMES = sorted(ABOUT)
NOTATIONS = {"jobs": "prolog", "cogs": "variable-free"}


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    for name in NAMES:
        toy_corpus.main([name, "--output", str(folder / name), "--train", "60", "--test", "12"])
    return folder


def prepare(name, data, output, *flags):
    return main([name, "--data", str(data), "--output", str(output), *flags])


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_every_data_set_has_a_toy():
    others = {"cogs_original", "overnight"}  # other forms, and sets with a command of their own
    assert sorted({*toy_logical_forms.LAYOUTS} - others) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_layout_gives_aligned_trees(raw, tmp_path, name):
    flags = ["--valid", "10"] if name in ("geo", "atis", "jobs") else []
    assert prepare(name, raw / name, tmp_path / "one", *flags) == 0
    splits = ["train", "valid", "test", *(["test1"] if name in ("cogs", "active_logical") else [])]
    reader, arities = notation_named(NOTATIONS.get(name, "bracket")), set()
    for split in splits:
        sides = [lines(tmp_path / "one" / f"{split}.{side}") for side in ("nl", "lf")]
        assert len(sides[0]) == len(sides[1]) >= 10
        assert all(line and line == " ".join(line.split()) for side in sides for line in side)
        trees = [reader.read(line) for line in sides[1]]
        arities |= {len(node.children) for tree in trees for node in tree.preorder()}
        assert max(tree.height() for tree in trees) > 1
    assert len(arities) > 2
    assert len(lines(tmp_path / "one" / "train.nl")) == (50 if flags else 60)
    assert prepare(name, raw / name, tmp_path / "two", *flags) == 0
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.parametrize("name", ["geo", "atis", "cogs"])
def test_suffixes_subset_and_limit(raw, tmp_path, name):
    flags = ["--valid", "10"] if name != "cogs" else []
    more = "--source en --target tree --subset 7 --limit 5".split()
    assert prepare(name, raw / name, tmp_path, *flags, *more) == 0
    assert len(lines(tmp_path / "train.en")) == len(lines(tmp_path / "test.tree")) == 5
    assert prepare(name, raw / name, tmp_path, *flags, "--subset", "7") == 0
    assert len(lines(tmp_path / "train.nl")) == 7


def test_held_out_examples_can_stay_in_training(raw, tmp_path, caplog):
    caplog.set_level("INFO")
    assert prepare("geo", raw / "geo", tmp_path / "out", "--valid", "10") == 0
    assert prepare("geo", raw / "geo", tmp_path / "all", "--valid", "10", "--keep-valid") == 0
    assert lines(tmp_path / "all" / "valid.lf") == lines(tmp_path / "out" / "valid.lf")
    whole = [line.split("\t")[1] for line in lines(raw / "geo" / "train.txt")]
    assert lines(tmp_path / "all" / "train.lf") == whole
    assert sorted(lines(tmp_path / "out" / "train.lf") + lines(tmp_path / "out" / "valid.lf")) == sorted(whole)
    assert "10 of 60 training examples are held out for validation, and stay in training" in caplog.text
    assert prepare("geo", raw / "geo", tmp_path / "other", "--valid", "10", "--seed", "2") == 0
    assert lines(tmp_path / "other" / "valid.nl") != lines(tmp_path / "out" / "valid.nl")


def test_dev_validates_where_there_is_a_test_set_and_tests_where_there_is_none(tmp_path, caplog):
    caplog.set_level("INFO")
    write(tmp_path / "raw" / "train.txt", *(f"a {number}\t( f {number} )" for number in range(20)))
    write(tmp_path / "raw" / "dev.txt", "b\t( g x )", "a 3\t( f 3 )")
    assert prepare("atis", tmp_path / "raw", tmp_path / "out", "--valid", "5") == 0
    assert lines(tmp_path / "out" / "test.nl") == ["b", "a 3"]
    assert [len(lines(tmp_path / "out" / f"{split}.lf")) for split in ("train", "valid")] == [15, 5]
    assert "dev.txt is the test set" in caplog.text
    write(tmp_path / "raw" / "test.txt", "c\t( h x )")
    assert prepare("atis", tmp_path / "raw", tmp_path / "out", "--valid", "5") == 0
    assert [lines(tmp_path / "out" / f"{split}.nl") for split in ("valid", "test")] == [["b", "a 3"], ["c"]]
    assert len(lines(tmp_path / "out" / "train.nl")) == 20
    assert "valid: 2 examples, 1 of them occur in train" in caplog.text
    assert prepare("atis", tmp_path / "raw", tmp_path / "out", "--keep-valid") == 0
    assert lines(tmp_path / "out" / "train.nl")[20:] == ["b", "a 3"]


def test_a_prolog_conjunction(tmp_path):
    form = "job ( ANS ) , language ( ANS , languageid0 )"
    write(tmp_path / "raw" / "train.txt", f"what job use languageid0\t{form}", f"job for languageid0\t{form}")
    write(tmp_path / "raw" / "test.txt", f"languageid0\t{form}")
    assert prepare("jobs", tmp_path / "raw", tmp_path / "out", "--valid", "1") == 0
    assert lines(tmp_path / "out" / "test.lf") == [form]


def test_other_notations_of_the_same_questions(tmp_path):
    write(tmp_path / "raw" / "train.txt", "a\tanswer(city(all))", "b\tanswer(state(all))")
    write(tmp_path / "raw" / "test.txt", "a\tanswer(river(all))")
    assert prepare("geo", tmp_path / "raw", tmp_path / "out", "--valid", "1", "--notation", "funql") == 0


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("no tab", "train.txt:2: 0 tabs where 1 are expected: a line is utterance<TAB>logical form"),
        ("a\t( f x )\tb", "train.txt:2: 2 tabs"),
        ("\t( f x )", "train.txt:2: the utterance is empty"),
        ("a\t ", "train.txt:2: the logical form is empty"),
        ("a\t( f x", "train.txt:2:1: a bracket is never closed"),
        ("a\t( f x ) y", "train.txt:2:9:"),
        ("", "train.txt:2: 0 tabs"),
    ],
)
def test_bad_lines_are_named_and_nothing_is_written(tmp_path, capsys, row, message):
    write(tmp_path / "raw" / "train.txt", "a\t( f x )", row, "b\tx")
    write(tmp_path / "raw" / "test.txt", "a\t( f x )")
    assert prepare("geo", tmp_path / "raw", tmp_path / "out") == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_line_ends_and_odd_white_space(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "train.txt").write_bytes("a\u00a0b\u2028c\t( f  x )\r\nd\tx\r\n".encode())
    write(tmp_path / "raw" / "test.txt", "a\tx")
    assert prepare("geo", tmp_path / "raw", tmp_path / "out", "--valid", "1", "--keep-valid") == 0
    assert lines(tmp_path / "out" / "train.nl") == ["a b c", "d"]
    assert lines(tmp_path / "out" / "train.lf") == ["( f x )", "x"]


@pytest.mark.parametrize("name", NAMES)
def test_wrong_folder_is_named(tmp_path, name, capsys):
    (tmp_path / "raw").mkdir()
    assert prepare(name, tmp_path / "raw", tmp_path / "out") == 1
    assert f"{tmp_path / 'raw'}" in (printed := capsys.readouterr().err) and "is missing" in printed


@pytest.mark.parametrize("size", ["0", "60", "61"])
def test_held_out_sets_that_leave_nothing(raw, tmp_path, size, capsys):
    assert prepare("geo", raw / "geo", tmp_path, "--valid", size) == 1
    assert f"{size} examples cannot be held out of 60" in capsys.readouterr().err


def test_an_empty_split_is_refused(tmp_path, capsys):
    write(tmp_path / "raw" / "train.txt", "a\tx", "b\tx")
    write(tmp_path / "raw" / "test.txt")
    assert prepare("geo", tmp_path / "raw", tmp_path / "out", "--valid", "1") == 1
    assert "test is empty" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("name", "counts"), [("geo", (500, 100, 280)), ("atis", (4034, 400, 491))])
def test_published_files(tmp_path, name, counts):
    if not (DATA / name).is_dir():
        pytest.skip(f"{DATA / name} is not at hand")
    assert prepare(name, DATA / name, tmp_path) == 0
    for split, count in zip(("train", "valid", "test"), counts):
        assert len(lines(tmp_path / f"{split}.nl")) == len(lines(tmp_path / f"{split}.lf")) == count
    published = lines(DATA / name / ("test.txt" if name == "geo" else "dev.txt"))
    assert [" ".join(line.split("\t")[1].split()) for line in published] == lines(tmp_path / "test.lf")
