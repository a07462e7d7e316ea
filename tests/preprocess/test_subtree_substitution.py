"""Subtree substitution: new pairs are sound, are made of training pairs alone, and are the same every time."""

from __future__ import annotations

import random
import re

import pytest

from preprocess.cogs import load
from preprocess.cogs_forms import with_variables, without_variables
from preprocess.corpora import CorpusError
from preprocess.logical_forms import Example
from preprocess.phrase_alignment import Parsed
from preprocess.subtree_substitution import Substitution, main, read_parses, substitute
from tests.preprocess import files
from tests.preprocess.files import DATA, write
from tests.preprocess.test_phrase_alignment import MORE, PAIRS
from tree_fairseq.trees.bracket import read_tree, write_forest
from tree_fairseq.trees.notations import notation_named

MODEL = DATA.parent / "models" / "stanza-en-gum"
NOTATION = notation_named("variable-free")
PARSES = [read_tree(parse) for parse, _ in (*PAIRS, *MORE)]
EXAMPLES = [Example(" ".join(parse.leaves()), form) for parse, (_, form) in zip(PARSES, (*PAIRS, *MORE))]


def made(count, **options):
    return substitute(EXAMPLES, PARSES, count, NOTATION, **options)


def is_sound(example):
    """Whether the form is that of the sentence, as the converter to COGS's own forms finds."""
    return without_variables(with_variables(example.target, example.source)) == example.target


def test_new_pairs_are_sound_and_differ():
    found = made(300, longest=20)
    assert len({example.source for example in found}) == 300
    assert not {example.source for example in found} & {example.source for example in EXAMPLES}
    assert [example for example in found if not is_sound(example)] == []
    assert max(len(example.source.split()) for example in found) in (19, 20)
    longest = max(len(parse.leaves()) for parse in PARSES)
    assert all(len(example.source.split()) <= longest for example in made(50))


def test_phrases_reach_places_that_training_lacks():
    forms = {example.source: example.target for example in made(600, longest=16)}
    # Training has neither a subject with a modifier, nor modifiers within modifiers, nor clauses three deep.
    assert any(form.split(" , ")[0].count("nmod") for form in forms.values())
    assert any("nmod . in = " in form.split("nmod . in = ", 1)[-1] for form in forms.values())
    assert any(form.count("ccomp") > 2 for form in forms.values())
    assert any(source.startswith("Paula ") for source in forms) and any(" Paula " in source for source in forms)
    assert any("= shark" in form for form in forms.values()) and any("* shark" in form for form in forms.values())
    # No other verb is an utterance, so it is not known which one has the place of this one.
    assert all("LAMBDA" not in form and "crawl" not in form for form in forms.values())


def test_phrases_nest_as_deep_as_there_are_words():
    forms = [example.target for example in made(600, longest=40)]
    for role in ("nmod", "ccomp"):
        depths = [form.count(role) for form in forms]
        assert all(depths.count(depth) > 1 for depth in range(2, 9)), role


def test_a_lone_word_takes_the_place_of_its_kind():
    alone = ("(VP (VB walk))", "LAMBDA a . LAMBDA e . walk . agent ( e , a )")
    to = [
        (
            f"(S {subject} (VP (VBD {verb}) (S (VP (TO to) (VP (VB {other}))))) (. .))",
            f"{symbol} ( agent = {noun} , xcomp = {other} ( agent = {noun} ) )",
        )
        for subject, noun in (("(NP (NNP Emma))", "Emma"), ("(NP (DT A) (NN dog))", "dog"))
        for verb, symbol in (("wanted", "want"), ("hoped", "hope"))
        for other in ("walk", "sleep")
    ]
    more = [alone, *to * 5]
    parses = [read_tree(parse) for parse, _ in more]
    pairs = [Example(" ".join(parse.leaves()), form) for parse, (_, form) in zip(parses, more)]
    found = substitute([*EXAMPLES, *pairs], [*PARSES, *parses], 600, NOTATION)
    assert Example("Emma wanted to crawl .", "want ( agent = Emma , xcomp = crawl ( agent = Emma ) )") in found
    assert all("crawl." not in example.target and "crawled" not in example.source for example in found)


def test_labels_are_those_that_are_exchanged():
    assert {example.target.count("ccomp") for example in made(30, labels=("SBAR",), longest=30)} >= {1, 2, 3, 4}
    with pytest.raises(CorpusError, match="give only 0 new ones by exchanging words and PRT, not 1: ask for fewer"):
        substitute(EXAMPLES[:1], PARSES[:1], 1, NOTATION, labels=("PRT",))


