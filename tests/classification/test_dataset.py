"""The data sets of the task: every document stays with its trees and classes, whatever fairseq does to the order."""

from __future__ import annotations

import logging
import pickle
import random

import numpy as np
import pytest
import torch
from fairseq import utils
from fairseq.data import data_utils

from tests.classification.examples import classify, write_trees
from tests.classification.test_sentence_trees import class_id
from tests.classification.test_sentence_trees import twin as rows_twin
from tests.data_bin.corpora import prefixes, read_lines, write_lines
from tests.end_to_end.tiny_classes import load, task_of
from tree_fairseq.classification.folder import IGNORE
from tree_fairseq.errors import CorruptFileError, LongSentenceError, MissingTreesError
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.trees.bracket import read_tree, write_forest

SIZES = {"train": 61, "valid": 9, "test": 8}


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    return write_trees(tmp_path_factory.mktemp("trees"), **SIZES)


@pytest.fixture(scope="module")
def tree_data(trees, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "trees"
    classify("--input-format", "trees", *prefixes(trees, *SIZES), "--destdir", folder)
    return folder


def document(chooser: random.Random) -> str:
    """Sentences of up to six words; the last one has no point, and often one word."""
    words = ("a", "good", "film", "not", "so", "bad")
    sentences = [" ".join(chooser.choices(words, k=chooser.randint(1, 5))) for _ in range(chooser.randint(0, 5))]
    return " . ".join([*sentences, " ".join(chooser.choices(words, k=chooser.randint(1, 3)))])


def sentences_of(text: str) -> list[list[str]]:
    *others, last = text.split(" . ")
    return [*([*sentence.split(), "."] for sentence in others), last.split()]


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents")
    chooser = random.Random(3)
    for split, count in SIZES.items():
        write_lines(
            folder / f"{split}.tsv", [f"{document(chooser)}\t{('pos', 'neg')[line % 2]}" for line in range(count)]
        )
    return folder


@pytest.fixture(scope="module")
def document_data(documents, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "documents"
    classify(
        *prefixes(documents, *SIZES), "--destdir", folder, "--tree-parser", "right-branching", "--tree-ssplit", "punct"
    )
    return folder


def batches_of(dataset, **limits):
    with data_utils.numpy_seed(3):
        found = dataset.batch_by_size(dataset.ordered_indices(), **limits)
    assert sorted(np.concatenate(found)) == list(range(len(dataset)))
    return [dataset.collater([dataset[index] for index in indices]) for indices in found]


def words(task, tokens):
    return task.source_dictionary.string(utils.strip_pad(tokens, task.source_dictionary.pad())).split()


@pytest.mark.parametrize("limits", [{"max_sentences": 7}, {"max_tokens": 30}])
def test_trees_and_classes_follow_their_words(trees, tree_data, limits):
    task, dataset = load(tree_data, "train")
    lines = [read_tree(line) for line in read_lines(trees / "train.trees")]

    def offset(name):
        return name if name == IGNORE else task.classes.index(str(name))

    for batch in batches_of(dataset, **limits):
        rows = batch["net_input"]["sentence_trees"]
        assert torch.equal(rows["tokens"], batch["net_input"]["src_tokens"])
        assert rows["document"].tolist() == list(range(len(batch["id"])))
        for row, index in enumerate(batch["id"].tolist()):
            tree = lines[index]
            nodes, leaves = rows_twin(tree)
            assert words(task, batch["net_input"]["src_tokens"][row]) == tree.leaves()
            assert task.classes[batch["target"][row]] == tree.label
            columns = [rows[name][row, : len(nodes)].tolist() for name in ("start", "end", "depth")]
            node_target, leaf_target = batch["node_target"][row].tolist(), batch["leaf_target"][row].tolist()
            assert list(zip(*columns, node_target)) == [(*node[:3], offset(node[3])) for node in nodes]
            assert leaf_target[: len(leaves)] == [offset(name) for name in leaves]
            assert set(node_target[len(nodes) :] + leaf_target[len(leaves) :]) <= {IGNORE}
            assert [*node_target[: len(nodes)], *leaf_target][0] == batch["target"][row] == offset(class_id(tree.label))


def test_sentences_of_documents_are_rows(documents, document_data):
    task, dataset = load(document_data, "train")
    lines = [line.split("\t") for line in read_lines(documents / "train.tsv")]
    for batch in batches_of(dataset, max_tokens=100):
        rows = batch["net_input"]["sentence_trees"]
        assert batch.keys() == {"id", "nsentences", "ntokens", "net_input", "target"}
        found, position = [], 0
        for row, number in enumerate(rows["document"].tolist()):
            position = position if row and rows["document"][row - 1] == number else 0
            own = words(task, rows["tokens"][row])
            whole = words(task, batch["net_input"]["src_tokens"][number])
            assert whole[position : position + len(own)] == own
            if len(own) > 1:
                assert (rows["start"][row, 0], rows["end"][row, 0], rows["depth"][row, 0]) == (0, len(own), 0)
            found.append((number, position, own))
            position += len(own)
        expected = []
        for number, index in enumerate(batch["id"].tolist()):
            text, name = lines[index]
            assert task.classes[batch["target"][number]] == name
            position = 0
            for sentence in sentences_of(text):
                expected.append((number, position, sentence))
                position += len(sentence)
        assert found == expected


def test_batches_begin_with_the_longest_and_count_leaves(document_data):
    _, dataset = load(document_data, "train")
    for batch in batches_of(dataset, max_tokens=60):
        lengths = batch["net_input"]["src_lengths"]
        assert (
            lengths.tolist()
            == sorted(lengths.tolist(), reverse=True)
            == [dataset.size(index) for index in batch["id"].tolist()]
        )
        assert batch["ntokens"] == lengths.sum() == sum(map(dataset.num_tokens, batch["id"].tolist()))
        assert batch["net_input"]["src_tokens"].numel() <= 60 and batch["nsentences"] == len(lengths)
        assert batch["net_input"]["src_tokens"].ne(1).sum(1).tolist() == lengths.tolist()


def test_order_is_by_length_and_random_among_equals_in_training_alone(document_data):
    task, train = load(document_data, "train")
    task.load_dataset("valid")
    for dataset, is_random in ((train, True), (task.dataset("valid"), False)):
        orders = []
        for seed in (1, 2):
            with data_utils.numpy_seed(seed):
                orders.append(dataset.ordered_indices())
            assert (np.diff(dataset.sizes[orders[-1]]) >= 0).all()
        assert np.array_equal(*orders) != is_random


def test_no_examples_make_no_batch(document_data):
    _, dataset = load(document_data, "valid")
    assert dataset.collater([]) == {} and dataset.batch_by_size(np.zeros(0, np.int64), max_tokens=10) == []


def test_workers_of_a_loader_get_a_copy(tree_data):
    _, dataset = load(tree_data, "valid")
    copy = pickle.loads(pickle.dumps(dataset))
    for first, second in zip_equal(batches_of(dataset, max_sentences=4), batches_of(copy, max_sentences=4)):
        assert_equal(first, second)


def test_raw_token_files(trees, tree_data, tmp_path):
    flags = ("--destdir", tmp_path / "bin", "--dataset-impl", "raw")
    classify("--input-format", "trees", *prefixes(trees, *SIZES), *flags)
    _, dataset = load(tmp_path / "bin", "valid", dataset_impl="raw")
    expected = batches_of(load(tree_data, "valid")[1], max_sentences=4)
    for first, second in zip_equal(batches_of(dataset, max_sentences=4), expected):
        assert_equal(first, second)


def assert_equal(first, second):
    if isinstance(first, dict):
        assert first.keys() == second.keys()
        for name in first:
            assert_equal(first[name], second[name])
    else:
        assert torch.equal(first, second) if torch.is_tensor(first) else first == second


def test_the_classes_of_nodes_are_no_input(trees, tree_data, tmp_path):
    """Other classes at all nodes: what a model gets stays the same to the bit, only what it has to tell differs."""
    chooser = random.Random(5)
    for split in SIZES:
        lines = []
        for line in read_lines(trees / f"{split}.trees"):
            tree = read_tree(line)
            labels = [node.label for node in tree.preorder() if node.children]
            chooser.shuffle(labels)
            labels.sort(key=lambda label: label != "-")  # The root, which comes last here, has a class.
            remaining = iter(labels)
            lines.append(write_forest((tree.map_labels(lambda _: next(remaining)),)))
        write_lines(tmp_path / f"{split}.trees", lines)
    classify("--input-format", "trees", *prefixes(tmp_path, *SIZES), "--destdir", tmp_path / "bin")
    differing = 0
    for split in SIZES:
        batches = [batches_of(load(data, split)[1], max_sentences=8) for data in (tree_data, tmp_path / "bin")]
        for first, second in zip_equal(*batches):
            assert_equal(first["net_input"], second["net_input"])
            differing += int((first["node_target"] != second["node_target"]).sum())
    assert differing


# Long documents


def test_long_documents_are_cut_to_whole_sentences_with_a_warning(documents, document_data, caplog):
    whole = load(document_data, "train")[1]
    limit = 12
    _, dataset = load(document_data, "train", max_source_positions=limit)
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    cut = sentences = 0
    for index in range(len(whole)):
        ends = [row.position + row.length for row in whole[index]["sentences"]]
        kept = [end for end in ends if end <= limit]
        assert dataset.size(index) == kept[-1] and len(dataset[index]["sentences"]) == len(kept)
        assert torch.equal(dataset[index]["source"], whole[index]["source"][: kept[-1]])
        cut += kept != ends
        sentences += len(ends) - len(kept)
    warning = (
        f"[train] {cut} documents of more than {limit} tokens were cut at a sentence: {sentences} sentences left out"
    )
    assert cut and warnings == [warning]


def test_a_sentence_that_is_too_long_is_named(documents, document_data):
    first = [sentences_of(line.split("\t")[0])[0] for line in read_lines(documents / "train.tsv")]
    line = next(number for number, sentence in enumerate(first, 1) if len(sentence) > 3)
    with pytest.raises(LongSentenceError, match="--max-source-positions is 3") as caught:
        load(document_data, "train", max_source_positions=3)
    assert (caught.value.path, caught.value.line) == ("train", line)


# Folders


def test_parts_of_a_split_are_joined(trees, tree_data, tmp_path):
    write_trees(tmp_path, 9, valid1=4)
    given = ("--srcdict", tree_data / "dict.text.txt", "--tgtdict", tree_data / "dict.class.txt")
    both = f"{trees / 'valid'},{tmp_path / 'valid1'}"
    classify("--input-format", "trees", "--validpref", both, "--destdir", tmp_path / "bin", *given)
    task = task_of(tmp_path / "bin")
    first, second = read_lines(trees / "valid.trees"), read_lines(tmp_path / "valid1.trees")
    for combine, lines in ((False, first), (True, first + second)):
        task.load_dataset("valid", combine=combine)
        dataset = task.dataset("valid")
        assert [words(task, dataset[index]["source"]) for index in range(len(dataset))] == [
            read_tree(line).leaves() for line in lines
        ]
    with pytest.raises(LongSentenceError) as caught:
        task_of(tmp_path / "bin", max_source_positions=1).load_dataset("valid", combine=True)
    assert caught.value.path == "valid"


def test_a_split_that_is_not_there_is_named(tree_data):
    with pytest.raises(MissingTreesError, match=r"has examples for .*train.*, but not for test1"):
        load(tree_data, "test1")


def test_lines_without_a_class_are_no_examples(tree_data):
    """The check command finds them all; training stops at the first."""
    task, dataset = load(tree_data, "valid")
    dataset.targets = [torch.tensor([task.target_dictionary.unk(), task.target_dictionary.eos()])] * len(dataset)
    with pytest.raises(CorruptFileError, match="example 3 has no class"):
        dataset[2]
