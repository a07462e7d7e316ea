"""Compounds of CoGnition: right translations, error rates, the command."""

from __future__ import annotations

import json
import random

import pytest

from examples.cognition.compounds import Compound, CompoundSet, in_all_contexts, is_right, read_compound, read_lexicon
from tree_fairseq.errors import ScoringError

LEXICON = {
    "the": ("", ""), "every": ("每", "所有"), "red": ("红",), "dog": ("狗", "犬"), "car": ("车",),
    "saw": ("看到", "见"), "liked": ("喜欢", ""), "inside": ("里", "中"),
    "mod0": ("他喜欢的",), "mod2": ("地上", "地板上"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "compound", "kind"),
    [
        ("the dog", Compound("", ("the",), "dog", ""), "NP"),
        ("every red dog he liked", Compound("", ("every", "red"), "dog", "mod0"), "NP"),
        ("saw the red car on the floor", Compound("saw", ("the", "red"), "car", "mod2"), "VP"),
        ("liked the car", Compound("liked", ("the",), "car", ""), "VP"),
        ("inside the car at the store", Compound("inside", ("the",), "car", "mod1"), "PP"),
        ("on the car on the floor", Compound("on", ("the",), "car", "mod2"), "PP"),
    ],
)
def test_parts_of_compounds(text, compound, kind):
    assert read_compound(text) == compound and compound.kind == kind


@pytest.mark.parametrize("text", ["", "dog", "he liked"])
def test_text_that_is_not_a_compound_is_refused(text):
    with pytest.raises(ScoringError, match=f"{text!r} is not a compound"):
        read_compound(text)


@pytest.mark.parametrize(
    ("text", "translation", "right"),
    [
        ("the dog", "狗睡了。", True),
        ("the dog", "猫睡了。", False),
        ("every red dog", "每只红狗睡了。", True),
        ("every red dog", "每只狗睡了。", False),
        ("every red dog", "狗睡了，每只红。", False),  # both follow the noun
        ("every red dog", "红狗每犬", True),  # one "every" precedes one "dog"
        ("every dog he liked", "他喜欢的每只狗", True),
        ("every dog he liked", "每只狗是他喜欢的", False),
        ("saw the dog he liked", "看到狗，他喜欢的", True),  # the modifier may belong to the verb
        ("inside the car on the floor", "车里地上", False),
        ("inside the car on the floor", "地板上的车里", True),
        ("liked the car", "车", True),  # needs no translation
    ],
)
def test_right_and_wrong_translations(text, translation, right):
    assert is_right(read_compound(text), translation, LEXICON) is right


def every_place(word, text):
    return [place for place in range(len(text) - len(word) + 1) if text.startswith(word, place)] if word else []


def right_by_enumeration(compound, translation):
    """Applies the definition to all places of all translations."""
    places = {
        part: [place for word in LEXICON[part] for place in every_place(word, translation)] for part in compound.parts
    }
    if any(not places[part] and "" not in LEXICON[part] for part in compound.parts):
        return False
    movable = [part for part in (compound.modifier,) if part and compound.kind != "VP"]
    nouns = places[compound.noun]
    return all(
        not places[part] or any(place < noun for place in places[part] for noun in nouns)
        for part in (*compound.before, *movable)
    )


def test_is_right_equals_the_enumeration_of_all_places():
    generator = random.Random(1)
    words = [word for translations in LEXICON.values() for word in translations if word] + ["我", "的"]
    found = set()
    for _ in range(3000):
        head, modifier = (
            generator.choice(("", "saw", "liked", "inside")),
            generator.choice(("", " he liked", " on the floor")),
        )
        adjective = generator.choice(("", "red "))
        compound = read_compound(
            f"{head} {generator.choice(('the', 'every'))} {adjective}{generator.choice(('dog', 'car'))}{modifier}"
        )
        parts = [generator.choice(LEXICON[part]) for part in compound.parts] + generator.choices(words, k=2)
        generator.shuffle(parts)
        translation = "".join(parts[generator.randrange(2) :])
        right = is_right(compound, translation, LEXICON)
        assert right == right_by_enumeration(compound, translation), (compound, translation)
        found.add((compound.kind, right))
    assert len(found) == 6