def test_a_word_takes_the_place_of_those_that_have_its_frames():
    # "kissed" has one frame, which "ate" has, too; "ate" has another one, "slept" only others.
    parse = read_tree("(S (NP (DT A) (NN dog)) (VP (VBD kissed) (NP (DT the) (NN cat))) (. .))")
    pair = Example("A dog kissed the cat .", "kiss ( agent = dog , theme = * cat )")
    omitted = read_tree("(S (NP (NNP Emma)) (VP (VBD ate)) (. .))")
    more = [*EXAMPLES, pair, Example("Emma ate .", "eat ( agent = Emma )")]
    found = substitute(more, [*PARSES, parse, omitted], 900, NOTATION, longest=16)
    assert any(example.target.startswith("kiss ( agent = ") and "theme" not in example.target for example in found)
    assert all(is_sound(example) for example in found)
    words = Substitution(
        [Parsed(tree, NOTATION.read(one.target)) for tree, one in zip([*PARSES, parse, omitted], more)],
        ("NP",), 16, random.Random(1),
    )  # fmt: skip
    assert "ate" in words.places["kissed"] and "slept" not in words.places["kissed"]
    assert "kissed" not in words.places.get("ate", []) and "slept" not in words.places.get("ate", [])


def test_a_clause_with_a_full_stop_is_put_at_the_end_alone():
    # A parser may attach the full stop to the clause.
    parse = read_tree(
        "(S (NP (NNP Emma)) (VP (VBD said) (SBAR (IN that) (S (NP (DT the) (NN cat)) (VP (VBD slept))) (. .))))"
    )
    pair = Example("Emma said that the cat slept .", "say ( agent = Emma , ccomp = sleep ( agent = * cat ) )")
    found = substitute([*EXAMPLES, pair], [*PARSES, parse], 300, NOTATION, longest=20)
    assert [example.source.split().index(".") - len(example.source.split()) for example in found] == [-1] * 300


def test_a_sentence_that_is_parsed_as_a_noun_phrase_is_not_put_inside():
    parse = read_tree("(ROOT (NP (DT A) (NN dog) (VBD liked) (NP (DT a) (NN cat))))")
    pair = Example("A dog liked a cat", "like ( agent = dog , theme = cat )")
    found = substitute([*EXAMPLES, pair], [*PARSES, parse], 600, NOTATION, longest=16)
    assert not [example for example in found if re.search(r"(agent|theme|nmod \. in) = like ", example.target)]


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "train.nl", *(example.source for example in EXAMPLES))
    write(tmp_path / "train.lf", *(example.target for example in EXAMPLES))
    write(tmp_path / "parses", *(write_forest((parse,)) for parse in PARSES))
    return tmp_path


def run(folder, count, *options):
    command = ["--text", folder, "--notation", "variable-free", "--parses", folder / "parses", "--count", count]
    return main([str(word) for word in (*command, *options)])


def test_the_command_adds_pairs_behind_the_others(folder, capsys, caplog):
    caplog.set_level("INFO")
    before = [files.lines(folder / f"train.{side}") for side in ("nl", "lf")]
    assert run(folder, 25, "--longest", 14, "--seed", 2) == 0
    after = [files.lines(folder / f"train.{side}") for side in ("nl", "lf")]
    assert [lines[: len(old)] for lines, old in zip(after, before)] == before
    assert list(zip(*(lines[len(old) :] for lines, old in zip(after, before)))) == [
        example.pair for example in made(25, longest=14, seed=2)
    ]
    assert "constituents that are aligned with a subtree: " in caplog.text and "train" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], "parses for"),
        (lambda lines: [lines[1], *lines[1:]], ":1: this is not the parse of 'The cat ate a cake .'"),
        (lambda lines: [*lines[:2], "", *lines[3:]], ":3: this is not the parse of "),
        (lambda lines: [*lines[:1], "(S (NN cat)", *lines[2:]], "parses:2"),
    ],
)
def test_parses_of_other_sentences_are_refused(folder, capsys, change, message):
    write(folder / "parses", *change(files.lines(folder / "parses")))
    before = (folder / "train.nl").read_text(encoding="utf-8")
    assert run(folder, 5) == 1
    assert message in capsys.readouterr().err
    assert (folder / "train.nl").read_text(encoding="utf-8") == before


def test_pairs_of_cogs_are_sound(tmp_path):
    if not (DATA / "cogs").is_dir() or not MODEL.is_dir():
        pytest.skip("COGS or a Stanza model is not in ../shared")
    from tree_fairseq.commands import parse

    train = random.Random(1).sample(load(DATA / "cogs")["train"], 100)
    write(tmp_path / "train.nl", *(example.source for example in train))
    arguments = [str(tmp_path / name) for name in ("train.nl", "parses")]
    model = ["--parser-dir", str(MODEL), "--tree-device", "cpu"]
    assert not parse.main([*arguments, *model, "--parse-cache", str(tmp_path / "cache")])
    parses = read_parses(tmp_path / "parses", [example.source for example in train])
    found = substitute(train, parses, 100, NOTATION, longest=30)
    assert sum(is_sound(example) for example in found if "." in example.source) >= 99
