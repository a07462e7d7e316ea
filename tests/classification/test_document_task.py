"""The task: which folders, models and checkpoints belong together, and new lines read as the data were."""

from __future__ import annotations

import logging
import shutil
from argparse import Namespace

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from omegaconf import OmegaConf

from tests.classification.examples import classify, write_rows, write_trees
from tests.classification.test_dataset import assert_equal
from tests.data_bin.corpora import prefixes, read_lines, write_lines
from tests.end_to_end.commands import run
from tests.end_to_end.tiny_classes import load, task_of
from tree_fairseq import errors
from tree_fairseq.classification.tree_lstm_classifier import BINARY_LEVELS
from tree_fairseq.support.python_versions import zip_equal
from tree_fairseq.tasks.pair_dataset import InputLines

SIZES = {"train": 30, "valid": 9}
TREE_ARCH, SEQUENCE_ARCH = "tree_transformer_classifier_tiny", "lstm_classifier_tiny"


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    return write_trees(tmp_path_factory.mktemp("trees"), **SIZES)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return write_rows(tmp_path_factory.mktemp("rows"), **SIZES)


@pytest.fixture(scope="module")
def tree_data(trees, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "trees"
    classify(
        "--input-format", "trees", *prefixes(trees, *SIZES), "--destdir", folder, "--tree-parser", "right-branching"
    )
    return folder


@pytest.fixture(scope="module")
def row_data(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "rows"
    classify(*prefixes(rows, *SIZES), "--destdir", folder, "--tree-parser", "right-branching", "--tree-ssplit", "punct")
    return folder


def model_of(task, arch, **options):
    args = Namespace(arch=arch, dropout=0.0, **options)
    ARCH_CONFIG_REGISTRY[arch](args)
    return task.build_model(args).eval()


def batch_of(dataset):
    return dataset.collater([dataset[index] for index in range(len(dataset))])


# Models


def test_what_models_are_built_with(tree_data):
    task = task_of(tree_data)
    assert task.classes == ["0", "1", "2", "3", "4"] and task.num_classes == 5
    assert task.label_dictionary.index("X") != task.label_dictionary.unk()
    assert task.max_positions() == task.cfg.max_source_positions == 1024


@pytest.mark.parametrize(
    ("option", "arch", "all_nodes"),
    [
        ("auto", TREE_ARCH, True),
        ("auto", SEQUENCE_ARCH, False),
        ("all", TREE_ARCH, True),
        ("root", TREE_ARCH, False),
        ("root", SEQUENCE_ARCH, False),
    ],
)
def test_nodes_are_learned_where_there_are_any(tree_data, option, arch, all_nodes):
    task = task_of(tree_data, label_nodes=option)
    model_of(task, arch)
    assert task.labels_all_nodes == all_nodes


def test_examples_alone_are_learned_where_nodes_have_no_class(row_data):
    task = task_of(row_data)
    model_of(task, TREE_ARCH)
    assert not task.labels_all_nodes
    with pytest.raises(errors.DataFolderError, match="--label-nodes all"):
        task_of(row_data, label_nodes="all")


def test_a_sequence_model_cannot_learn_nodes(tree_data):
    with pytest.raises(errors.InputError, match="LSTMClassifier reads sequences. Use --label-nodes root"):
        model_of(task_of(tree_data, label_nodes="all"), SEQUENCE_ARCH)


@pytest.mark.parametrize("name", ["cross_entropy", "label_smoothed_cross_entropy"])
def test_losses_of_tokens_are_refused(tree_data, name):
    with pytest.raises(errors.InputError, match=f"--criterion {name} .* second class") as refused:
        task_of(tree_data).build_criterion(OmegaConf.create({"_name": name, "sentence_avg": False}))
    assert "--criterion tree_classification" in str(refused.value)


@pytest.mark.parametrize("roots", [("first", "mean"), ("mean", "first")])
def test_members_of_an_ensemble_may_read_documents_at_other_roots(row_data, roots):
    task = task_of(row_data)
    models = []
    for seed, root in enumerate(roots):
        torch.manual_seed(seed)
        models.append(model_of(task, "tree_lstm_classifier_tiny", document_root=root))
    task.load_dataset("valid")
    batch = batch_of(task.dataset("valid"))
    assert len(batch["net_input"]["sentence_trees"]["document"]) > len(batch["id"]), "documents of several sentences"
    with torch.no_grad():
        levels = batch["net_input"]["sentence_trees"].pop(BINARY_LEVELS)
        mean = torch.stack([model(**batch["net_input"])["logits"].softmax(1) for model in models]).mean(0)
    batch["net_input"]["sentence_trees"][BINARY_LEVELS] = levels
    ranked = task.inference_step(task.build_generator(models, Namespace()), models, batch)
    for expected, hypotheses in zip_equal(mean, ranked):
        scores = {int(found["tokens"][0]) - task.target_dictionary.nspecial: found["score"] for found in hypotheses}
        assert [scores[number] for number in range(task.num_classes)] == pytest.approx(
            expected.log().tolist(), abs=1e-5
        )


# Checkpoints


def test_a_checkpoint_knows_what_it_was_trained_on(tree_data, row_data):
    task = task_of(tree_data)
    model_of(task, TREE_ARCH)
    state = task.state_dict()
    task_of(tree_data).load_state_dict(state)
    with pytest.raises(errors.DictionaryMismatchError, match="other classes"):
        task_of(row_data).load_state_dict(state)


def test_a_checkpoint_with_other_labels_is_refused(rows, row_data, tmp_path):
    task = task_of(row_data)
    model_of(task, TREE_ARCH)
    words = [shutil.copy(row_data / f"dict.{lang}.txt", tmp_path) for lang in ("text", "class")]
    given = ("--srcdict", words[0], "--tgtdict", words[1])
    classify(*prefixes(rows, *SIZES), "--destdir", tmp_path / "bin", "--tree-parser", "toy", *given)
    with pytest.raises(errors.DictionaryMismatchError, match="other labels"):
        task_of(tmp_path / "bin").load_state_dict(task.state_dict())


def test_other_classes_of_a_model_that_is_fine_tuned_are_logged(tree_data, row_data, caplog):
    task = task_of(tree_data)
    state = task.state_dict()
    task_of(row_data).require_same_data(state, fine_tuning=True)
    [message] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert all(", ".join(classes) in message for classes in (task.classes, task_of(row_data).classes))


# Folders


def test_folders_take_turns(tree_data, tmp_path):
    write_trees(tmp_path, 8, train=12, valid=5)
    given = ("--srcdict", tree_data / "dict.text.txt", "--tgtdict", tree_data / "dict.class.txt")
    classify("--input-format", "trees", *prefixes(tmp_path, *SIZES), "--destdir", tmp_path / "bin", *given)
    data = f"{tree_data}:{tmp_path / 'bin'}"
    sizes = [
        len(load(data, split, epoch=epoch)[1])
        for split, epoch in (("train", 1), ("train", 2), ("train", 3), ("valid", 2))
    ]
    assert sizes == [30, 12, 30, 9]


def test_folders_that_do_not_fit_are_refused(tree_data, row_data):
    with pytest.raises(errors.DictionaryMismatchError, match="dict.class.txt, dict.label.text.txt, .*--node-symbols"):
        task_of(f"{tree_data}:{row_data}")


def test_folders_of_translation_and_of_nothing_are_refused(corpus, data_bin, tmp_path):
    with pytest.raises(errors.MissingTreesError, match="--task tree_classification"):
        task_of(data_bin)
    prefixes_of_texts = (part for split in ("train", "valid") for part in (f"--{split}pref", corpus / split))
    run("preprocess", "-s", "en", "-t", "de", *prefixes_of_texts, "--destdir", tmp_path / "stock")
    with pytest.raises(errors.MissingTreesError, match="there is no tree.json"):
        task_of(tmp_path / "stock")


def test_another_dictionary_of_classes_is_noticed(tree_data, tmp_path):
    folder = shutil.copytree(tree_data, tmp_path / "bin")
    write_lines(folder / "dict.class.txt", ["a 1", "b 1"])
    with pytest.raises(errors.DictionaryMismatchError, match="dict.class.txt"):
        task_of(folder)


@pytest.mark.parametrize(
    "name", ["train.text-class.class.bin", "train.text-class.text.tree.idx", "train.text-class.text.idx"]
)
def test_missing_files_are_named(tree_data, tmp_path, name):
    folder = shutil.copytree(tree_data, tmp_path / "bin")
    (folder / name).unlink()
    with pytest.raises(errors.CorruptFileError, match=name):
        load(folder, "train")


# New text


@pytest.mark.parametrize("kind", ["trees", "rows"])
def test_new_lines_are_read_as_the_data_were(request, kind):
    data = request.getfixturevalue(f"{kind.removesuffix('s')}_data")
    lines = read_lines(request.getfixturevalue(kind) / ("valid.trees" if kind == "trees" else "valid.tsv"))
    task, dataset = load(data, "valid")
    tokens, lengths = task.get_interactive_tokens_and_lengths(
        [line.split("\t")[0] for line in lines], lambda line: line
    )
    batch, expected = batch_of(task.build_dataset_for_inference(tokens, lengths)), batch_of(dataset)
    assert_equal(batch["net_input"], expected["net_input"])
    assert_equal(batch["id"], expected["id"])
    assert batch["target"] is None and "node_target" not in batch
    assert [list(forest) for forest in task.source_forests([line.split("\t")[0] for line in lines], str)]


def test_token_tensors_are_parsed_by_their_words(row_data):
    task = task_of(row_data)
    lines = ["a good film", "not bad . so so"]
    tensors = [task.source_dictionary.encode_line(line, add_if_not_exist=False).long() for line in lines]
    batch = batch_of(task.build_dataset_for_inference(tensors, [len(tensor) for tensor in tensors]))
    same = batch_of(task.build_dataset_for_inference(*task.get_interactive_tokens_and_lengths(lines, str)))
    assert_equal(batch["net_input"], same["net_input"])


@pytest.mark.parametrize("kind", ["trees", "rows"])
@pytest.mark.parametrize("line", ["", " \t "])
def test_blank_lines_are_named(request, kind, line):
    task = task_of(request.getfixturevalue(f"{kind.removesuffix('s')}_data"))
    with pytest.raises(errors.EmptyDocumentError) as caught:
        task.get_interactive_tokens_and_lengths(InputLines(["not bad", line], 3), str)
    assert (caught.value.path, caught.value.line) == ("input", 4)


def test_long_lines_are_cut_or_named(row_data, caplog):
    task = task_of(row_data, max_source_positions=5)
    tokens, lengths = task.get_interactive_tokens_and_lengths(["a film . so good . not bad", "a film ."], str)
    assert lengths == [3, 3]
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == ["[input] 1 documents of more than 5 tokens were cut at a sentence: 2 sentences left out"]
    rows = batch_of(task.build_dataset_for_inference(tokens, lengths))["net_input"]["sentence_trees"]
    assert rows["document"].tolist() == [0, 1] and rows["tokens"].shape == (2, 3)
    with pytest.raises(errors.LongSentenceError) as caught:
        task.get_interactive_tokens_and_lengths(InputLines(["so so so so so so"], 3), str)
    assert (caught.value.path, caught.value.line) == ("input", 3)


def test_targets_are_lines_also_of_a_batch_that_is_classified_twice(row_data):
    task, dataset = load(row_data, "valid")
    model, batch = model_of(task, TREE_ARCH), batch_of(dataset)
    names = [task.classes[index] for index in batch["target"]]
    for _ in range(2):
        task.inference_step(task.build_generator([model], Namespace()), [model], batch)
        assert [task.target_dictionary.string(line) for line in batch["target"]] == names
