"""Every data set's layout, from the made-up corpus in that layout to aligned splits."""

from __future__ import annotations

import ast

import pytest

from preprocess import toy_corpus
from preprocess.corpora import PrepareOptions
from preprocess.described_programs import card_call, name_strings
from preprocess.prepare import LOADERS, main
from preprocess.translation import load_iwslt14, segments, tagged_lines
from tests.preprocess.files import lines, write

DIRECTIONS = {
    "multi30k": ("en", "de"), "iwslt14": ("de", "en"), "iwslt14_en_fr": ("en", "fr"), "iwslt13": ("fr", "en"),
    "wmt14": ("en", "de"), "cognition": ("en", "zh"), "django": ("en", "py"), "gigaword": ("article", "title"),
    "hearthstone": ("in", "out"),
}  # fmt: skip
READY = ("cognition", "django", "gigaword", "hearthstone")  # published as tokens, with nothing untokenised beside them


def prepare(tmp_path, name, *flags, languages=None):
    data, output = tmp_path / "data", tmp_path / "words"
    if not data.exists():
        tested = "20" if name == "iwslt14_en_fr" else "10"
        toy_corpus.main([name, "--output", str(data), "--train", "60", "--test", tested])
    source, target = languages or DIRECTIONS[name]
    arguments = [name, "--data", str(data), "--source", source, "--target", target, "--output", str(output), *flags]
    return main(arguments), output


@pytest.mark.parametrize("name", sorted(set(LOADERS) - set(READY)))
def test_layout_gives_aligned_tokenised_splits(tmp_path, name):
    status, output = prepare(tmp_path, name)
    assert status == 0
    source, target = DIRECTIONS[name]
    splits = ["train", "valid", "test", *(["test1"] if name == "multi30k" else [])]
    for split in splits:
        sides = [lines(output / f"{split}.{language}") for language in (source, target)]
        assert len(sides[0]) == len(sides[1]) > 0
        assert all(line == " ".join(line.split()) and line for side in sides for line in side)
        assert all(line.endswith((" .", " !", " ?")) for line in sides[0])
    assert len(lines(output / "raw" / f"test.{target}")) == len(lines(output / f"test.{target}"))
    assert any("&amp;" in line for line in lines(output / f"train.{source}"))
    assert any(" & " in line and "&amp;" not in line for line in lines(output / "raw" / f"test.{target}"))


