"""Fault 16: 1, 3 or 20 workers, and more workers than lines, write the same bytes."""

from __future__ import annotations

import pytest

from tests.data_bin.corpora import folder_bytes, prefixes, run_preprocess, write_corpus
from tree_fairseq.trees import text

JOINED = ("--joined-dictionary", "--thresholdsrc", 2)


@pytest.mark.parametrize(("lines", "flags"), [(1, ()), (2, JOINED), (50, ()), (50, JOINED)])
def test_bytes_do_not_depend_on_the_number_of_workers(tmp_path, monkeypatch, lines, flags):
    monkeypatch.setattr(text, "CHUNK_LINES", 4)
    corpus = write_corpus(tmp_path / "corpus", seed=lines, train=lines, valid=3)
    results = []
    for workers in (1, 3, 20):
        destination = tmp_path / f"{workers}"
        command = ["--workers", workers, "--destdir", destination, *flags, "--tree-parser", "brackets"]
        run_preprocess(*prefixes(corpus / "mixed", "train", "valid"), *command)
        results.append(folder_bytes(destination))
    assert results[0] == results[1] == results[2]
    run_preprocess(*prefixes(corpus / "leaves", "train", "valid"), "--destdir", tmp_path / "stock", *flags)
    stock = folder_bytes(tmp_path / "stock")
    assert {name: results[0][name] for name in stock} == stock
