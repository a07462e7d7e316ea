"""Trees added to a folder of stock fairseq's are those that preprocessing with trees would have made."""

from __future__ import annotations

import json

import pytest

from tests.data_bin.corpora import folder_bytes, forests_with_words, prefixes, read_lines, run_preprocess, write_corpus
from tests.parsing.fake_parsers import LOG_VARIABLE, noted
from tree_fairseq.commands.annotate import main
from tree_fairseq.commands.check import check_folder
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.trees.tree import forest_leaves

SPLITS = ("train", "valid", "valid1", "test")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"), train=40, valid=8, valid1=4, test=5)


def annotate(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


@pytest.mark.parametrize("flags", [(), ("--joined-dictionary",), ("--dataset-impl", "raw"), ("--only-source",)])
def test_added_trees_equal_those_of_preprocessing(corpus, tmp_path, flags):
    texts = [*prefixes(corpus / "leaves", *SPLITS), *flags]
    run_preprocess(*texts, "--destdir", tmp_path / "later")
    before = folder_bytes(tmp_path / "later")
    assert annotate(tmp_path / "later", "--tree-parser", "balanced", "--workers", 2) == 0
    run_preprocess(*texts, "--destdir", tmp_path / "at-once", "--tree-parser", "balanced")
    later, at_once = folder_bytes(tmp_path / "later"), folder_bytes(tmp_path / "at-once")
    assert json.loads(later.pop("tree.json")) == json.loads(at_once.pop("tree.json"))
    assert later == at_once
    assert {name: later[name] for name in before} == before
    assert check_folder(tmp_path / "later") == []


def test_both_sides(corpus, tmp_path):
    run_preprocess(*prefixes(corpus / "leaves", "train"), "--destdir", tmp_path / "bin")
    assert annotate(tmp_path / "bin", "--tree-parser", "balanced", "--tree-sides", "source,target") == 0
    assert list(Manifest.load(tmp_path / "bin").sides) == ["en", "de"]
    assert check_folder(tmp_path / "bin") == []


def test_words_come_from_the_token_files(corpus, tmp_path, monkeypatch):
    run_preprocess(*prefixes(corpus / "leaves", "train", "valid"), "--destdir", tmp_path / "bin", "--nwordssrc", 8)
    rare = {word for line in read_lines(corpus / "leaves/valid.en") for word in line.split()}
    rare -= {line.split()[0] for line in read_lines(tmp_path / "bin/dict.en.txt")} | {"<unk>"}
    monkeypatch.setenv(LOG_VARIABLE, str(tmp_path / "log"))
    assert annotate(tmp_path / "bin", "--tree-parser", "toy", "--tree-subwords", "bpe") == 0
    parsed = {word for sentence in noted(tmp_path / "log") for word in sentence.split()}
    assert rare.isdisjoint(parsed) and "<unk>" in parsed
    forests = list(forests_with_words(tmp_path / "bin", "en", "valid", corpus / "leaves/valid.en"))
    assert [" ".join(forest_leaves(forest)) for forest in forests] == read_lines(corpus / "leaves/valid.en")


def test_a_split_that_came_later(corpus, tmp_path, caplog):
    run_preprocess(*prefixes(corpus / "leaves", "train"), "--destdir", tmp_path / "bin", "--tree-parser", "balanced")
    assert annotate(tmp_path / "bin", "--tree-parser", "balanced") == 1
    assert "all splits" in caplog.text
    given = ["--srcdict", tmp_path / "bin/dict.en.txt", "--tgtdict", tmp_path / "bin/dict.de.txt"]
    run_preprocess("--trainpref", corpus / "leaves/test", *given, "--destdir", tmp_path / "shard")
    for path in (tmp_path / "shard").glob("train.*"):
        path.rename(tmp_path / "bin" / path.name.replace("train", "train1"))
    before = folder_bytes(tmp_path / "bin")
    assert annotate(tmp_path / "bin", "--tree-parser", "right-branching") == 1
    assert "trees of en for train in this folder were made differently" in caplog.text
    assert folder_bytes(tmp_path / "bin") == before and not (tmp_path / "bin.building").exists()
    assert annotate(tmp_path / "bin", "--tree-parser", "balanced") == 0
    assert list(Manifest.load(tmp_path / "bin").side("en").splits) == ["train", "train1"]
    assert check_folder(tmp_path / "bin") == []
    after = folder_bytes(tmp_path / "bin")
    assert {name: after[name] for name in before if name != "tree.json"} == {
        name: before[name] for name in before if name != "tree.json"
    }


@pytest.mark.parametrize("flags", [("brackets",), ("stanza", "--tree-tokenize", "parser")])
def test_trees_of_other_words_are_refused(corpus, tmp_path, caplog, flags):
    run_preprocess(*prefixes(corpus / "leaves", "train"), "--destdir", tmp_path / "bin")
    before = folder_bytes(tmp_path / "bin")
    assert annotate(tmp_path / "bin", "--tree-parser", *flags) == 1
    assert f"--srcdict {tmp_path}/bin/dict.en.txt" in caplog.text
    assert folder_bytes(tmp_path / "bin") == before


def test_folders_that_were_not_preprocessed(tmp_path, caplog):
    assert annotate(tmp_path / "nowhere", "--tree-parser", "balanced") == 1
    assert annotate(tmp_path, "--tree-parser", "balanced") == 1
    assert "was not preprocessed" in caplog.text
    assert annotate(tmp_path, "-s", "en", "-t", "de", "--tree-parser", "balanced") == 1
    assert "no token files of en" in caplog.text
    with pytest.raises(SystemExit):
        annotate(tmp_path)
