"""A model that reads trees gets some under every task, or is refused: none trains without them."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks import TASK_REGISTRY

from tests.data_bin.corpora import prefixes, write_lines
from tests.end_to_end.commands import run
from tree_fairseq.errors import TreeFairseqError
from tree_fairseq.nn.modalities import TREE_INPUTS

RIGHT = ("--tree-parser", "right-branching")
SIDES = ("-s", "en", "-t", "de")
FOLDERS = {
    "tree_translation": (*SIDES, *RIGHT),
    "structural_translation": (*SIDES, "--target-modality", "tree"),
    "tree_insertion": SIDES,
    "tree_classification": RIGHT,
    "tree_sentence_classification": (),
}
STOCK = {"translation": "tree_translation", "autocast_translation": "tree_translation"}
READING = {
    "tree_transformer_tiny": {"tree_translation"},
    "source_encoder_transformer_tiny --source-encoder tree": {"tree_translation"},
    "tree_positional_transformer_tiny": {"structural_translation"},
    "tree_to_tree_lstm_tiny": {"structural_translation"},
    "tree_lstm_classifier_tiny": {"tree_classification"},
    "tree_transformer_classifier_tiny": {"tree_classification"},
}
"""Architectures that read trees, and the tasks of these folders that give them some."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("folders")
    write_lines(folder / "train.en", ["a b", "b c"] * 4)
    write_lines(folder / "train.de", ["(a b)", "(b c)"] * 4)
    write_lines(folder / "train.tsv", ["a b\tx", "b c\ty"] * 4)
    for task, flags in FOLDERS.items():
        run("preprocess", "--task", task, *prefixes(folder, "train"), *flags, "--destdir", folder / task)
    return folder


@pytest.mark.parametrize("architecture", READING)
@pytest.mark.parametrize("task", [*FOLDERS, *STOCK])
def test_a_model_of_trees_gets_trees_or_is_refused(folders, task, architecture):
    data = folders / STOCK.get(task, task)
    flags = f"{data} --task {task} --criterion cross_entropy --optimizer adam --arch {architecture}".split()
    args = options.parse_args_and_arch(options.get_training_parser(), input_args=flags)
    cfg = convert_namespace_to_omegaconf(args)
    made = tasks.setup_task(cfg.task)
    if task not in READING[architecture]:
        with pytest.raises((TreeFairseqError, NotImplementedError)):
            made.build_model(cfg.model)
        return
    made.build_model(cfg.model)
    made.load_dataset("train")
    [batch, *_] = made.get_batch_iterator(made.dataset("train"), max_sentences=4).next_epoch_itr(shuffle=False)
    trees = {*TREE_INPUTS.values(), "previous_symbol_tree", "sentence_trees"}
    assert trees & made.trees_of_models & {*batch["net_input"]}


def test_every_task_of_the_package_is_tried():
    ours = {name for name, task in TASK_REGISTRY.items() if task.__module__.startswith("tree_fairseq")}
    assert ours <= {*FOLDERS, *STOCK}
