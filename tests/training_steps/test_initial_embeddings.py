"""``--embedding-init-scale`` multiplies the tables of tokens and labels of every architecture, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from fairseq import options, tasks, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from tests.training_steps.cases import FIRST, FOLDERS, Case
from tree_fairseq.errors import InputError

TABLES = ("embed_tokens.weight", "embed_labels.weight", "embed_brackets.weight")
SCALE = 0.25
_SMALL = ("--encoder-embed-dim", "16", "--decoder-embed-dim", "16")
_CONVOLUTIONS = ("--encoder-layers", "[(16, 3)]", "--decoder-layers", "[(16, 3)]")
_LIGHT = ("--encoder-layers", "1", "--decoder-layers", "1", "--encoder-kernel-size-list", "[3]")
_HEADS = ("--encoder-attention-heads", "2", "--decoder-attention-heads", "2", "--decoder-kernel-size-list", "[3]")
_BY_ARCH = {case.arch: case for case in FIRST}
_TREES = _BY_ARCH["tree_insertion_transformer_tiny"]
CASES = [
    *(_BY_ARCH[arch] for arch in ("transformer", "lstm", "tree_transformer_tiny", "treeformer_tiny")),
    *(_BY_ARCH[arch] for arch in ("tree_to_tree_lstm_tiny", "tree_lstm_classifier_tiny", "lstm_classifier_tiny")),
    Case("fconv", "translation", "fconv", (*_SMALL, *_CONVOLUTIONS, "--decoder-out-embed-dim", "16")),
    Case("lightconv", "translation", "lightconv", (*_SMALL, *_LIGHT, *_HEADS)),
    *[
        replace(
            _BY_ARCH[arch], name=f"{arch}, shared", flags=(*_BY_ARCH[arch].flags, "--share-decoder-input-output-embed")
        )
        for arch in ("transformer", "tree_transformer_tiny")
    ],
    replace(_TREES, name="brackets", flags=(*_TREES.flags, "--absolute-positions", "--max-target-positions", "40")),
]


def settings(case: Case, folders, *flags: str):
    """The task and its configuration."""
    command = [str(folders(case.folder)), *FOLDERS[case.folder][0], "--arch", case.arch, *case.flags, *flags, "--cpu"]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), command))
    return tasks.setup_task(cfg.task), cfg.model


def build(task, cfg, **arguments):
    utils.set_torch_seed(1)
    return task.build_model(cfg, **arguments)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_tables_alone_are_multiplied_once(case, folders):
    task, cfg = settings(case, folders)
    plain = build(task, cfg).state_dict()
    task, cfg = settings(case, folders, "--embedding-init-scale", str(SCALE))
    scaled = build(task, cfg)
    tables = {weight.data_ptr() for name, weight in scaled.state_dict().items() if name.endswith(TABLES)}
    found = 0
    # fairseq's convolutions leave a bias as memory had it.
    compared = {name: weight for name, weight in scaled.state_dict().items() if not name.endswith("conv_bias")}
    for name, weight in compared.items():
        is_table = weight.data_ptr() in tables and weight.numel() > 0
        found += is_table
        assert torch.equal(weight, plain[name] * SCALE if is_table else plain[name]), name
    assert found >= 1
    # A model that gets the weights of a checkpoint is made as ever, and loading replaces whatever was multiplied.
    kept = build(task, cfg, from_checkpoint=True).state_dict()
    assert all(torch.equal(kept[name], plain[name]) for name in compared)
    scaled.load_state_dict(plain, strict=True)
    assert all(torch.equal(scaled.state_dict()[name], plain[name]) for name in compared)


def test_what_cannot_be_scaled_is_refused(folders, tmp_path):
    stock = _BY_ARCH["transformer"]
    for scale in ("0", "-1", "nan", "inf"):
        with pytest.raises(InputError, match="--embedding-init-scale .*: give a number above 0"):
            build(*settings(stock, folders, f"--embedding-init-scale={scale}"))
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("1 64\n" + "the " + " ".join(["0.5"] * 64) + "\n")
    with pytest.raises(InputError, match="--encoder-embed-path does not work with --embedding-init-scale"):
        build(*settings(stock, folders, "--embedding-init-scale", "0.1", "--encoder-embed-path", str(vectors)))


def test_vectors_of_a_pretrained_encoder_stay(folders):
    case = _BY_ARCH["source_encoder_transformer_tiny"]
    flags = ("--source-encoder", "pretrained", "--encoder-path", str(folders.pretrained()))
    plain = build(*settings(case, folders, *flags)).state_dict()
    scaled = build(*settings(case, folders, *flags, "--embedding-init-scale", str(SCALE))).state_dict()
    changed = {name for name, weight in scaled.items() if not torch.equal(weight, plain[name])}
    assert changed and all(name.startswith("decoder.") for name in changed)