def test_messages_name_words_without_translations(tmp_path):
    with pytest.raises(ScoringError, match="no translation of 'bee'"):
        is_right(read_compound("the bee"), "蜂", LEXICON)
    (tmp_path / "lexicon").write_text("dog\t狗/犬\nthe\t/\ncat 猫\n", encoding="utf-8")
    with pytest.raises(ScoringError, match="lexicon:3: not word<TAB>translations"):
        read_lexicon(tmp_path / "lexicon")
    with pytest.raises(ScoringError, match="is missing"):
        read_lexicon(tmp_path / "none")


def test_a_compound_must_be_right_in_all_its_sentences():
    assert in_all_contexts([True] * 9 + [False]) == [True, False]
    with pytest.raises(ScoringError, match="7 sentences are not 5 for each compound"):
        in_all_contexts([True] * 7)


@pytest.fixture
def folder(tmp_path):
    words = tmp_path / "words"
    words.mkdir()
    (words / "lexicon").write_text("the\t/\ndog\t狗/犬\nsaw\t看到\n", encoding="utf-8")
    (words / "test1.zh").write_text("狗来了。\n" * 10, encoding="utf-8")
    (words / "test1.compound").write_text("the dog\n" * 5 + "saw the dog\n" * 5, encoding="utf-8")
    (words / "test.zh").write_text("狗 来 了 。\n我 去 了 那里 。\n", encoding="utf-8")
    for name, wrong in (("good", 1), ("bad", 7)):
        run = tmp_path / "runs" / name
        run.mkdir(parents=True)
        lines = ["猫 睡 了 。" if index < wrong else "我 看到 狗 来 了 。" for index in range(10)]
        (run / "generate-test1.txt").write_text(
            "".join(f"H-{index}\t-1\t{line}\n" for index, line in enumerate(lines)), encoding="utf-8"
        )
        (run / "generate-test.txt").write_text("H-1\t-1\t我 去 了 那里 。\nH-0\t-1\t狗 来 了 。\n", encoding="utf-8")
    return tmp_path


def command(folder, name, *more):
    return CompoundSet.main([
        "--run", str(folder / "runs" / name), "--references", str(folder / "words"), "--sets",
        "test=random", "test1=cg",
        "--primary", "instance_error_rate_cg", "--result", str(folder / "result.json"), *more,
    ])  # fmt: skip


def test_command(folder, capsys):
    assert command(folder, "bad") == 0
    assert command(folder, "good", "--against", str(folder / "runs" / "bad")) == 0
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert (
        result["score"] == result["instance_error_rate_cg"] == pytest.approx(10)
        and result["aggregate_error_rate_cg"] == 50
    )
    assert result["sacrebleu_random"] == pytest.approx(100) and "tok:zh" in result["signatures"]["sacrebleu_random"]
    assert result["groups"]["test1"]["VP"] == {"sentences": 5, "instance_error_rate": 0, "aggregate_error_rate": 0}
    assert result["groups"]["test1"]["NP"]["instance_error_rate"] == pytest.approx(20)
    row = result["differences"][-1]
    assert (row["metric"], row["baseline"], row["difference"]) == ("compound_cg", "bad", pytest.approx(60))
    assert row["p_value"] < 0.05 and "bootstrap" in capsys.readouterr().out


def test_sentences_of_a_compound_must_be_consecutive(folder, caplog):
    (folder / "words" / "test1.compound").write_text("the dog\n" * 4 + "saw the dog\n" * 6, encoding="utf-8")
    assert command(folder, "good") == 1
    assert "test1.compound:1: not 5 lines of one compound" in caplog.text
