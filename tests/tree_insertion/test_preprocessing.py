"""``fairseq-preprocess --task tree_insertion``: labels, dictionary, trajectories, record, check and export."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairseq.data import Dictionary

from tests.data_bin.corpora import read_lines, write_lines
from tests.end_to_end.commands import run
from tests.end_to_end.tiny_programs import write_corpus
from tree_fairseq.commands import export
from tree_fairseq.commands.check import check_folder
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.token_files import load_dictionary, token_words
from tree_fairseq.errors import DataFolderError, InputError
from tree_fairseq.tree_insertion.dictionary import words_of
from tree_fairseq.tree_insertion.folder import InsertionRecord
from tree_fairseq.tree_insertion.store import InsertionStore
from tree_fairseq.tree_insertion.target import ROOT_LABEL, TargetTree
from tree_fairseq.trees.notations import notation_named

SPLITS = ("train", "valid", "test")
LANGUAGES = ("-s", "nl", "-t", "lf")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("programs"), (60, 10, 10))


@pytest.fixture(scope="module")
def folder(corpus, tmp_path_factory):
    return preprocess(corpus, tmp_path_factory.mktemp("data") / "bin", "--workers", 1)


def preprocess(corpus: Path, destination: Path, *arguments, splits=SPLITS) -> Path:
    prefixes = [text for split in splits for text in (f"--{split}pref", corpus / split)]
    run("preprocess", "--task", "tree_insertion", *LANGUAGES, *prefixes, "--destdir", destination, *arguments)
    return destination


def exported(folder: Path, split: str, output: Path) -> list[str]:
    assert export.main([str(folder), "--split", split, "--output", str(output)]) == 0
    return read_lines(output)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file() and path.suffix in (".bin", ".idx", ".txt")
    }


def test_labels_and_parents_are_the_trees(corpus, folder, tmp_path):
    assert check_folder(folder) == []
    for split in SPLITS:
        lines = read_lines(corpus / f"{split}.lf")
        assert exported(folder, split, tmp_path / split) == lines
        words = list(token_words(folder / f"{split}.nl-lf.lf", load_dictionary(folder, "lf")))
        assert words == [words_of(notation_named("bracket").read(line)) for line in lines]
        store = InsertionStore(folder / f"{split}.nl-lf.lf.insertion")
        for index, line in enumerate(lines):
            target = TargetTree.of(notation_named("bracket").read(line))
            assert store[index].parents.tolist() == target.parents and store[index].trajectory_count == 5
            assert all(path.steps[0] == 0 < path.steps[1:].min() for path in map(store[index].trajectory, range(5)))


def test_the_dictionary_begins_with_the_root(folder):
    dictionary = Dictionary.load(str(folder / "dict.lf.txt"))
    assert dictionary[dictionary.nspecial] == ROOT_LABEL and dictionary.count[dictionary.nspecial] == 60
    assert {"all::1", "in::1"} <= set(dictionary.symbols)


def test_the_record_says_how_it_was_made(corpus, folder):
    record = Manifest.load(folder).section(InsertionRecord)
    assert (record.lang, record.notation, record.oracles) == ("lf", "bracket", ["centrality"])
    assert (record.trajectories, record.trajectory_count) == (5, 5)
    train = record.splits["train"]
    trees = [TargetTree.of(notation_named("bracket").read(line)) for line in read_lines(corpus / "train.lf")]
    assert (train.lines, train.distinct) == (60, len(set(read_lines(corpus / "train.lf")))) and train.unknown == 0
    assert train.nodes == sum(len(tree) - 1 for tree in trees) and train.largest == max(len(tree) - 1 for tree in trees)
    assert train.files[-2:] == ["train.nl-lf.lf.insertion.bin", "train.nl-lf.lf.insertion.idx"]


def test_workers_change_nothing(corpus, folder, tmp_path):
    assert contents(preprocess(corpus, tmp_path / "bin", "--workers", 2)) == contents(folder)


@pytest.mark.parametrize("oracle, count", [("centrality", 1), ("program", 2)])
def test_fewer_trajectories(corpus, tmp_path, oracle, count):
    data = preprocess(corpus, tmp_path / "bin", "--insertion-oracle", oracle, "--trajectories", count)
    record = Manifest.load(data).section(InsertionRecord)
    assert (record.oracles, record.trajectory_count) == ([oracle], count)
    assert check_folder(data) == []
    assert exported(data, "valid", tmp_path / "valid") == read_lines(corpus / "valid.lf")


def test_other_notations(tmp_path):
    corpus = tmp_path / "text"
    lines = {
        "train": ["answer(count(state(all)))", "answer(state(x))"],
        "valid": ["answer(state(all))"],
        "test": ["answer(x)"],
    }
    for split, forms in lines.items():
        write_lines(corpus / f"{split}.nl", ["how many"] * len(forms))
        write_lines(corpus / f"{split}.lf", forms)
    data = preprocess(corpus, tmp_path / "bin", "--target-notation", "funql")
    assert exported(data, "train", tmp_path / "train") == [line.replace(",", ", ") for line in lines["train"]]


def test_a_split_can_be_added_later_and_made_again(corpus, folder, tmp_path):
    data = preprocess(corpus, tmp_path / "bin", splits=("train", "valid"))
    dictionaries = ("--srcdict", data / "dict.nl.txt", "--tgtdict", data / "dict.lf.txt")
    for _ in range(2):
        preprocess(corpus, data, *dictionaries, splits=("test",))
    assert set(Manifest.load(data).section(InsertionRecord).splits) == set(SPLITS) and check_folder(data) == []
    assert contents(data) == contents(folder)
    with pytest.raises(DataFolderError, match="trajectories: 5 and 2"):
        preprocess(corpus, data, *dictionaries, "--trajectories", 2, splits=("test",))


def test_text_written_over_a_split_takes_its_trajectories_away(corpus, tmp_path):
    data = preprocess(corpus, tmp_path / "bin")
    dictionaries = ("--srcdict", data / "dict.nl.txt", "--tgtdict", data / "dict.lf.txt")
    flags = ("--tree-parser", "right-branching", "--destdir", data, *dictionaries)
    output = run("preprocess", *LANGUAGES, "--testpref", corpus / "test", *flags)
    assert "the old ones are forgotten" in output
    assert set(Manifest.load(data).section(InsertionRecord).splits) == {"train", "valid"}


def test_sources_may_have_trees(corpus, tmp_path):
    data = preprocess(corpus, tmp_path / "bin", "--tree-parser", "right-branching")
    manifest = Manifest.load(data)
    assert manifest.sides["nl"].identity and (data / "train.nl-lf.nl.tree.bin").exists()
    assert check_folder(data) == []
    for side, expected in (("source", None), ("target", corpus / "train.lf")):
        lines = list(export.find_export(data, side)(data, "train"))
        assert expected is None or lines == read_lines(expected)
    with pytest.raises(InputError, match="both sides"):
        export.find_export(data)


def test_only_dictionaries(corpus, folder, tmp_path):
    data = preprocess(corpus, tmp_path / "bin", "--dict-only")
    assert (data / "dict.lf.txt").read_bytes() == (folder / "dict.lf.txt").read_bytes()
    assert not list(data.glob("*.bin")) and Manifest.load(data).section(InsertionRecord).splits == {}


def test_raw_text(corpus, folder, tmp_path):
    data = preprocess(corpus, tmp_path / "bin", "--dataset-impl", "raw")
    assert exported(data, "test", tmp_path / "test") == read_lines(corpus / "test.lf")
    name = "test.nl-lf.lf.insertion.bin"
    assert (data / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--target-modality", "tree"), "--target-modality does not work with .*; the targets are"),
        (("--source-modality", "tree"), "--source-modality does not work with"),
        (("--joined-dictionary",), "--joined-dictionary"),
        (("--tree-parser", "right-branching", "--tree-sides", "source,target"), "--tree-sides target"),
    ],
)
def test_arguments_that_do_not_go_together(corpus, tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
        preprocess(corpus, tmp_path / "bin", *arguments)
    assert not (tmp_path / "bin").exists()


def test_flags_of_insertions_need_the_task(corpus, tmp_path):
    with pytest.raises(InputError, match="--insertion-oracle goes with --task tree_insertion only"):
        run("preprocess", *LANGUAGES, "--destdir", tmp_path / "bin", "--insertion-oracle", "program")
