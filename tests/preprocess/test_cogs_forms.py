"""COGS's forms without variables and back: the published forms, and outputs that are not forms of their sentences."""

from __future__ import annotations

import os

import pytest

from preprocess.cogs_forms import NOT_A_FORM, has_variables, main, restore, with_variables, without_variables
from preprocess.corpora import CorpusError
from tests.preprocess.files import DATA, lines, write

ALL = "COGS_ALL" in os.environ
"""Whether all 51,155 forms are converted, in a quarter of a minute, and not a part of them."""
EXAMPLES = (
    (
        "A melon was given to a girl by the guard .",
        "* guard ( x _ 9 ) ; melon ( x _ 1 ) AND give . theme ( x _ 3 , x _ 1 ) AND give . recipient ( x _ 3 , x _ 6 )"
        " AND give . agent ( x _ 3 , x _ 9 ) AND girl ( x _ 6 )",
        "give ( theme = melon , recipient = girl , agent = * guard )",
    ),
    (
        "The cat in a TV wanted to see a cat on the cat .",
        "* cat ( x _ 1 ) ; * cat ( x _ 12 ) ; cat . nmod . in ( x _ 1 , x _ 4 ) AND tv ( x _ 4 )"
        " AND want . agent ( x _ 5 , x _ 1 ) AND want . xcomp ( x _ 5 , x _ 7 ) AND see . agent ( x _ 7 , x _ 1 )"
        " AND see . theme ( x _ 7 , x _ 9 ) AND cat ( x _ 9 ) AND cat . nmod . on ( x _ 9 , x _ 12 )",
        "want ( agent = * cat ( nmod . in = tv ) , xcomp = see ( agent = * cat ( nmod . in = tv ) , "
        "theme = cat ( nmod . on = * cat ) ) )",
    ),
    (
        "Emma liked that the cook cooked .",
        "* cook ( x _ 4 ) ; like . agent ( x _ 1 , Emma ) AND like . ccomp ( x _ 1 , x _ 5 )"
        " AND cook . agent ( x _ 5 , x _ 4 )",
        "like ( agent = Emma , ccomp = cook ( agent = * cook ) )",
    ),
    ("ball", "LAMBDA a . ball ( a )", "LAMBDA a . ball ( a )"),
    ("Paula", "Paula", "Paula"),
)


@pytest.mark.parametrize(("sentence", "original", "free"), EXAMPLES)
def test_both_ways(sentence, original, free):
    assert without_variables(original) == free
    assert with_variables(free, sentence) == original


@pytest.mark.parametrize("name", ["train", "dev", "test", "gen"])
def test_every_published_form_converts_there_and_back(name):
    if not (DATA / "cogs").is_dir():
        pytest.skip("COGS is not in ../shared/data/cogs")
    step = 1 if name in ("dev", "test") or ALL else 10
    files = [lines(DATA / "cogs" / folder / f"{name}.tsv")[::step] for folder in (".", "variable_free")]
    rows = [(own.split("\t"), other.split("\t")) for own, other in zip(*files)]
    assert sum(has_variables(original[1]) for original, _ in rows) > 2000
    for (sentence, original, _), (_, free, _) in rows:
        assert without_variables(original) == free
        assert with_variables(free, sentence) == original


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ("see ( agent = * dog )", "The cat saw ."),
        ("see ( agent = * cat , theme = rose )", "The cat saw ."),
        ("see ( agent = * cat , ccomp = run ( agent = Emma ) )", "The cat saw Emma ."),
        ("see ( agent = * cat )", "The cat saw that Emma ran ."),
        ("see ( cat )", "The cat saw ."),
        ("want ( agent = Emma , xcomp = run ( agent = Ava ) )", "Emma wanted to run ."),
        ("want ( xcomp = run ( agent = Ava ) )", "Ava wanted to run ."),
    ],
)
def test_a_form_of_another_sentence_is_refused(form, sentence):
    with pytest.raises(CorpusError):
        with_variables(form, sentence)


@pytest.mark.parametrize("form", ["see ( x _ 1 ) AND cat", "a . b ( x _ 1 , x _ 2 ) AND b . a ( x _ 2 , x _ 1 )"])
def test_an_original_form_that_is_not_one(form):
    with pytest.raises(CorpusError):
        without_variables(form)


def test_circles_below_a_root():
    with pytest.raises(CorpusError, match="circles"):
        without_variables("a . to ( x _ 0 , x _ 1 ) AND b . to ( x _ 1 , x _ 2 ) AND c . to ( x _ 2 , x _ 1 )")


def test_outputs_of_fairseq_generate(tmp_path, capsys):
    sentences = ["The cat saw .", "Ava ran ."]
    write(tmp_path / "test.nl", *sentences)
    output = [
        "S-1\tAva ran .", "H-1\t-0.1\trun ( agent = Ava )", "H-0\t-0.2\tsee ( agent = * cat",
        "D-0\t-0.2\tsee ( agent = cat )", "P-0\t-0.2", "Generate test with beam=1: BLEU4 = 0",
    ]  # fmt: skip
    write(tmp_path / "generate-test.txt", *output)
    flags = ["--run", tmp_path, "--set", "test", "--sentences", tmp_path / "test.nl", "--output", tmp_path / "o"]
    assert main(list(map(str, flags))) == 0
    restored = lines(tmp_path / "o" / "generate-test.txt")
    assert restored[1] == "H-1\t-0.1\trun . agent ( x _ 1 , Ava )"
    assert restored[2] == f"H-0\t-0.2\t{NOT_A_FORM}"
    assert restored[3] == "D-0\t-0.2\tcat ( x _ 1 ) AND see . agent ( x _ 2 , x _ 1 )"
    assert [restored[n] for n in (0, 4, 5)] == [output[n] for n in (0, 4, 5)]
    with pytest.raises(CorpusError, match="there is no sentence 2"):
        list(restore(["H-2\t0\tx"], sentences))
