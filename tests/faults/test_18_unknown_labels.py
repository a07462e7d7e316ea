"""Fault 18: labels that training did not have."""

from __future__ import annotations

import logging

from fairseq.data import Dictionary

from tests.data_bin.corpora import run_preprocess, write_lines
from tests.parsing import fake_parsers  # noqa: F401  (registers the parsers)
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.tree_store import TreeStore, load_label_dictionary


def preprocess(tmp_path, *, train: str, test: str, parser: str = "brackets"):
    for split, line in (("train", train), ("test", test)):
        write_lines(tmp_path / f"{split}.en", [line, "", line])
        write_lines(tmp_path / f"{split}.de", ["x", "", "x"])
    destination = tmp_path / "bin"
    arguments = ["--trainpref", tmp_path / "train", "--testpref", tmp_path / "test", "--destdir", destination]
    run_preprocess(*arguments, "--tree-parser", parser, "--no-progress-bar")
    return destination


def test_an_unknown_label_is_unk_counted_and_reported(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    folder = preprocess(tmp_path, train="(S (NN a) (NN b))", test="(S (NEW (NN a) (JJ b)) (NN c))")
    labels = load_label_dictionary(folder / "dict.label.en.txt")
    tree = TreeStore(folder / "test.en-de.en.tree")[0]
    assert [labels[label] for label in tree.label] == ["S", "<unk>", "NN", "<unk>", "NN"]
    assert Manifest.load(folder).split("en", "test").unknown_labels == 4
    assert Manifest.load(folder).split("en", "train").unknown_labels == 0
    assert "4 nodes are labelled <unk>" in caplog.text and "NEW (2)" in caplog.text and "JJ (2)" in caplog.text


def test_labels_come_from_the_parser_not_only_from_train(tmp_path):
    folder = preprocess(tmp_path, train="a", test="a longer sentence of bigger words", parser="toy")
    labels = Dictionary.load(str(folder / "dict.label.en.txt"))
    assert {"S", "NP", "VP", *(f"T{length}" for length in range(1, 10))} <= set(labels.symbols)
    assert "T9_sub" not in labels
    assert Manifest.load(folder).split("en", "test").unknown_labels == 0
