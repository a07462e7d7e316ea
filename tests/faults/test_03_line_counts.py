"""Fault 3: source, target, trees or alignments have different numbers of lines."""

from __future__ import annotations

import pytest

from tests.data_bin.corpora import folder_bytes, prefixes, read_lines, run_preprocess, write_corpus, write_lines
from tree_fairseq.errors import LineCountError
from tree_fairseq.preprocessing import run


@pytest.mark.parametrize("shorter", ["en", "de", "align"])
@pytest.mark.parametrize("split", ["train", "valid1", "test"])
def test_the_first_bad_line_is_named_before_anything_is_parsed(tmp_path, monkeypatch, split, shorter):
    corpus = write_corpus(tmp_path, train=9, valid=8, valid1=7, test=6)
    texts = corpus / "mixed"
    for name in ("train", "test"):
        write_lines(texts / f"{name}.align", [""] * len(read_lines(texts / f"{name}.de")))
    if shorter == "align" and split == "valid1":
        pytest.skip("stock fairseq reads no alignments of several prefixes")
    path = texts / f"{split}.{shorter}"
    lines = read_lines(path)
    # A malformed tree would be reported by whatever reads trees.
    write_lines(texts / "train.en", ["(NN x", *read_lines(texts / "train.en")[1:]])
    write_lines(path, read_lines(path)[:-2])
    monkeypatch.setattr(run, "encode_split", lambda *_, **__: pytest.fail("parsed"))
    before = folder_bytes(tmp_path)
    counts = rf"{split}\.\w+:{len(lines) - 1}: .* has {len(lines)} lines, .*{split}\.\w+ has {len(lines) - 2}"
    with pytest.raises(LineCountError, match=counts):
        flags = ("--destdir", tmp_path / "bin", "--align-suffix", "align", "--tree-parser", "brackets")
        run_preprocess(*prefixes(texts, "train", "valid", "valid1", "test"), *flags)
    assert folder_bytes(tmp_path) == before
