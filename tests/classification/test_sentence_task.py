"""Sentences and pairs of them, from lines with their labels to batches; what is wrong with such lines is named."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
import torch
from fairseq import options
from fairseq_cli import preprocess

from tests.data_bin.corpora import read_lines, write_lines
from tree_fairseq import errors
from tree_fairseq.classification.sentence_task import TreeSentenceClassificationConfig, TreeSentenceClassificationTask
from tree_fairseq.commands.check import check_folder

WORDS = ["a", "good", "film", "is", "not", "so", "über", "bad", "."]
SIZES = {"train": 17, "valid": 7}
KINDS = {"sentence": (), "pair": ("--input-format", "pair"), "rated": ("--input-format", "pair", "--regression")}


def rows(kind: str, size: int, seed: int = 0) -> list[str]:
    chooser = random.Random(f"{kind}{seed}")
    drawn = []
    for line in range(size):
        texts = [
            " ".join(chooser.choices(WORDS, k=chooser.randint(1, 6))) for _ in range(1 if kind == "sentence" else 2)
        ]
        drawn.append(
            "\t".join([*texts, f"{chooser.uniform(-1, 5):.3f}" if kind == "rated" else ("pos", "neg", "10")[line % 3]])
        )
    return drawn


def binarize(*arguments: object) -> None:
    parser = options.get_preprocessing_parser()
    preprocess.main(parser.parse_args(["--task", "tree_sentence_classification", *map(os.fspath, map(str, arguments))]))


def write_kind(folder, kind: str, **splits):
    for split, size in splits.items():
        write_lines(folder / f"{split}.tsv", rows(kind, size, len(split)))
    return folder


def preprocessed(folder, kind: str, *flags: object):
    text = write_kind(folder / "text", kind, **SIZES)
    binarize(
        *KINDS[kind], "--trainpref", text / "train", "--validpref", text / "valid", "--destdir", folder / "data", *flags
    )
    return text, folder / "data"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {kind: preprocessed(tmp_path_factory.mktemp(kind), kind) for kind in KINDS}


def task_of(data, **changes) -> TreeSentenceClassificationTask:
    defaults = {"train_subset": "train", "dataset_impl": None}
    return TreeSentenceClassificationTask.setup_task(
        TreeSentenceClassificationConfig(data=str(data), **{**defaults, **changes})
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("split", SIZES)
def test_batches_are_the_lines(folders, kind, split):
    text, data = folders[kind]
    task = task_of(data)
    task.load_dataset(split)
    dataset, lines = task.dataset(split), read_lines(text / f"{split}.tsv")
    batch = dataset.collater([dataset[index] for index in range(len(lines))])
    assert sorted(batch["id"].tolist()) == list(range(len(lines))) and batch["nsentences"] == len(lines)
    inputs = batch["net_input"]
    assert (inputs["src_lengths"].diff() <= 0).all() and batch["ntokens"] == int(inputs["src_lengths"].sum())
    symbols, eos, pad = task.source_dictionary.symbols, task.source_dictionary.eos(), task.source_dictionary.pad()
    for row, number in enumerate(batch["id"].tolist()):
        *texts, label = lines[number].split("\t")
        tokens = [symbols[token] for token in inputs["src_tokens"][row].tolist() if token != pad]
        assert tokens == " </s> ".join([*texts, ""]).split()
        assert inputs["src_tokens"][row].eq(eos).sum() == len(texts)
        target = batch["target"][row].item()
        assert target == pytest.approx(float(label)) if kind == "rated" else task.classes[target] == label
    assert batch["target"].dtype == (torch.float32 if kind == "rated" else torch.int64)
    assert task.num_classes == (1 if kind == "rated" else 3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_is_whole(folders, kind):
    assert check_folder(folders[kind][1]) == []


@pytest.mark.parametrize("kind", KINDS)
def test_splits_are_added_with_the_dictionaries_of_a_folder(tmp_path, kind):
    text, data = preprocessed(tmp_path, kind)
    write_lines(text / "test.tsv", rows(kind, 5, seed=9))
    given = ("--srcdict", data / "dict.text.txt", "--tgtdict", data / "dict.class.txt")
    binarize(*KINDS[kind], *given, "--testpref", text / "test", "--destdir", data)
    task = task_of(data)
    for split, size in {**SIZES, "test": 5}.items():
        task.load_dataset(split)
        assert len(task.dataset(split)) == size
    assert check_folder(data) == []
    if kind == "sentence":
        with pytest.raises(errors.DataFolderError, match="--input-format sentence and pair"):
            write_lines(text / "test.tsv", rows("pair", 5))
            binarize(*KINDS["pair"], *given, "--testpref", text / "test", "--destdir", data)


@pytest.mark.parametrize(
    ("kind", "line", "error", "message"),
    [
        ("pair", "good film pos", errors.LabelColumnError, "0 tabs in a line where 2 are expected"),
        (
            "pair",
            "good film\tpos",
            errors.LabelColumnError,
            "1 tabs in a line where 2 are expected.*a text, a tab, a text, a tab and a class",
        ),
        ("pair", "good\t \tpos", errors.EmptyDocumentError, "sentence 2 of the pair has no text"),
        ("sentence", "a </s> b\tpos", errors.LabelColumnError, "the word </s>, which ends sentences"),
        ("rated", "a\tb\tfive", errors.ClassError, "'five' is not a number"),
        ("rated", "a\tb\tnan", errors.ClassError, "'nan' is not a number"),
    ],
)  # fmt: skip
def test_malformed_lines_are_named(tmp_path, kind, line, error, message):
    write_lines(tmp_path / "train.tsv", [*rows(kind, 6), line])
    with pytest.raises(error, match=message) as raised:
        binarize(*KINDS[kind], "--trainpref", tmp_path / "train", "--destdir", tmp_path / "data")
    assert str(raised.value).startswith(f"{tmp_path / 'train.tsv'}:7")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--tree-parser", "right-branching"), "--tree-parser does not work with"),
        (("--input-format", "trees"), "--input-format trees does not work with"),
        (("--only-source",), "--only-source does not work"),
        (("--joined-dictionary",), "--joined-dictionary does not work with --task tree_sentence_classification"),
    ],
)
def test_flags_that_do_not_go_together(tmp_path, flags, message):
    write_kind(tmp_path, "sentence", train=6)
    with pytest.raises(errors.InputError, match=message):
        binarize("--trainpref", tmp_path / "train", "--destdir", tmp_path / "data", *flags)


def test_regression_needs_the_task(tmp_path):
    parser = options.get_preprocessing_parser()
    for flags in (("--regression",), ("--input-format", "pair")):
        args = [
            "--task", "tree_classification", "--tree-parser", "right-branching", "--trainpref", str(tmp_path),
            "--destdir", str(tmp_path / "d"),
        ]  # fmt: skip
        with pytest.raises(errors.InputError, match="does not work with --task tree_classification"):
            preprocess.main(parser.parse_args([*args, *flags]))


# The task


def test_long_examples_are_named(folders):
    text, data = folders["sentence"]
    counts = [len(line.split("\t")[0].split()) + 1 for line in read_lines(text / "train.tsv")]
    limit = max(counts) - 1
    with pytest.raises(
        errors.LongSentenceError, match=rf"train:{int(np.argmax(counts)) + 1}: a text of {max(counts)} tokens"
    ):
        task_of(data, max_source_positions=limit).load_dataset("train")
    with pytest.raises(errors.LongSentenceError, match="input:1: a text of 5 tokens"):
        task_of(data, max_source_positions=4).get_interactive_tokens_and_lengths(["a a a a"], lambda line: line)


@pytest.mark.parametrize(
    ("kind", "line", "error", "message"),
    [
        ("pair", "a good film", errors.LabelColumnError, "input:2: 0 tabs in a line where 1 are expected"),
        ("pair", "a\tb\tc", errors.LabelColumnError, "input:2: 2 tabs in a line where 1 are expected"),
        ("pair", "a\t", errors.EmptyDocumentError, "input:2: sentence 2"),
        ("sentence", "a\tb", errors.LabelColumnError, "input:2: 1 tabs in a line where 0 are expected"),
        ("sentence", "", errors.EmptyDocumentError, "input:2: there is no text"),
    ],
)
def test_new_lines_that_are_no_examples(folders, kind, line, error, message):
    task = task_of(folders[kind][1])
    with pytest.raises(error, match=message):
        task.get_interactive_tokens_and_lengths(["a\tb" if kind == "pair" else "a", line], lambda text: text)


def test_folders_of_the_other_kind(folders, tmp_path):
    from tests.end_to_end.tiny_classes import task_of as tree_task_of

    with pytest.raises(
        errors.DataFolderError, match="--task tree_sentence_classification, this is --task tree_classification"
    ):
        tree_task_of(folders["pair"][1])
    with pytest.raises(errors.MissingTreesError, match="has examples for train, valid, but not for test"):
        task_of(folders["pair"][1]).load_dataset("test")


def test_a_label_that_is_no_number_any_more(folders):
    task = task_of(folders["rated"][1])
    task.load_dataset("valid")
    dataset = task.dataset("valid")
    dataset.targets = [torch.tensor([task.target_dictionary.index("."), task.target_dictionary.eos()])] * len(dataset)
    with pytest.raises(errors.CorruptFileError, match="the label of example 3 is not a number"):
        dataset[2]
