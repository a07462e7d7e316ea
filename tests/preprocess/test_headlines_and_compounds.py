"""Gigaword's titles and CoGnition's compounds: which files are read, what stands beside the splits."""

from __future__ import annotations

import gzip

import pytest

from preprocess import toy_corpus
from preprocess.prepare import main
from tests.preprocess.files import DATA, lines


def prepare(name, data, output, *flags):
    source, target = {"cognition": ("en", "zh"), "gigaword": ("article", "title")}[name]
    return main([name, "--data", str(data), "--source", source, "--target", target, "--output", str(output), *flags])


@pytest.fixture
def headlines(tmp_path):
    toy_corpus.main(["gigaword", "--output", str(tmp_path / "data"), "--train", "60", "--test", "10"])
    return tmp_path / "data"


@pytest.fixture
def compounds(tmp_path):
    toy_corpus.main(["cognition", "--output", str(tmp_path / "data"), "--train", "60", "--test", "15"])
    return tmp_path / "data"


def test_without_a_test_set_validation_lines_test(headlines, tmp_path):
    before = lines(headlines / "train.article.txt")
    assert prepare("gigaword", headlines, tmp_path / "words") == 0
    assert lines(tmp_path / "words" / "test.title") == lines(headlines / "valid.title.filter.txt")
    train, valid = (lines(tmp_path / "words" / f"{split}.article") for split in ("train", "valid"))
    assert len(valid) == 6 and sorted(train + valid) == sorted(before)


def test_the_published_folders_are_read_packed_as_they_are(headlines, tmp_path):
    folder = tmp_path / "sumdata"
    for name in ("train.article.txt", "train.title.txt"):
        (folder / "train").mkdir(parents=True, exist_ok=True)
        (folder / "train" / f"{name}.gz").write_bytes(gzip.compress((headlines / name).read_bytes() + b"\n"))
    for name in ("valid.article.filter.txt", "valid.title.filter.txt"):
        (headlines / name).rename(folder / "train" / name)
    (folder / "Giga").mkdir()
    (folder / "Giga" / "input.txt").write_text("one <unk> #.##\n\n")
    (folder / "Giga" / "task1_ref0.txt").write_text("one\ntwo\n")
    assert prepare("gigaword", folder, tmp_path / "words") == 0
    assert len(lines(tmp_path / "words" / "train.title")) == 60  # the empty pair is left out
    assert len(lines(tmp_path / "words" / "valid.title")) == 10
    assert lines(tmp_path / "words" / "test.article") == ["one <unk> #.##", ""]  # all of the test set stays


@pytest.mark.parametrize("missing", ["train.title.txt", "valid.article.filter.txt"])
def test_a_missing_file_is_named(headlines, tmp_path, capsys, missing):
    (headlines / missing).unlink()
    assert prepare("gigaword", headlines, tmp_path / "words") == 1
    assert f"has no {missing}" in capsys.readouterr().err


def test_compounds_and_lexicon_stand_beside_the_splits(compounds, tmp_path):
    assert prepare("cognition", compounds, tmp_path / "words") == 0
    words = tmp_path / "words"
    found, english, chinese = (lines(words / f"test1.{kind}") for kind in ("compound", "en", "zh"))
    assert len(found) == len(english) == len(chinese) == 15
    assert all(compound in line for compound, line in zip(found, english))
    assert lines(words / "lexicon") == lines(compounds / "eval" / "lexicon")
    assert prepare("cognition", compounds, tmp_path / "few", "--limit", "5") == 0
    assert len(lines(tmp_path / "few" / "test1.compound")) == 5
    assert lines(tmp_path / "few" / "lexicon") == lines(words / "lexicon")


@pytest.mark.parametrize("missing", ["eval/lexicon", "data/cg-test/cg-test.compound", "data/train.zh"])
def test_what_a_clone_would_have_is_named(compounds, tmp_path, capsys, missing):
    (compounds / missing).unlink()
    assert prepare("cognition", compounds, tmp_path / "words") == 1
    assert f"{missing} is missing: --data takes a clone of" in capsys.readouterr().err


def test_compounds_that_do_not_fit_their_sentences(compounds, tmp_path, capsys):
    (compounds / "data" / "cg-test" / "cg-test.compound").write_text("the dog\n" * 4)
    assert prepare("cognition", compounds, tmp_path / "words") == 1
    assert "test1.compound: 4 lines for 15 pairs" in capsys.readouterr().err
    (compounds / "eval" / "lexicon").write_text("dog\n")
    assert prepare("cognition", compounds, tmp_path / "words") == 1


@pytest.mark.skipif(not (DATA / "gigaword_sample").is_dir(), reason="no ../shared/data/gigaword_sample")
def test_the_sample_of_gigaword(tmp_path):
    assert prepare("gigaword", DATA / "gigaword_sample", tmp_path / "words") == 0
    counts = {split: len(lines(tmp_path / "words" / f"{split}.title")) for split in ("train", "valid", "test")}
    assert counts == {"train": 9500, "valid": 500, "test": 1000}
