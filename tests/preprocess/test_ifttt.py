"""The IFTTT corpus: programs, titles, splits by address, annotated subsets."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from preprocess import toy_corpus
from preprocess.corpora import CorpusError
from preprocess.ifttt import groups_of, load, read_program, words
from preprocess.semantic_parsing import main
from tests.strategies import deep_tree, symbol_trees
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

CODE = (
    "(ROOT (IF) (TRIGGER (Twitter) (FUNC (New_tweet) (PARAMS))) (THEN) "
    '(ACTION (Email) (FUNC (Send_me) (PARAMS (Subject ("A \\"b\\" {{c}} (d)")) (Body ({{Text}})) (Empty (""))))))'
)
WRITTEN = (
    "( ROOT IF ( TRIGGER Twitter ( FUNC New_tweet PARAMS ) ) THEN ( ACTION Email ( FUNC Send_me "
    "( PARAMS ( Subject {} ) ( Body {{{{Text}}}} ) ( Empty {} ) ) ) ) )"
)
NAMES = ("a", "b_c", "{{Text}}", 'say "x"', "two words", "", "back\\slash", "(", "é")


def published(tree: Tree) -> str:
    def write(node, children):
        name = node.label
        if not name or any(character in name for character in ' ()"\\'):
            name = '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return "(" + " ".join([name, *children]) + ")"

    return tree.fold(write)


@given(symbol_trees(labels=NAMES))
def test_programs_are_read_as_they_were_written(tree):
    assert read_program(published(tree)) == tree


def test_deep_programs():
    deep = deep_tree(20000, branching=False)
    assert read_program(published(deep)) == deep


def test_a_program_in_brackets():
    write = notation_named("bracket").write
    assert write(read_program(CODE)) == WRITTEN.format('A\\u0020"b"\\u0020{{c}}\\u0020\\u0028d\\u0029', "\\e")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the program is empty"),
        ("(a (b)", "1 brackets are never closed"),
        ("(a) (b)", "'(b)' in column 5"),
        ("(a))", "')' in column 4"),
        ("a", "'a' in column 1"),
        ("(a b)", "'b)' in column 4"),
        ('(a ("b)', "in column 4"),
        (")", "in column 1"),
    ],
)
def test_what_is_no_program(text, message):
    with pytest.raises(CorpusError, match=re.escape(message)):
        read_program(text)


def test_titles():
    assert words("New photo?  Save it &amp; (maybe) don't") == "new photo ? save it & ( maybe ) don ' t"


RIGHT = ("Twitter", "New_tweet", "Email", "Send_me")


@pytest.mark.parametrize(
    ("answers", "groups"),
    [
        ([], ()),
        ([RIGHT] * 5, ("english", "intelligible", "gold")),
        ([RIGHT] * 2 + [("A", "b", "C", "d")] * 3, ("english", "intelligible")),
        ([RIGHT] * 3 + [("nonenglish",) * 4] * 2, ("english", "gold")),
        ([RIGHT] * 4 + [("unintelligible",) * 4], ("english", "gold")),
        ([RIGHT] * 1 + [("nonenglish",) * 4] * 4, ()),
    ],
)
def test_subsets_by_annotation(answers, groups):
    assert groups_of(answers, read_program(CODE)) == groups


@pytest.fixture
def raw(tmp_path):
    toy_corpus.main(["ifttt", "--output", str(tmp_path / "raw"), "--train", "20", "--test", "9"])
    return tmp_path / "raw"


def test_splits_by_address(raw, caplog):
    splits = load(raw)
    assert [len(examples) for examples in splits.values()] == [20, 9, 9]
    assert "test: 1 of 10 recipes are left out: 1 were not downloaded and 0 have no words" in caplog.text
    assert not any(example.groups for split in ("train", "valid") for example in splits[split])
    assert {name for example in splits["test"] for name in example.groups} == {"english", "intelligible", "gold"}
    assert all("( TRIGGER" in example.target and "PARAMS" in example.target for example in splits["train"])
    both = load(raw, text="both")["test"][0].source
    assert both == f"{splits['test'][0].source} {splits['test'][0].source}"


def test_the_folder_of_the_archive_and_no_annotation(raw, tmp_path):
    (raw / "turk_public.tsv").unlink()
    (tmp_path / "archive").mkdir()
    raw.rename(tmp_path / "archive" / "data")
    assert main(["ifttt", "--data", str(tmp_path / "archive"), "--output", str(tmp_path / "out")]) == 0
    assert not (tmp_path / "out" / "test.groups").exists()


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        ("recipe_summaries.tsv", "a\tb", "recipe_summaries.tsv:40: 2 columns where 10 are expected"),
        (
            "recipe_summaries.tsv",
            "f\thttps://ifttt.com/recipes/0-gone" + "\tx" * 8,
            "recipe_summaries.tsv:40: malformed program: 'x' in column 1",
        ),
        ("turk_public.tsv", "a\tb", "2 columns where six are expected"),
    ],
)
def test_lines_that_are_wrong(raw, tmp_path, capsys, name, row, message):
    with open(raw / name, "a", encoding="utf-8") as file:
        file.write(row + "\n")
    assert main(["ifttt", "--data", str(raw), "--output", str(tmp_path / "out")]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_recipes_without_words_are_left_out(raw, caplog):
    path = raw / "recipe_summaries.tsv"
    rows = path.read_text().split("\n")
    columns = rows[1].split("\t")
    rows[1] = "\t".join([*columns[:3], " ", *columns[4:]])
    path.write_text("\n".join(rows))
    assert len(load(raw)["train"]) == 19
    assert "train: 1 of 20 recipes are left out: 0 were not downloaded and 1 have no words" in caplog.text
