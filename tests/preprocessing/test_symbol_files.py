"""``fairseq-preprocess`` with symbol trees: token files, dictionaries, records, and what it says of bad input."""

from __future__ import annotations

import shutil

import pytest
from fairseq.data import Dictionary, data_utils

from tests.data_bin.corpora import folder_bytes, read_lines, write_lines
from tests.end_to_end.commands import run
from tests.end_to_end.tiny_programs import write_corpus
from tree_fairseq import errors
from tree_fairseq.commands import export
from tree_fairseq.commands.check import check_folder
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.symbol_dictionary import SymbolDictionary
from tree_fairseq.data_bin.token_files import token_words
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.symbols import SymbolEncoding

BRACKET = "bracket"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("programs"), (40, 8, 8))


def preprocess(folder, destination, *arguments, splits=("train", "valid", "test")):
    prefixes = [text for split in splits for text in (f"--{split}pref", folder / split)]
    return run(
        "preprocess", "--task", "structural_translation", "-s", "nl", "-t", "lf", *prefixes, "--destdir",
        destination, "--target-modality", "tree", *arguments,
    )  # fmt: skip


def programs(folder, split):
    return (folder / f"{split}.lf").read_text(encoding="utf-8").splitlines()


def stored_programs(data, split):
    """The programs as the token files have them, in the corpus's notation again."""
    record = Manifest.load(data).symbols["lf"]
    dictionary = SymbolDictionary(
        Dictionary.load(str(data / "dict.lf.txt")), record.encoding, notation_named(record.notation)
    )
    tokens = data_utils.load_indexed_dataset(str(data / f"{split}.nl-lf.lf"), dictionary)
    return [dictionary.string(line) for line in tokens]


@pytest.mark.parametrize("traversal", ["dfs", "bfs"])
@pytest.mark.parametrize("binarization", ["lcrs", "none"])
def test_token_files_hold_the_trees(corpus, tmp_path, traversal, binarization):
    data = tmp_path / "bin"
    preprocess(corpus, data, "--traversal", traversal, "--binarization", binarization)
    for split in ("train", "valid", "test"):
        assert stored_programs(data, split) == programs(corpus, split)
        words = token_words(data / f"{split}.nl-lf.lf", Dictionary.load(str(data / "dict.lf.txt")))
        encoding = SymbolEncoding(traversal, binarization)
        reader = notation_named(BRACKET)
        assert list(words) == [encoding.encode(reader.read(line)) for line in programs(corpus, split)]
    record = Manifest.load(data).symbols["lf"]
    assert (record.traversal, record.binarization) == (traversal, binarization)
    assert record.degree == (2 if binarization == "lcrs" else 3)
    assert record.splits["test"].lines == 8 and record.splits["test"].unknown == 0
    assert check_folder(data) == []


def test_workers_change_nothing(corpus, tmp_path):
    for workers in (1, 2):
        preprocess(corpus, tmp_path / str(workers), "--workers", workers)
    assert folder_bytes(tmp_path / "1") == folder_bytes(tmp_path / "2")


def test_both_sides_may_be_trees_and_share_a_dictionary(corpus, tmp_path):
    for split in ("train", "valid", "test"):
        for lang in ("nl", "lf"):
            shutil.copy(corpus / f"{split}.lf", tmp_path / f"{split}.{lang}")
    preprocess(tmp_path, tmp_path / "bin", "--source-modality", "tree", "--joined-dictionary")
    assert (tmp_path / "bin/dict.nl.txt").read_bytes() == (tmp_path / "bin/dict.lf.txt").read_bytes()
    assert set(Manifest.load(tmp_path / "bin").symbols) == {"nl", "lf"}


def test_a_joined_dictionary_of_words_and_symbols(corpus, tmp_path):
    preprocess(corpus, tmp_path / "bin", "--joined-dictionary")
    dictionary = Dictionary.load(str(tmp_path / "bin/dict.nl.txt"))
    assert {"show", "and^2", "<null>", "<unk:2>"} <= set(dictionary.symbols)
    assert stored_programs(tmp_path / "bin", "test") == programs(corpus, "test")


def test_unknown_symbols_keep_their_arity(corpus, tmp_path):
    """A threshold makes rare symbols unknown: the tree's shape stays."""
    (tmp_path / "train.nl").write_text("a\n" * 10, encoding="utf-8")
    (tmp_path / "train.lf").write_text("( f x )\n" * 9 + "( g ( h x y ) )\n", encoding="utf-8")
    log = preprocess(tmp_path, tmp_path / "bin", "--thresholdtgt", 2, splits=("train",))
    assert stored_programs(tmp_path / "bin", "train")[9] == "( <unk> ( <unk> <unk> <unk> ) )"
    assert "4 symbols are not in the dictionary" in log
    assert Manifest.load(tmp_path / "bin").symbols["lf"].splits["train"].unknown == 4


@pytest.mark.parametrize("binarization", ["lcrs", "none"])
def test_a_dictionary_may_have_every_label_with_every_arity(tmp_path, binarization):
    (tmp_path / "train.nl").write_text("a\nb\n", encoding="utf-8")
    (tmp_path / "train.lf").write_text("( f x y )\n( g x )\n", encoding="utf-8")
    data = tmp_path / "bin"
    preprocess(tmp_path, data, "--all-arities", "--binarization", binarization, splits=("train",))
    dictionary = Dictionary.load(str(data / "dict.lf.txt"))
    made = {f"{label}^{arity}" for label in "fgxy" for arity in range(3)}
    assert {symbol for symbol in dictionary.symbols if "^" in symbol} == made
    assert stored_programs(data, "train") == programs(tmp_path, "train") and check_folder(data) == []
    (tmp_path / "test.nl").write_text("a\n", encoding="utf-8")
    (tmp_path / "test.lf").write_text("( x ( f y ) g )\n", encoding="utf-8")
    dictionaries = ("--srcdict", data / "dict.nl.txt", "--tgtdict", data / "dict.lf.txt")
    preprocess(tmp_path, data, *dictionaries, "--binarization", binarization, splits=("test",))
    assert stored_programs(data, "test") == programs(tmp_path, "test")


