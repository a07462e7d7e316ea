"""``fairseq-preprocess --task tree_classification``: token files, trees, classes, and the way back."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from fairseq.data import Dictionary
from subword_nmt.learn_bpe import learn_bpe

import tests.parsing.fake_parsers  # noqa: F401  (registers the parser "toy")
from tests.classification.examples import classify, write_rows, write_trees
from tests.data_bin.corpora import folder_bytes, prefixes, read_lines, run_preprocess, write_lines
from tests.faults.test_13_killed_preprocess import resetting, survives_every_kill
from tree_fairseq.classification.examples import LineTrees
from tree_fairseq.classification.folder import ClassificationRecord
from tree_fairseq.commands import annotate, export
from tree_fairseq.commands.check import check_folder
from tree_fairseq.data_bin.kinds import export_forests
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.data_bin.token_files import token_words
from tree_fairseq.errors import DataFolderError, DestinationExistsError, InputError, UnknownClassError
from tree_fairseq.parsing.pieces import load_subword_model
from tree_fairseq.trees.bracket import read_forest, read_tree
from tree_fairseq.trees.spans import decode

SPLITS = ("train", "valid", "test", "test1")
SST = Path(__file__).resolve().parents[3] / "shared" / "data" / "sst" / "dev.txt"


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    return write_trees(tmp_path_factory.mktemp("trees"), train=60, valid=9, test=8, test1=7)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return write_rows(tmp_path_factory.mktemp("rows"), train=60, valid=9, test=8, test1=7)


@pytest.fixture(scope="module")
def codes(tmp_path_factory):
    path = tmp_path_factory.mktemp("bpe") / "codes"
    with open(path, "w", encoding="utf-8") as file:
        learn_bpe(io.StringIO("a good film is not so bad . " * 10), file, 6)
    return path


@pytest.fixture(scope="module")
def tree_data(trees, tmp_path_factory):
    return from_trees(trees, tmp_path_factory.mktemp("data") / "trees")


@pytest.fixture(scope="module")
def row_data(rows, tmp_path_factory):
    return from_rows(rows, tmp_path_factory.mktemp("data") / "rows")


def from_trees(folder, destination, *arguments, splits=SPLITS):
    classify("--input-format", "trees", *prefixes(folder, *splits), "--destdir", destination, *arguments)
    return destination


def from_rows(folder, destination, *arguments, splits=SPLITS, parser="balanced"):
    classify(*prefixes(folder, *splits), "--destdir", destination, "--tree-parser", parser, *arguments)
    return destination


MAKERS = {"trees": (write_trees, from_trees), "rows": (write_rows, from_rows)}
"""How to write examples, and how to preprocess them."""


def record_of(data):
    return Manifest.load(data).section(ClassificationRecord)


def given(data):
    return ("--srcdict", data / "dict.text.txt", "--tgtdict", data / "dict.class.txt")


def classes_of(data, split):
    dictionary = Dictionary.load(str(data / "dict.class.txt"))
    return [" ".join(names) for names in token_words(data / f"{split}.text-class.class", dictionary)]


def written_back(data, split, tmp_path, *arguments):
    output = tmp_path / "again"
    assert export.main([str(data), "--split", split, "--output", str(output), *map(str, arguments)]) == 0
    return read_lines(output)


def labels_in_preorder(line):
    return [node.label for node in read_tree(line).preorder() if node.children]


def relabelled(forest, label="X"):
    return tuple(tree.map_labels(lambda _: label) for tree in forest)


# Texts and their classes


def test_texts_and_classes_are_what_stock_fairseq_makes_of_the_columns(rows, row_data, tmp_path):
    for split in SPLITS:
        columns = [line.split("\t") for line in read_lines(rows / f"{split}.tsv")]
        for number, lang in enumerate(("text", "class")):
            write_lines(tmp_path / f"{split}.{lang}", [row[number] for row in columns])
    run_preprocess(
        "-s", "text", "-t", "class", *prefixes(tmp_path, *SPLITS), "--destdir", tmp_path / "stock", "--tgtdict",
        row_data / "dict.class.txt",
    )  # fmt: skip
    stock = folder_bytes(tmp_path / "stock")
    assert stock.items() <= folder_bytes(row_data).items() and "test1.text-class.class.bin" in stock
    assert check_folder(row_data) == []


def test_classes_are_sorted_and_counted(row_data):
    assert read_lines(row_data / "dict.class.txt") == ["9 15", "10 15", "neg 15", "pos 15"]
    record = record_of(row_data)
    assert (record.input_format, record.node_labels, record.node_symbols) == ("tsv", False, "parser")
    assert record.text_parser is None
    assert (record.splits["test1"].lines, record.splits["test1"].tokens, record.splits["test1"].unlabelled) == (7, 7, 0)


def test_ready_made_parses_of_texts(tmp_path):
    """Labels of trees in the text column are not classes: they are read."""
    write_lines(tmp_path / "train.tsv", ["(S (NP a) (VP b))\t1", "(NP c)\t0"])
    data = from_rows(tmp_path, tmp_path / "bin", splits=("train",), parser="brackets")
    assert written_back(data, "train", tmp_path) == ["(S (NP a) (VP b))", "(NP c)"]
    assert classes_of(data, "train") == ["1", "0"]


# Trees whose labels are classes


def test_trees_come_back_as_they_were(trees, tree_data, tmp_path):
    data = tree_data
    for split in SPLITS:
        lines = read_lines(trees / f"{split}.trees")
        assert written_back(data, split, tmp_path) == lines
        assert list(export_forests(data, "text", split)) == [relabelled(read_forest(line)) for line in lines]
        assert [line.split() for line in classes_of(data, split)] == [
            [label if label != "-" else "<unk>" for label in labels_in_preorder(line)] for line in lines
        ]
    assert read_lines(data / "dict.class.txt")[0].startswith("0 ") and len(read_lines(data / "dict.class.txt")) == 5
    assert [line.split()[0] for line in read_lines(data / "dict.label.text.txt")] == ["X"]
    assert check_folder(data) == []


def test_the_record_counts_nodes_without_a_class(trees, tree_data):
    record = record_of(tree_data)
    labels = [label for line in read_lines(trees / "valid.trees") for label in labels_in_preorder(line)]
    split = record.splits["valid"]
    assert (split.lines, split.tokens, split.unlabelled) == (9, len(labels), labels.count("-")) and split.unlabelled > 0
    assert record.node_labels and record.node_symbols == "constant" and record.binarize


def test_numbers_of_children_decide_whether_new_text_is_binarised(tmp_path):
    write_lines(tmp_path / "train.trees", ["(1 (1 a) (0 b) (1 c))"])
    assert not record_of(from_trees(tmp_path, tmp_path / "bin", splits=("train",))).binarize


@pytest.mark.parametrize("flags", [("--dataset-impl", "raw"), ("--workers", 2)])
def test_other_ways_to_write_it(trees, tree_data, tmp_path, flags):
    data = from_trees(trees, tmp_path / "bin", *flags)
    assert check_folder(data) == []
    assert written_back(data, "test1", tmp_path) == read_lines(trees / "test1.trees")
    if "--workers" in flags:
        assert folder_bytes(data) == folder_bytes(tree_data)


def test_only_dictionaries(trees, tmp_path):
    data = from_trees(trees, tmp_path / "bin", "--dict-only")
    assert {path.name for path in data.glob("dict.*")} == {"dict.class.txt", "dict.label.text.txt", "dict.text.txt"}
    assert record_of(data).splits == {}


@pytest.mark.skipif(not SST.exists(), reason=f"needs {SST}")
def test_the_stanford_sentiment_treebank(tmp_path):
    """Its development set: 1,101 sentences with a class at each of 41,447 nodes, 21,274 of them words."""
    write_lines(tmp_path / "train.trees", read_lines(SST))
    data = from_trees(tmp_path, tmp_path / "bin", splits=("train",))
    # The treebank writes a slash with a backslash.
    assert written_back(data, "train", tmp_path) == [line.replace("\\/", "/") for line in read_lines(SST)]
    record, trees = record_of(data).splits["train"], Manifest.load(data).split("text", "train")
    assert (record.lines, record.tokens, record.unlabelled) == (1101, 41447, 0)
    assert (trees.leaves, trees.nodes) == (21274, 41447)
    assert [line.split()[0] for line in read_lines(data / "dict.class.txt")] == ["0", "1", "2", "3", "4"]


# New text


def test_new_lines_become_what_the_folder_holds(trees, rows, codes, tmp_path):
    """The road of fairseq-interactive and the hub, from the manifest alone, gives the forests of preprocessing."""
    folders = {
        "rows": from_rows(rows, tmp_path / "rows", "--bpe-codes", codes, parser="toy"),
        "constant": from_trees(trees, tmp_path / "constant"),
    }
    for name, data in folders.items():
        manifest = Manifest.load(data)
        source = read_lines(rows / "test.tsv" if name == "rows" else trees / "test.trees")
        lines = [line.split("\t")[0] for line in source]
        if name == "rows":  # as the task splits them
            lines = list(map(load_subword_model(str(codes)).split_line, lines))
        reader = LineTrees(manifest.section(ClassificationRecord), manifest.side("text").options)
        # Words that the dictionary lacks are <unk> in the folder; shapes and labels are all there.
        assert [relabelled_leaves(decode(tree)) for tree in reader.read(lines)] == [
            relabelled_leaves(each) for each in export_forests(data, "text", "test")
        ]


def relabelled_leaves(forest):
    return [tree.map_leaves(["w"] * len(tree.leaves())) for tree in forest]


def test_the_parser_for_new_text_stays_with_the_folder(trees, tmp_path):
    data = from_trees(trees, tmp_path / "bin", "--tree-parser", "toy", "--tree-ssplit", "punct", splits=("train",))
    assert record_of(data).text_options.ssplit == "punct"
    from_trees(trees, data, *given(data), splits=("test",))
    record = record_of(data)
    assert record.text_options.name == "toy" and sorted(record.splits) == ["test", "train"]
    with pytest.raises(DataFolderError, match="right-branching"):
        from_trees(trees, data, *given(data), "--tree-parser", "right-branching", splits=("valid",))


# Splits that come later


@pytest.mark.parametrize("make", ["trees", "rows"])
def test_a_split_is_added_with_the_dictionaries_of_the_folder(trees, rows, tmp_path, make):
    source, (_, run) = trees if make == "trees" else rows, MAKERS[make]
    data = run(source, tmp_path / "bin", splits=("train", "valid"))
    with pytest.raises(DestinationExistsError):
        run(source, data, splits=("train", "test"))
    run(source, data, *given(data), splits=("test",))
    run(source, data, *given(data), splits=("test",))
    assert check_folder(data) == []
    at_once = folder_bytes(run(source, tmp_path / "at-once", splits=("train", "valid", "test")))
    added = folder_bytes(data)
    assert json.loads(added.pop("tree.json")) == json.loads(at_once.pop("tree.json"))
    assert added == at_once


def test_other_choices_are_refused_for_a_split_that_is_added(trees, rows, tmp_path):
    data = from_trees(trees, tmp_path / "bin", splits=("train",))
    write_lines(tmp_path / "test.tsv", ["a film\t1"])
    with pytest.raises(DataFolderError):
        from_rows(tmp_path, data, *given(data), splits=("test",))
    write_lines(tmp_path / "test.trees", ["(1 (1 a) (1 b))", "(1 (1 a) (5 b))"])
    with pytest.raises(UnknownClassError, match=r"test\.trees:2: '5' is not a class, the classes are 0, 1, 2, 3, 4"):
        from_trees(tmp_path, data, *given(data), splits=("test",))
    assert check_folder(data) == []


# What can go wrong


@pytest.mark.parametrize("make", ["trees", "rows"])
def test_killed_at_any_moment(tmp_path, make):
    splits = {"train": 12, "valid": 3}
    write, run = MAKERS[make]
    corpus = write(tmp_path / "corpus", **splits)
    destination = tmp_path / "work" / "bin"

    def action():
        run(corpus, destination, splits=tuple(splits))

    assert survives_every_kill(action, destination, resetting(destination), 8) > 8


def test_trees_cannot_be_added_to_a_folder_for_classification(trees, tmp_path, caplog):
    data = from_trees(trees, tmp_path / "bin", splits=("train",))
    assert annotate.main([str(data), "--tree-parser", "balanced"]) == 1
    assert "fairseq-preprocess --task tree_classification" in caplog.text


def test_a_parser_s_failures_are_named_with_the_user_s_file(tmp_path):
    write_lines(tmp_path / "train.tsv", ["a film\t1", "NONE of it\t0"])
    with pytest.raises(Exception, match=r"train\.tsv:2") as caught:
        from_rows(tmp_path, tmp_path / "bin", "--on-parse-error", "stop", splits=("train",), parser="faulty")
    assert ".building" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--tree-parser"),
        (("--tree-parser", "toy", "-s", "en"), "--source-lang en"),
        (("--tree-parser", "toy", "--tree-sides", "source,target"), "--tree-sides target"),
        (("--tree-parser", "toy", "--joined-dictionary"), "--joined-dictionary"),
        (("--tree-parser", "toy", "--thresholdtgt", 2), "--thresholdtgt"),
        (("--tree-parser", "toy", "--target-modality", "tree"), "--target-modality"),
    ],
)
def test_arguments_that_do_not_go_together(rows, tmp_path, arguments, words):
    with pytest.raises(InputError, match=words):
        classify("--trainpref", rows / "train", "--destdir", tmp_path / "bin", *arguments)
    assert not list(tmp_path.iterdir())


def test_words_of_class_trees_stay_whole(trees, codes, tmp_path):
    with pytest.raises(InputError, match="not tokenised or split.*Leave out --bpe-codes"):
        from_trees(trees, tmp_path / "bin", "--bpe-codes", codes)


def test_flags_of_classification_need_the_task(rows, tmp_path):
    with pytest.raises(InputError, match="--input-format goes with --task tree_classification"):
        run_preprocess("--trainpref", rows / "train", "--destdir", tmp_path / "bin", "--input-format", "tsv")
