"""Token files of every kind are read as fairseq reads them, and messages name the damage."""

from __future__ import annotations

import numpy as np
import pytest

from tests.data_bin.corpora import read_lines, run_preprocess, write_corpus
from tree_fairseq.data_bin import token_files
from tree_fairseq.errors import CorruptFileError, DataFolderError, MissingTreesError


@pytest.fixture(scope="module", params=token_files.SUPPORTED)
def stock_folder(request, tmp_path_factory):
    corpus = write_corpus(tmp_path_factory.mktemp("corpus"), train=40)
    folder = tmp_path_factory.mktemp("stock") / "bin"
    run_preprocess(
        "--trainpref", corpus / "leaves/train", "--destdir", folder, "--dataset-impl", request.param,
        "--thresholdsrc", 3,
    )  # fmt: skip
    return request.param, folder, corpus / "leaves/train.en"


def test_lengths_ids_and_words(stock_folder):
    impl, folder, text = stock_folder
    prefix = folder / "train.en-de.en"
    lines = [line.split() for line in read_lines(text)]
    dictionary = token_files.load_dictionary(folder, "en")
    assert token_files.found_impl(prefix) == impl
    assert all((folder / name).exists() for name in token_files.token_file_names(prefix))
    assert token_files.token_lengths(prefix).tolist() == [len(line) for line in lines]
    assert [ids.tolist() for ids in token_files.token_ids(prefix, dictionary)] == [
        [dictionary.index(word) for word in line] for line in lines
    ]
    words = [[word if word in dictionary or impl == "raw" else "<unk>" for word in line] for line in lines]
    assert list(token_files.token_words(prefix, dictionary)) == words


@pytest.mark.parametrize("suffix", ["bin", "idx"])
def test_truncated_files_are_refused(tmp_path, suffix):
    corpus = write_corpus(tmp_path, train=5)
    run_preprocess("--trainpref", corpus / "leaves/train", "--destdir", tmp_path / "bin")
    path = tmp_path / "bin" / f"train.en-de.en.{suffix}"
    content = path.read_bytes()
    for length in (0, 4, 20, len(content) - 8, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(CorruptFileError, match="train.en-de.en"):
            token_files.token_lengths(tmp_path / "bin/train.en-de.en")
    path.unlink()
    with pytest.raises(CorruptFileError):
        token_files.token_lengths(tmp_path / "bin/train.en-de.en")


def test_ids_outside_the_dictionary_are_refused(tmp_path):
    corpus = write_corpus(tmp_path, train=5)
    run_preprocess("--trainpref", corpus / "leaves/train", "--destdir", tmp_path / "bin", "--padding-factor", 1)
    prefix = tmp_path / "bin/train.en-de.en"
    values = np.fromfile(f"{prefix}.bin", np.uint16)
    dictionary = token_files.load_dictionary(tmp_path / "bin", "en")
    values[0] = len(dictionary)
    values.tofile(f"{prefix}.bin")
    with pytest.raises(CorruptFileError, match="outside the dictionary"):
        list(token_files.token_words(prefix, dictionary))
    values[values == dictionary.eos()] = dictionary.unk()
    values.tofile(f"{prefix}.bin")
    with pytest.raises(CorruptFileError, match="end with"):
        list(token_files.token_ids(prefix, dictionary))


def test_missing_or_damaged_dictionaries_are_refused(tmp_path):
    with pytest.raises(MissingTreesError, match="dict.en.txt"):
        token_files.load_dictionary(tmp_path, "en")
    for content in (b"no count\n", b"a 1\na 1\n", b"\xff\xfe 1\n"):
        (tmp_path / "dict.en.txt").write_bytes(content)
        with pytest.raises(DataFolderError, match="dict.en.txt"):
            token_files.load_dictionary(tmp_path, "en")
