"""A model that reads trees gets some under every task, or is refused; every flag of both is read, or refused."""

from __future__ import annotations

import dataclasses
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import options, tasks
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY
from fairseq.tasks.translation import TranslationConfig

from tests.data_bin.corpora import prefixes, write_lines
from tests.end_to_end.commands import run
from tree_fairseq.commands.model_options import model_options
from tree_fairseq.errors import TreeFairseqError
from tree_fairseq.nn.encoders import ENCODERS
from tree_fairseq.nn.modalities import TREE_INPUTS

RIGHT = ("--tree-parser", "right-branching")
SIDES = ("-s", "en", "-t", "de")
FOLDERS = {
    "tree_translation": (*SIDES, *RIGHT),
    "structural_translation": (*SIDES, "--target-modality", "tree"),
    "tree_insertion": (*SIDES, *RIGHT),
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
    sentence = "a b c d e a b c d e a b c"
    write_lines(folder / "train.en", [sentence, "b c a"] * 4)
    write_lines(folder / "train.de", ["(a b (b d (e f)) (c b a))", "(b c (c a b))"] * 4)
    write_lines(folder / "train.tsv", [f"{sentence}\tx", "b c a\ty"] * 4)
    for task, flags in FOLDERS.items():
        run("preprocess", "--task", task, *prefixes(folder, "train"), *flags, "--destdir", folder / task)
    return folder


def training(data: Path, task: str, architecture: str, *flags: str) -> Namespace:
    given = f"{data} --task {task} --optimizer adam --max-sentences 8 --arch {architecture}".split()
    return options.parse_args_and_arch(options.get_training_parser(), input_args=[*given, *flags])


def first_batch(task) -> dict:
    task.load_dataset("train")
    [batch] = task.get_batch_iterator(task.dataset("train"), max_sentences=8).next_epoch_itr(shuffle=False)
    return batch


@pytest.mark.parametrize("architecture", READING)
@pytest.mark.parametrize("task", [*FOLDERS, *STOCK])
def test_a_model_of_trees_gets_trees_or_is_refused(folders, task, architecture):
    args = training(folders / STOCK.get(task, task), task, architecture, "--criterion", "cross_entropy")
    made = tasks.setup_task(args)
    if task not in READING[architecture]:
        with pytest.raises((TreeFairseqError, NotImplementedError)):
            made.build_model(args)
        return
    made.build_model(args)
    trees = {*TREE_INPUTS.values(), "previous_symbol_tree", "sentence_trees"}
    assert trees & made.trees_of_models & {*first_batch(made)["net_input"]}


# Flags


MODELS = {
    "tree_translation": ["tree_transformer", "treeformer", "source_encoder_transformer", "transformer_distance_bias"],
    "structural_translation": ["tree_positional_transformer", "tree_to_tree_lstm"],
    "tree_insertion": [
        "tree_insertion_transformer", "sequence_insertion_transformer", "insertion_left_to_right",
        "sequence_insertion_transformer_tiny --target-distribution uniform",
    ],
    "tree_classification": ["tree_transformer_classifier", "tree_lstm_classifier", "transformer_classifier"],
    "tree_sentence_classification": [
        "lstm_classifier", "treeformer_classifier", "treeformer_classifier_tiny --no-chart"
    ],
}  # fmt: skip
VALUES = {
    "target_temperature": "0.5", "classifier_dropout": "0.4", "hidden_size": "8", "treeformer_height": "4",
    "trajectories": "1", "grammar": "data", "tree_parser": "balanced", "source_encoder": "treeformer",
}  # fmt: skip
# These data have one sentence a document; nothing differs in the published form of some models but what is refused.
HARMLESS = {"document_root", "leaf_attention", "as_published"}


def flags_of(add: Callable) -> dict[str, Action]:
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    add(parser)
    return {action.dest: action for action in parser._actions if action.option_strings}


def another(action: Action, default: str) -> list[str]:
    """A value of a flag that is not the default."""
    if action.nargs == 0:
        return []
    choices = [str(choice) for choice in action.choices or () if str(choice) not in (default, str(action.default))]
    value = VALUES.get(action.dest)
    return [value if value in (choices or VALUES.values()) else (choices or ["3" if action.type else "x"])[0]]


def outcome(data: Path, task: str, architecture: str, *flags: str, setup: Any = None) -> tuple[str, Any]:
    """All that flags of a training can change: the model, its loss, checkpoints, searches, and how text is read.

    ``setup`` is the task for flags of the model. Returns it, too.
    """
    slots = architecture.startswith(("tree_insertion", "sequence_insertion"))
    criterion = "slot_kl_divergence" if slots else "cross_entropy" if "class" not in task else "tree_classification"
    criterion = "label_smoothed_cross_entropy" if task == "tree_insertion" and not slots else criterion
    args = training(data, task, architecture, "--criterion", criterion, *flags)
    made = setup or tasks.setup_task(args)
    torch.manual_seed(1)
    model = made.build_model(args)
    loss = made.build_criterion(Namespace(**vars(args), _name=criterion))
    batch = made.first_batch if setup else first_batch(made)
    made.first_batch = batch
    torch.manual_seed(2)
    found = [made._autocast(loss)(model, batch)[0].item(), made.valid_step(batch, model.eval(), loss)[2]]
    found += [sum(weight.numel() for weight in model.parameters()), made.state_dict()]
    if "class" not in task:
        generator = made.build_generator([model], Namespace(beam=1))
        found.append(getattr(generator, "legal", None) and generator.legal.__dict__)
    reads = made.source_forests(["a b c d"], str) if not setup and "sentence" not in task else ""
    return repr(found) + repr(reads) * (not setup), made


def flags_to_try(task: str, architecture: str) -> dict[str, tuple[Action, str]]:
    """The flags of a task and of a model, with their defaults; those of other encoders are tried with one model."""
    model, stock = ARCH_MODEL_REGISTRY[architecture], names_of(TranslationConfig)
    own = names_of(TASK_DATACLASS_REGISTRY[task]) - stock
    defaults = {option.flag.split()[0]: option.default for option in model_options(architecture)}
    others = set()
    if hasattr(model, "default_encoder") and architecture != "source_encoder_transformer_tiny":
        others = names_of(*(encoder.config for encoder in ENCODERS.values()))
        others -= names_of(model.flags, ENCODERS[model.default_encoder].config)
    found = {}
    for kind in (TASK_REGISTRY[task], model):
        for name, action in flags_of(kind.add_args).items():
            flag = action.option_strings[0]
            if (flag in defaults or name in own) and name not in others:
                found[flag] = action, defaults.get(flag, "")
    return found


def names_of(*configs: type) -> set[str]:
    return {field.name for config in configs for field in dataclasses.fields(config)}


@pytest.mark.parametrize("task, model", [(task, model) for task, models in MODELS.items() for model in models])
def test_every_flag_of_training_is_read_or_refused(folders, task, model):
    architecture, *given = model.split() if " " in model else [f"{model}_tiny"]
    data, ignored, tried = folders / task, [], flags_to_try(task, architecture)
    expected, setup = outcome(data, task, architecture, *given)
    of_model, _ = outcome(data, task, architecture, *given, setup=setup)
    of_task = names_of(TASK_DATACLASS_REGISTRY[task])
    for flag, (action, default) in tried.items():
        try:
            flags = *given, flag, *another(action, default)
            found, _ = outcome(data, task, architecture, *flags, setup=None if action.dest in of_task else setup)
        except TreeFairseqError as error:
            # An encoder that needs a folder names the flag for it.
            assert flag in str(error) or "--encoder-path" in str(error) or flag == "--encoder-name", (flag, error)
            continue
        if found in (expected, of_model) and action.dest not in HARMLESS and flag not in given:
            ignored.append(flag)
    assert not ignored and len(tried) > 2


def test_every_task_of_the_package_is_tried():
    ours = {name for name, task in TASK_REGISTRY.items() if task.__module__.startswith("tree_fairseq")}
    assert ours <= {*FOLDERS, *STOCK}
