"""Somebody's own folder of parallel text."""

from __future__ import annotations

import pytest

from preprocess.corpora import CorpusError
from preprocess.own_text import languages, load, main
from tests.preprocess.files import lines, write


def test_languages_are_told_by_the_names(tmp_path):
    write(tmp_path / "train.de", "a")
    write(tmp_path / "train.en", "a")
    assert languages(tmp_path) == ("en", "de")
    assert languages(tmp_path, source="de") == ("de", "en")
    assert languages(tmp_path, target="en") == ("de", "en")
    (tmp_path / "train.en").rename(tmp_path / "train.fr")
    assert languages(tmp_path) == ("de", "fr")


@pytest.mark.parametrize("names", [(), ("train.en",), ("train.en", "train.de", "train.fr")])
def test_languages_that_cannot_be_told(tmp_path, names):
    for name in names:
        write(tmp_path / name, "a")
    with pytest.raises(CorpusError, match="train.SOURCE and train.TARGET"):
        languages(tmp_path)
    if len(names) == 3:
        assert languages(tmp_path, "fr", "en") == ("fr", "en")


def test_tokens_raw_references_and_splits_cut_from_train(tmp_path, capsys):
    write(tmp_path / "train.en", *(f"The dog's house, no. {number}." for number in range(60)))
    write(tmp_path / "train.de", *(f"Das Haus des Hundes, Nr. {number}." for number in range(60)))
    write(tmp_path / "valid.en", "(Hello!)")
    write(tmp_path / "valid.de", "(Hallo!)")
    out = tmp_path / "out"
    assert main([str(tmp_path), "--out", str(out)]) == 0
    assert capsys.readouterr().out == "en de\n"
    assert lines(out / "train.en")[0] == "The dog &apos;s house , no . 0 ."
    assert len(lines(out / "train.en")) == len(lines(out / "train.de")) == 57
    assert (out / "valid.en").read_text() == "( Hello ! )\n"
    assert lines(out / "raw/test.de") == [f"Das Haus des Hundes, Nr. {number}." for number in (57, 58, 59)]
    assert len(lines(out / "test.en")) == 3
    assert main([str(tmp_path), "--out", str(out), "--subset", "40"]) == 0
    assert len(lines(out / "train.en")) == 38


def test_short_pairs_alone_are_trained_on(tmp_path):
    for language in ("en", "de"):
        write(tmp_path / f"train.{language}", "a b c", "a b", "a b c d", "a", "a b c e")
        write(tmp_path / f"valid.{language}", "a b c d e")
        write(tmp_path / f"test.{language}", "a b c d e f")
    out = tmp_path / "out"
    assert main([str(tmp_path), "--out", str(out), "--up-to", "3", "--subset", "2"]) == 0
    assert [lines(out / f"{split}.en") for split in ("train", "valid", "test")] == [
        ["a b c", "a b"], ["a b c d e"], ["a b c d e f"],
    ]  # fmt: skip
    assert main([str(tmp_path), "--out", str(out), "--up-to", "3"]) == 0
    assert lines(out / "train.de") == ["a b c", "a b", "a"]


def test_sides_of_different_length_and_a_missing_side_are_refused(tmp_path, capsys):
    write(tmp_path / "train.en", "a", "b")
    write(tmp_path / "train.de", "a")
    assert main([str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    assert "train.de ends before line 2" in capsys.readouterr().err
    write(tmp_path / "train.de", "a", "b")
    write(tmp_path / "test.de", "a")
    with pytest.raises(CorpusError, match="test.en is missing"):
        load(tmp_path, ("en", "de"))
