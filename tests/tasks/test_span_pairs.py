"""Data sets of the task: trees stay with their sentences in every order that fairseq makes."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import fairseq
import numpy as np
import pytest
import torch
from fairseq import utils
from fairseq.data import data_utils
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from tests.end_to_end.commands import prefixes_of, run
from tests.end_to_end.fixtures import TASK, preprocess
from tests.end_to_end.tiny_corpus import leaves, make_pairs, write_corpus, write_pairs
from tree_fairseq.errors import CorruptFileError, DataFolderError, DictionaryMismatchError, MissingTreesError
from tree_fairseq.nn.tree_batch import as_stored
from tree_fairseq.tasks.pair_dataset import CarriedInput, NewLines
from tree_fairseq.tasks.translation import TranslationWithTreesConfig, TreeTranslationTask
from tree_fairseq.trees.bracket import read_forest
from tree_fairseq.trees.spans import encode

DEFAULTS = {"source_lang": "en", "target_lang": "de", "train_subset": "train", "dataset_impl": None}


def task_of(data: object, **options) -> TreeTranslationTask:
    config = TranslationWithTreesConfig(data=str(data), **{**DEFAULTS, "required_seq_len_multiple": 1, **options})
    return TreeTranslationTask.setup_task(config)


def stock_dataset(data: object, split: str, **options):
    config = TranslationConfig(data=str(data), **{**DEFAULTS, "required_seq_len_multiple": 1, **options})
    task = TranslationTask.setup_task(config)
    task.load_dataset(split)
    return task.dataset(split)


def load(data: object, split: str, epoch: int = 1, combine: bool = False, **options):
    task = task_of(data, **options)
    task.load_dataset(split, epoch=epoch, combine=combine)
    return task, task.dataset(split)


def assert_trees_belong(task, dataset, trees: list[str], batch_size: int = 5) -> None:
    """Asserts that every row of every batch has the words and the reduced tree of its line."""
    with data_utils.numpy_seed(3):
        batches = dataset.batch_by_size(dataset.ordered_indices(), max_sentences=batch_size)
    assert sorted(np.concatenate(batches)) == list(range(len(trees)))
    for indices in batches:
        batch = dataset.collater([dataset[index] for index in indices])
        source_spans = batch["net_input"]["source_spans"]
        for row, line in enumerate(batch["id"].tolist()):
            tokens = utils.strip_pad(batch["net_input"]["src_tokens"][row], task.source_dictionary.pad())
            words = task.source_dictionary.string(tokens)
            assert words == leaves(trees[line])
            read = task.source_side.read_tree
            expected = read(as_stored(encode(read_forest(trees[line])), read.labels))
            for name in ("label", "start", "end", "depth"):
                column = source_spans[name][row].tolist()
                assert column[: len(expected)] == getattr(expected, name).tolist()
            assert not (source_spans["end"] - source_spans["start"])[row, len(expected) :].any()


TRAIN = [pair.tree for pair in make_pairs(160, 0)]
VALID = [pair.tree for pair in make_pairs(16, 1)]


@pytest.mark.parametrize("left_pad_source", [True, False])
def test_trees_follow_their_sentences(data_bin, left_pad_source):
    task, dataset = load(data_bin, "train", left_pad_source=left_pad_source)
    assert_trees_belong(task, dataset, TRAIN)


def test_order_and_batches_equal_those_of_fairseq(data_bin):
    _, dataset = load(data_bin, "train")
    stock = stock_dataset(data_bin, "train")
    indices = []
    for either in (dataset, stock):
        with data_utils.numpy_seed(1):
            indices.append(either.ordered_indices())
    np.testing.assert_array_equal(*indices)
    batches = [either.batch_by_size(indices[0], 100, None, 8) for either in (dataset, stock)]
    assert [batch.tolist() for batch in batches[0]] == [batch.tolist() for batch in batches[1]]
    assert [dataset.num_tokens(index) for index in range(160)] == [stock.num_tokens(index) for index in range(160)]
    assert dataset.size(3) == stock.size(3) and all(map(np.array_equal, dataset.sizes, stock.sizes))
    kept = [either.filter_indices_by_size(indices[0], (8, 8)) for either in (dataset, stock)]
    np.testing.assert_array_equal(kept[0][0], kept[1][0])
    assert kept[0][1] == kept[1][1] != []


def test_a_test_set_keeps_its_last_batch(data_bin):
    """fairseq 0.12.3 drops a last batch that is not a multiple of --required-batch-size-multiple, 8 by default."""
    for split, is_kept in (("valid", True), ("train", fairseq.__version__ == "0.12.2")):
        _, dataset = load(data_bin, split)
        batches = dataset.batch_by_size(np.arange(13), max_sentences=8, required_batch_size_multiple=8)
        assert [len(batch) for batch in batches] == ([8, 5] if is_kept else [8])
        assert np.concatenate(batches).tolist() == list(range(13 if is_kept else 8))


def test_an_empty_split_has_no_batches(data_bin):
    _, dataset = load(data_bin, "valid")
    assert dataset.batch_by_size(np.zeros(0, np.int64), max_tokens=100, required_batch_size_multiple=8) == []
    assert dataset.collater([]) == {}


def test_a_data_set_can_be_pickled_for_workers(data_bin):
    task, dataset = load(data_bin, "valid")
    assert_trees_belong(task, pickle.loads(pickle.dumps(dataset)), VALID)


# Folders


@pytest.fixture(scope="module")
def two_folders(corpus, data_bin, tmp_path_factory) -> tuple[Path, Path]:
    """A second folder with the dictionaries of the first and its own training trees."""
    source = tmp_path_factory.mktemp("second")
    write_pairs(source / "train", make_pairs(24, 40))
    for split in ("valid", "test"):
        write_pairs(source / split, make_pairs(8, 41))
    dictionaries = ("--srcdict", data_bin / "dict.en.txt", "--tgtdict", data_bin / "dict.de.txt")
    preprocess(source, source / "data-bin", *dictionaries)
    return data_bin, source / "data-bin"


def test_folders_alternate_by_epoch(two_folders):
    data = ":".join(map(str, two_folders))
    for epoch, trees in ((1, TRAIN), (2, [pair.tree for pair in make_pairs(24, 40)]), (3, TRAIN)):
        task, dataset = load(data, "train", epoch=epoch)
        assert_trees_belong(task, dataset, trees)
    task, dataset = load(data, "valid", epoch=2)
    assert_trees_belong(task, dataset, VALID)


def test_parts_of_a_split_are_joined_and_the_first_is_upsampled(two_folders, tmp_path):
    folder = shutil.copytree(two_folders[0], tmp_path / "data-bin")
    source = tmp_path / "text"
    source.mkdir()
    write_pairs(source / "more", make_pairs(16, 50))
    run(
        "preprocess", *TASK, "-s", "en", "-t", "de", "--validpref", f"{source / 'more'},{source / 'more'}",
        "--destdir", tmp_path / "more", "--srcdict", folder / "dict.en.txt", "--tgtdict", folder / "dict.de.txt",
        "--tree-parser", "brackets",
    )  # fmt: skip
    added = [pair.tree for pair in make_pairs(16, 50)]
    task, dataset = load(tmp_path / "more", "valid", combine=True, upsample_primary=3)
    assert_trees_belong(task, dataset, added * 3 + added)
    task, dataset = load(tmp_path / "more", "valid", combine=True)
    assert_trees_belong(task, dataset, added * 2)


def test_the_direction_may_be_reversed(corpus, tmp_path):
    """Trees are kept for the target, and the target becomes the source."""
    flags = ("--destdir", tmp_path / "reversed", "--tree-parser", "brackets", "--tree-sides", "target")
    run("preprocess", *TASK, "-s", "de", "-t", "en", *prefixes_of(corpus), *flags)
    task, dataset = load(tmp_path / "reversed", "train")
    assert_trees_belong(task, dataset, TRAIN)
    with pytest.raises(MissingTreesError, match="de"):
        load(tmp_path / "reversed", "train", source_lang="de", target_lang="en")


# Refusals


def test_truncated_sources_are_refused(data_bin):
    with pytest.raises(DataFolderError, match="--truncate-source"):
        task_of(data_bin, truncate_source=True)


def test_a_folder_without_trees_is_refused(corpus, tmp_path):
    text = write_corpus(tmp_path / "text", bracketed=False)
    run("preprocess", "-s", "en", "-t", "de", *prefixes_of(text), "--destdir", tmp_path / "stock")
    with pytest.raises(MissingTreesError, match="tree-fairseq annotate"):
        task_of(tmp_path / "stock")


def test_a_split_without_trees_is_refused(data_bin, tmp_path):
    folder = shutil.copytree(data_bin, tmp_path / "data-bin")
    for path in folder.glob("test.*.tree.*"):
        path.unlink()
    with pytest.raises(DataFolderError, match="test"):
        load(folder, "test")


def test_trees_of_another_split_are_refused(data_bin, tmp_path):
    folder = shutil.copytree(data_bin, tmp_path / "data-bin")
    for end in ("bin", "idx"):
        shutil.copy(folder / f"test.en-de.en.{end}", folder / f"train.en-de.en.{end}")
        shutil.copy(folder / f"test.en-de.de.{end}", folder / f"train.en-de.de.{end}")
    with pytest.raises(CorruptFileError, match="train"):
        load(folder, "train")


def test_folders_with_different_labels_are_refused(data_bin, tmp_path):
    write_pairs(
        tmp_path / "train", [pair._replace(tree=pair.tree.replace("(S ", "(CLAUSE ")) for pair in make_pairs(8, 3)]
    )
    for split in ("valid", "test"):
        write_pairs(tmp_path / split, make_pairs(8, 4))
    # Only the dictionaries of words are copied, so that labels are counted anew.
    shutil.copy(data_bin / "dict.en.txt", tmp_path / "words.en.txt")
    shutil.copy(data_bin / "dict.de.txt", tmp_path / "words.de.txt")
    preprocess(
        tmp_path, tmp_path / "data-bin", "--srcdict", tmp_path / "words.en.txt", "--tgtdict", tmp_path / "words.de.txt"
    )
    with pytest.raises(DictionaryMismatchError, match="--srcdict"):
        load(f"{data_bin}:{tmp_path / 'data-bin'}", "train")


# New text


def test_new_lines_are_read_like_the_data(data_bin):
    task, valid = load(data_bin, "valid")
    tokens, lengths = task.get_interactive_tokens_and_lengths(VALID, lambda line: pytest.fail("a tree was encoded"))
    assert isinstance(tokens, NewLines)
    dataset = task.build_dataset_for_inference(tokens, lengths)
    assert_trees_belong(task, dataset, VALID)
    for index in range(len(VALID)):
        assert torch.equal(dataset[index]["source"].long(), valid[index]["source"].long())
    batch = dataset.collater([dataset[index] for index in range(4)])
    assert batch["constraints"] == {"source_spans": batch["net_input"]["source_spans"]}
    assert isinstance(batch["constraints"], CarriedInput)


def test_the_interactive_command_moves_trees_to_the_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "current_device", lambda: "meta")
    moved = CarriedInput(numbers=torch.arange(2), source_spans={"start": torch.zeros(2, 3)}).cuda()
    assert isinstance(moved, CarriedInput)
    assert moved["numbers"].is_meta and moved["source_spans"]["start"].is_meta


def test_constraints_are_refused(data_bin):
    task = task_of(data_bin)
    tokens, lengths = task.get_interactive_tokens_and_lengths(VALID[:1], str)
    with pytest.raises(DataFolderError, match="--constraints"):
        task.build_dataset_for_inference(tokens, lengths, constraints=torch.zeros(1, 1))
