"""The manifest is read as it was written, and files are compared with it."""

from __future__ import annotations

import pytest

from tests.data_bin.corpora import prefixes, run_preprocess, write_corpus
from tree_fairseq.data_bin.manifest import FileRecord, Manifest
from tree_fairseq.data_bin.records import SideRecord, SplitRecord
from tree_fairseq.data_bin.token_files import require_equal_lengths
from tree_fairseq.data_bin.tree_store import TreeStore
from tree_fairseq.errors import CorruptFileError, LeafMismatchError, MissingTreesError
from tree_fairseq.parsing.parsers import ParserOptions


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    corpus = write_corpus(tmp_path_factory.mktemp("corpus"), train=12, valid=12, test=5)
    folder = tmp_path_factory.mktemp("work") / "bin"
    run_preprocess(
        *prefixes(corpus / "mixed", "train", "valid", "test"), "--destdir", folder, "--tree-parser", "brackets"
    )
    return folder


def test_a_saved_manifest_can_be_loaded(tmp_path):
    options = ParserOptions(name="stanza", lang="de", max_parse_failures=0.5, ssplit="punct")
    split = SplitRecord("train.de-en.de", 3, 20, 31, [2], 1, ["train.de-en.de.tree.bin"])
    side = SideRecord(
        "source", options.to_json(), {"parser": {"name": "stanza"}}, "dict.label.de.txt", {"train": split}
    )
    record = FileRecord(5, "ab")
    files = dict.fromkeys(("dict.de.txt", "dict.label.de.txt", "train.de-en.de.tree.bin"), record)
    manifest = Manifest("de", "en", {"de": side}, files)
    manifest.save(tmp_path)
    again = Manifest.load(tmp_path)
    assert again == manifest and again.side("de").options == options
    assert [path.name for path in tmp_path.iterdir()] == ["tree.json"]


def test_preprocessing_records_files_and_options(folder):
    manifest = Manifest.load(folder)
    assert (manifest.source_lang, manifest.target_lang, list(manifest.sides)) == ("en", "de", ["en"])
    assert manifest.side("en").options == ParserOptions(name="brackets", lang="en")
    assert set(manifest.files) == {path.name for path in folder.iterdir()} - {"tree.json", "preprocess.log"}
    trees = TreeStore(folder / "train.en-de.en.tree")
    split = manifest.split("en", "train")
    assert (split.lines, split.leaves, split.nodes) == (12, sum(trees.leaf_counts), sum(trees.block().node_counts))
    assert manifest.files["dict.en.txt"] == FileRecord.of(folder / "dict.en.txt")


def test_removing_a_split_removes_its_files(folder):
    manifest = Manifest.load(folder)
    manifest.forget_splits(manifest.side("en"), ["valid"])
    assert not [name for name in manifest.files if name.startswith("valid.en-de.en")]
    assert "train.en-de.en.tree.bin" in manifest.files
    with pytest.raises(MissingTreesError, match="train, test, but not for valid"):
        manifest.split("en", "valid")
    with pytest.raises(MissingTreesError, match=r"not for trian: .*Did you mean train\?"):
        manifest.split("en", "trian")


def test_the_message_names_lines_with_other_numbers_of_leaves(folder):
    trees = TreeStore(folder / "train.en-de.en.tree")
    require_equal_lengths(trees, folder / "train.en-de.en")
    lengths = TreeStore(folder / "valid.en-de.en.tree").leaf_counts
    line = next(number for number, pair in enumerate(zip(lengths, trees.leaf_counts)) if pair[0] != pair[1])
    with pytest.raises(LeafMismatchError, match=f"valid.en-de.en, line {line + 1}: {lengths[line]} tokens"):
        require_equal_lengths(trees, folder / "valid.en-de.en")
    with pytest.raises(CorruptFileError, match="has 5 lines, .* has 12"):
        require_equal_lengths(trees, folder / "test.en-de.en")
