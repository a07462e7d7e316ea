"""Somebody's own folder of parallel text."""

from __future__ import annotations

import pytest

from preprocess.corpora import CorpusError
from preprocess.own_text import languages, load, main


def lines(folder, name, *texts):
    (folder / name).write_text("".join(text + "\n" for text in texts), encoding="utf-8")


def test_languages_are_told_by_the_names(tmp_path):
    lines(tmp_path, "train.de", "a")
    lines(tmp_path, "train.en", "a")
    assert languages(tmp_path) == ("en", "de")
    assert languages(tmp_path, source="de") == ("de", "en")
    assert languages(tmp_path, target="en") == ("de", "en")
    (tmp_path / "train.en").rename(tmp_path / "train.fr")
    assert languages(tmp_path) == ("de", "fr")


@pytest.mark.parametrize("names", [(), ("train.en",), ("train.en", "train.de", "train.fr")])
def test_languages_that_cannot_be_told(tmp_path, names):
    for name in names:
        lines(tmp_path, name, "a")
    with pytest.raises(CorpusError, match="train.SOURCE and train.TARGET"):
        languages(tmp_path)
    if len(names) == 3:
        assert languages(tmp_path, "fr", "en") == ("fr", "en")


def test_tokens_raw_references_and_splits_cut_from_train(tmp_path, capsys):
    lines(tmp_path, "train.en", *(f"The dog's house, no. {number}." for number in range(60)))
    lines(tmp_path, "train.de", *(f"Das Haus des Hundes, Nr. {number}." for number in range(60)))
    lines(tmp_path, "valid.en", "(Hello!)")
    lines(tmp_path, "valid.de", "(Hallo!)")
    out = tmp_path / "out"
    assert main([str(tmp_path), "--out", str(out)]) == 0
    assert capsys.readouterr().out == "en de\n"
    assert (out / "train.en").read_text().splitlines()[0] == "The dog &apos;s house , no . 0 ."
    assert len((out / "train.en").read_text().splitlines()) == len((out / "train.de").read_text().splitlines()) == 57
    assert (out / "valid.en").read_text() == "( Hello ! )\n"
    assert (out / "raw/test.de").read_text().splitlines() == [
        f"Das Haus des Hundes, Nr. {number}." for number in (57, 58, 59)
    ]
    assert len((out / "test.en").read_text().splitlines()) == 3
    assert main([str(tmp_path), "--out", str(out), "--subset", "40"]) == 0
    assert len((out / "train.en").read_text().splitlines()) == 38


def test_short_pairs_alone_are_trained_on(tmp_path):
    for language in ("en", "de"):
        lines(tmp_path, f"train.{language}", "a b c", "a b", "a b c d", "a", "a b c e")
        lines(tmp_path, f"valid.{language}", "a b c d e")
        lines(tmp_path, f"test.{language}", "a b c d e f")
    out = tmp_path / "out"
    assert main([str(tmp_path), "--out", str(out), "--up-to", "3", "--subset", "2"]) == 0
    assert [(out / f"{split}.en").read_text().split("\n")[:-1] for split in ("train", "valid", "test")] == [
        ["a b c", "a b"], ["a b c d e"], ["a b c d e f"],
    ]  # fmt: skip
    assert main([str(tmp_path), "--out", str(out), "--up-to", "3"]) == 0
    assert (out / "train.de").read_text().split("\n")[:-1] == ["a b c", "a b", "a"]


def test_sides_of_different_length_and_a_missing_side_are_refused(tmp_path, capsys):
    lines(tmp_path, "train.en", "a", "b")
    lines(tmp_path, "train.de", "a")
    assert main([str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    assert "train.de ends before line 2" in capsys.readouterr().err
    lines(tmp_path, "train.de", "a", "b")
    lines(tmp_path, "test.de", "a")
    with pytest.raises(CorpusError, match="test.en is missing"):
        load(tmp_path, ("en", "de"))