def test_words_are_parallel_to_what_was_written(tmp_path):
    _, output = prepare(tmp_path, "wmt14")
    written = toy_corpus.sentences(60 // 3 + 1, seed=1)
    plain = {english: german for english, german, _ in written if english.replace(".", "").replace(" ", "").isalpha()}
    pairs = dict(zip(lines(output / "train.en"), lines(output / "train.de")))
    checked = 0
    for english, german in plain.items():
        tokens = english.replace(".", " .")
        if tokens in pairs:
            assert pairs[tokens] == german.replace(".", " .")
            checked += 1
    assert checked


def test_iwslt14_validation_is_every_23rd_pair(tmp_path):
    _, output = prepare(tmp_path, "iwslt14")
    # two meta lines of the toy file become a title and a description, which are sentences
    assert len(lines(output / "valid.de")) == 60 // 23
    assert len(lines(output / "train.de")) == 60 - 60 // 23
    assert len(lines(output / "test.de")) == 5 * (10 // 5)


def test_both_directions_hold_the_same_lines(tmp_path):
    _, one = prepare(tmp_path, "iwslt14")
    texts = {path.name: lines(path) for path in one.glob("*.*")}
    _, other = prepare(tmp_path, "iwslt14", languages=("en", "de"))
    assert texts == {path.name: lines(path) for path in other.glob("*.*")}


def test_tokenised_iwslt_folder_is_taken_as_it_is(tmp_path):
    for split in ("train_dedup", "valid", "test"):
        for language in ("de", "en"):
            write(tmp_path / "data" / f"{split}.{language}", *[f"{split} {language} &apos;s"] * 3)
    status, output = prepare(tmp_path, "iwslt14")
    assert status == 0
    assert lines(output / "train.de") == ["train_dedup de &apos;s"] * 3
    assert not (output / "raw").exists()


def test_subset_and_limit(tmp_path):
    _, output = prepare(tmp_path, "multi30k", "--subset", "7", "--limit", "20")
    assert len(lines(output / "train.en")) == 7
    assert len(lines(output / "valid.en")) == 10
    _, output = prepare(tmp_path, "multi30k", "--limit", "4")
    assert len(lines(output / "train.en")) == len(lines(output / "test.en")) == len(lines(output / "raw/test.de")) == 4


@pytest.mark.parametrize("name", sorted(LOADERS))
def test_wrong_folder_is_named(tmp_path, name, capsys):
    (tmp_path / "data").mkdir()
    status, _ = prepare(tmp_path, name)
    assert status == 1
    assert str(tmp_path / "data") in capsys.readouterr().err


def test_archives_are_extracted_once(tmp_path):
    data = tmp_path / "data"
    toy_corpus.main(["iwslt14", "--output", str(data)])
    options = PrepareOptions(tmp_path / "official")
    times = []
    for _ in range(2):
        load_iwslt14(data, ("de", "en"), options)
        times.append([path.stat().st_ctime_ns for path in (tmp_path / "official").rglob("*")])
    assert times[0] == times[1]


def test_segments_and_tags(tmp_path):
    path = tmp_path / "set.xml"
    path.write_text(
        '<doc><seg id="1"> It\u2019s R&amp;D & <b>\n more </seg>\n<seg id="2">two</seg></doc>', encoding="utf-8"
    )
    assert list(segments(path)) == ["It's R&D & <b> more", "two"]
    path = tmp_path / "train.tags"
    tagged = ["<url>x</url>", "<title>A title</title>", " line ", "<translator href='x'>y</translator>"]
    write(path, *tagged, "<doc docid=1>", "</doc>", "end")
    assert list(tagged_lines(path)) == ["A title", "line", "end"]


def test_short_sentences_are_drawn_from_for_training_alone(tmp_path):
    _, output = prepare(tmp_path, "multi30k")
    whole = {split: lines(output / f"{split}.en") for split in ("train", "valid", "test")}
    limit = sorted(len(line.split()) for line in whole["train"])[20]
    short = [line for line in whole["train"] if len(line.split()) <= limit]
    assert prepare(tmp_path, "multi30k", "--up-to", str(limit))[0] == 0
    assert lines(output / "train.en") == short != whole["train"]
    assert [lines(output / f"{split}.en") for split in ("valid", "test")] == [whole["valid"], whole["test"]]
    assert prepare(tmp_path, "multi30k", "--up-to", str(limit), "--subset", "12")[0] == 0
    assert len(lines(output / "train.en")) == 12 and set(lines(output / "train.en")) <= set(short)


def test_django_has_the_splits_of_the_literature_and_names_for_strings(tmp_path):
    _, output = prepare(tmp_path, "django")
    assert [len(lines(output / f"{split}.py")) for split in ("train", "valid", "test")] == [16000, 1000, 1805]
    assert lines(output / "train.en")[1] == "FileName is a call of Block with _STR0_."
    assert lines(output / "train.py")[1] == "FileName = Block ( '_STR0_' )"
    named = name_strings(r"""log 'a b', "it\"s", 'a b' and '%s' .""", r"""log ( 'a b' , "it\"s" % '%s' )""")
    assert named == ("log _STR0_, _STR1_, _STR0_ and '%s' .", "log ( '_STR0_' , '_STR1_' % '%s' )")
    longer = 'compile ( r"""a "b" c""" )'  # the program has another string
    assert name_strings('compile "a "b" c"', longer)[1] == longer


def test_a_card_of_hearthstone_is_a_call_of_its_class(tmp_path):
    _, output = prepare(tmp_path, "hearthstone")
    names = [line.split("class ")[1].split("(")[0] for line in lines(output / "train.out")]
    cards = [ast.parse(line, mode="eval").body for line in lines(output / "train.in")]
    assert [card.func.id for card in cards] == names
    fields = "NAME_END 3 ATK_END -1 DEF_END 05 COST_END Weapon TYPE_END NIL RACE_END"
    assert card_call(f"Echo-o  of Medivh's {fields} <b>Deal</b> $2 if -1.") == (
        """EchooOfMedivhs("Echo-o  of Medivh's", 3, -1, 5, Weapon, NIL, [Deal, '$', 2, 'if', '-', 1, '.'])"""
    )
