"""COGS and active sentences with logical forms: categories, directions, malformed lines."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from preprocess import toy_corpus
from preprocess.active_logical import directed, load
from preprocess.cogs import stratified
from preprocess.corpora import CorpusError
from preprocess.logical_forms import Example
from preprocess.semantic_parsing import main
from tests.preprocess.files import lines, write


@pytest.fixture
def cogs(tmp_path):
    toy_corpus.main(["cogs", "--output", str(tmp_path / "cogs"), "--train", "8", "--test", "3"])
    return tmp_path / "cogs"


@pytest.fixture
def active(tmp_path):
    toy_corpus.main(["active_logical", "--output", str(tmp_path / "active"), "--train", "12", "--test", "4"])
    return tmp_path / "active"


def prepare(name, data, *flags):
    return main([name, "--data", str(data), "--output", str(data / "out"), *flags])


def test_categories_are_groups_of_test_sets(cogs):
    assert prepare("cogs", cogs) == 0
    assert lines(cogs / "out" / "test1.groups") == ["cp_recursion"] * 3
    assert lines(cogs / "out" / "test.groups") == ["in_distribution"] * 3
    assert not (cogs / "out" / "train.groups").exists()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("A cat .\t* cat ; see ( x _ 1 )\tprimitive", "dev.tsv:1: not a part of a logical form of COGS: '* cat'"),
        ("A .\ta ( x _ 1 ) AND b ( x _ 2 )\tx", "dev.tsv:1: not the form of one sentence, which has one root"),
        ("A cat .\tsee ( agent = cat\tprimitive", "dev.tsv:1:"),
        ("A cat .\tcat", "dev.tsv:1: 1 tabs where 2 are expected"),
        ("A cat .\tcat\t", "dev.tsv:1: the category is empty"),
    ],
)
def test_lines_of_cogs_that_are_wrong(cogs, capsys, row, message):
    (cogs / "dev.tsv").write_text(row + "\n")
    assert prepare("cogs", cogs) == 1
    assert message in capsys.readouterr().err


NAMES = ("train", "dev", "test", "gen")
ORIGINAL = "* cat ( x _ 1 ) ; see . agent ( x _ 2 , x _ 1 )"


def test_original_forms_are_kept_as_they_are(cogs):
    rows = (f"The cat saw .\t{ORIGINAL}\tin distribution", "Cat\tLAMBDA a . cat ( a )\tprimitive")
    for name in NAMES:
        write(cogs / f"{name}.tsv", *rows)
    assert prepare("cogs", cogs, "--targets", "original") == 0
    assert lines(cogs / "out" / "train.lf") == [ORIGINAL, "LAMBDA a . cat ( a )"]
    assert lines(cogs / "out" / "test.groups") == ["in_distribution", "primitive"]


def test_the_other_forms_are_refused_or_found_beside(cogs, capsys):
    assert prepare("cogs", cogs, "--targets", "original") == 1
    assert "train.tsv:1: a variable-free logical form" in capsys.readouterr().err
    (cogs / "variable_free").mkdir()
    for name in NAMES:
        (cogs / f"{name}.tsv").rename(cogs / "variable_free" / f"{name}.tsv")
        write(cogs / f"{name}.tsv", f"The cat saw .\t{ORIGINAL}\tin_distribution")
    assert prepare("cogs", cogs) == 0
    assert prepare("cogs", cogs, "--targets", "original") == 0


def test_variable_free_forms_are_made_where_there_are_none(cogs):
    row = "The cat saw Ava .\t* cat ( x _ 1 ) ; see . agent ( x _ 2 , x _ 1 ) AND see . theme ( x _ 2 , Ava )\tx"
    for name in NAMES:
        write(cogs / f"{name}.tsv", row)
    assert prepare("cogs", cogs, "--original-forms", str(cogs / "original")) == 0
    assert lines(cogs / "out" / "test.lf") == ["see ( agent = * cat , theme = Ava )"]
    assert lines(cogs / "original" / "test.lf") == [row.split("\t")[1]]
    assert lines(cogs / "original" / "test1.groups") == ["x"]
    write(cogs / "test.tsv", "Ava saw the rose .\tsee ( agent = * cat , theme = Ava )\tx")
    assert prepare("cogs", cogs, "--original-forms", str(cogs / "original")) == 1


def test_samples_are_even_drawn_from_the_set_and_the_same_again():
    examples = [Example(f"s{index}", "f", (f"c{index % 3}",)) for index in range(60)]
    drawn = stratified(examples, 14)
    assert drawn == stratified(examples, 14) and drawn != stratified(examples, 14, seed=2)
    assert drawn == [example for example in examples if example in drawn]
    assert Counter(example.groups[0] for example in drawn) == {"c0": 5, "c1": 5, "c2": 4}
    for size in (0, 61):
        with pytest.raises(CorpusError, match=f"{size} examples cannot be drawn evenly from 60 of 3 categories"):
            stratified(examples, size)


def test_the_sample_is_a_test_set_of_its_own(cogs):
    assert prepare("cogs", cogs, "--generalization-sample", "2") == 0
    assert len(lines(cogs / "out" / "test1.nl")) == 3 and lines(cogs / "out" / "test2.groups") == ["cp_recursion"] * 2
    assert set(lines(cogs / "out" / "test2.nl")) <= set(lines(cogs / "out" / "test1.nl"))


def test_directions(active):
    mixed = [example.pair for example in load(active)["train"]]
    turned = [example.pair for example in load(active, "active-logical")["train"]]
    back = [example.pair for example in load(active, "logical-active")["train"]]
    assert {source.split()[1] for source, _ in mixed} == {"S", "LF"}
    assert all(source.startswith("( S ") and target.startswith("( LF ") for source, target in turned)
    assert back == [(target, source) for source, target in turned]
    assert all(pair in (one, other) for pair, one, other in zip(mixed, turned, back))
    read = [json.loads(line) for line in lines(active / "train.json")]
    assert mixed == [(example["source"], example["target"]) for example in read]


def test_what_is_no_sentence_and_form():
    with pytest.raises(CorpusError, match="not S and S"):
        directed(("( S x )", "( S x )"), "both")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "test.json:1: not JSON"),
        ("[]", 'test.json:1: a line is {"source": tree, "target": tree}'),
        ('{"source": "( S x )", "target": " "}', "test.json:1: a line is"),
        ('{"source": "( S x )", "target": 1}', "test.json:1: a line is"),
        ('{"source": "( S x )", "target": "( LF x"}', "test.json:1: column 1: a bracket is never closed"),
        ('{"source": "( S x )", "target": "( X x )"}', "test.json:1: a tree with root S and one with root LF"),
    ],
)
def test_lines_of_active_logical_that_are_wrong(active, capsys, row, message):
    (active / "test.json").write_text(row + "\n")
    assert prepare("active_logical", active) == 1
    assert message in capsys.readouterr().err
