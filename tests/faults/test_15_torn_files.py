"""Fault 15: torn, swapped or truncated files and wrong dictionaries are found and named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.data_bin.corpora import prefixes, run_preprocess, write_corpus
from tree_fairseq.commands.check import check_folder, main
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import CorruptFileError, DataFolderError, DictionaryMismatchError, MissingTreesError


@pytest.fixture(scope="module")
def good_folder(tmp_path_factory) -> Path:
    corpus = write_corpus(tmp_path_factory.mktemp("corpus"), train=30, valid=12)
    folder = tmp_path_factory.mktemp("good") / "bin"
    run_preprocess(*prefixes(corpus / "mixed", "train", "valid"), "--destdir", folder, "--tree-parser", "brackets")
    return folder


@pytest.fixture
def folder(good_folder, tmp_path) -> Path:
    return Path(shutil.copytree(good_folder, tmp_path / "bin"))


def verify(folder: Path, lang: str, splits: list[str]) -> None:
    Manifest.load(folder).verify_quickly(folder, lang, splits)


def test_a_good_folder(folder, capsys):
    assert check_folder(folder) == [] and main([str(folder)]) == 0
    assert "all is well" in capsys.readouterr().out
    verify(folder, "en", ["train", "valid"])
    assert Manifest.load(folder).side("en").side == "source"


@pytest.mark.parametrize("name", ["dict.en.txt", "dict.label.en.txt"])
def test_another_dictionary_is_refused_at_every_start(folder, name, capsys):
    # As many entries of the same length: the last two change places.
    lines = (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / name).write_text("".join([*lines[:-2], lines[-1], lines[-2]]), encoding="utf-8")
    assert main([str(folder)]) == 1
    assert name in capsys.readouterr().out
    with pytest.raises(DictionaryMismatchError, match=name):
        verify(folder, "en", [])


def test_a_manifest_that_is_missing_damaged_or_too_new(folder):
    path = folder / "tree.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    for change in ({"format_version": 99}, {"files": {}}, {"sides": 3}):
        path.write_text(json.dumps({**values, **change}), encoding="utf-8")
        with pytest.raises(DataFolderError, match="tree.json"):
            verify(folder, "en", ["train"])
        assert main([str(folder)]) == 1
    path.write_bytes(b'{"sides')
    with pytest.raises(CorruptFileError, match="tree.json"):
        verify(folder, "en", ["train"])
    path.unlink()
    with pytest.raises(MissingTreesError, match="annotate"):
        verify(folder, "en", ["train"])


def test_trees_that_were_never_made(folder):
    with pytest.raises(MissingTreesError, match="not for de"):
        verify(folder, "de", ["train"])
    with pytest.raises(MissingTreesError, match="not for test"):
        verify(folder, "en", ["test"])


def test_a_left_over_building_place_is_reported(folder):
    (folder.parent / "bin.building").mkdir()
    assert check_folder(folder) == []
    (folder.parent / "bin.building" / "command.json").write_text("{}")
    assert any("bin.building" in problem for problem in check_folder(folder))