def test_splits_are_added_with_the_dictionaries_of_the_folder(corpus, tmp_path):
    data = tmp_path / "bin"
    preprocess(corpus, data, splits=("train", "valid"))
    dictionaries = ("--srcdict", data / "dict.nl.txt", "--tgtdict", data / "dict.lf.txt")
    preprocess(corpus, data, *dictionaries, splits=("test",))
    assert sorted(Manifest.load(data).symbols["lf"].splits) == ["test", "train", "valid"]
    with pytest.raises(errors.DataFolderError, match="traversal: dfs and bfs"):
        preprocess(corpus, data, *dictionaries, "--traversal", "bfs", splits=("test",))
    with pytest.raises(errors.DictionaryMismatchError, match="--binarization lcrs"):
        preprocess(corpus, tmp_path / "other", *dictionaries, "--binarization", "none", splits=("test",))


@pytest.mark.parametrize(
    ("line", "error", "words"),
    [
        ("( f ( g x )", errors.NotationError, "valid.lf:2"),
        ("( f x ) ( g x )", errors.MultipleRootsError, "valid.lf:2"),
        ("", errors.EmptySymbolTreeError, "valid.lf:2"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_written(corpus, tmp_path, line, error, words):
    for split in ("train", "valid"):
        for lang in ("nl", "lf"):
            text = read_lines(corpus / f"{split}.{lang}")
            if (split, lang) == ("valid", "lf"):
                text[1] = line
            write_lines(tmp_path / f"{split}.{lang}", text)
    with pytest.raises(error, match=words) as caught:
        preprocess(tmp_path, tmp_path / "bin", splits=("train", "valid"))
    assert caught.value.line == 2 and caught.value.path.endswith("valid.lf")
    assert not (tmp_path / "bin").exists()


def test_a_wider_tree_than_the_dictionary_knows(corpus, tmp_path):
    data = tmp_path / "bin"
    preprocess(corpus, data, "--binarization", "none")
    (tmp_path / "test.nl").write_text("a\nb\n", encoding="utf-8")
    (tmp_path / "test.lf").write_text("( all rivers )\n( and a b c d )\n", encoding="utf-8")
    dictionaries = ("--srcdict", data / "dict.nl.txt", "--tgtdict", data / "dict.lf.txt")
    with pytest.raises(errors.ArityMismatchError, match="test.lf:2.*'and' has 4 children"):
        preprocess(tmp_path, tmp_path / "other", *dictionaries, "--binarization", "none", splits=("test",))


def test_a_deep_tree_is_named(corpus, tmp_path):
    (tmp_path / "train.nl").write_text("a\nb\n", encoding="utf-8")
    (tmp_path / "train.lf").write_text("( f x )\n" + "( f " * 40 + "x" + " )" * 40 + "\n", encoding="utf-8")
    log = preprocess(tmp_path, tmp_path / "bin", splits=("train",))
    assert "train.lf:2: a symbol is 40 levels below the root" in log
    assert Manifest.load(tmp_path / "bin").symbols["lf"].splits["train"].depth == 40


def test_a_dictionary_of_words_is_refused(corpus, tmp_path):
    run("preprocess", "-s", "nl", "-t", "lf", "--trainpref", corpus / "train", "--destdir", tmp_path / "plain")
    with pytest.raises(errors.DictionaryMismatchError, match="<unk:0>"):
        preprocess(corpus, tmp_path / "bin", "--tgtdict", tmp_path / "plain/dict.lf.txt", splits=("train",))


def test_constituency_needs_a_parser(corpus, tmp_path):
    with pytest.raises(errors.InputError, match="--tree-parser"):
        preprocess(corpus, tmp_path / "bin", "--source-modality", "constituency")


def test_parses_become_symbols(corpus, tmp_path):
    data = tmp_path / "bin"
    preprocess(corpus, data, "--source-modality", "constituency", "--tree-parser", "right-branching")
    record = Manifest.load(data).symbols["nl"]
    assert record.modality == "constituency" and record.options.name == "right-branching"
    words = list(token_words(data / "test.nl-lf.nl", Dictionary.load(str(data / "dict.nl.txt"))))
    request = (corpus / "test.nl").read_text(encoding="utf-8").split("\n")[0]
    tree = record.encoding.decode(words[0])
    assert " ".join(tree.leaves()) == request


def test_lines_that_are_trees_are_not_parsed(corpus, tmp_path):
    with pytest.raises(errors.InputError, match="trees already"):
        preprocess(corpus, tmp_path / "bin", "--tree-parser", "right-branching", "--tree-sides", "target")


def test_trees_are_written_back(corpus, tmp_path):
    preprocess(corpus, tmp_path / "bin")
    assert export.main([str(tmp_path / "bin"), "--split", "test", "--output", str(tmp_path / "again.lf")]) == 0
    assert (tmp_path / "again.lf").read_bytes() == (corpus / "test.lf").read_bytes()
    assert export.main([str(tmp_path / "bin"), "--split", "test3"]) == 1
