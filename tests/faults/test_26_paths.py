"""Paths that a file names lead nowhere: no code is imported, nothing is written outside."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import omegaconf
import pytest

from tests.end_to_end.commands import hypotheses, run
from tests.end_to_end.fixtures import TASK, train
from tests.end_to_end.tiny_corpus import make_pairs
from tests.faults.hostile_checkpoints import Attacks
from tree_fairseq import hub
from tree_fairseq.data_bin.manifest import Manifest
from tree_fairseq.errors import CheckpointError, CorruptFileError, DataFolderError

TREES = [pair.tree for pair in make_pairs(4, 2)]


@pytest.fixture
def checkpoint(trained, marker, tmp_path) -> Path:
    """A checkpoint that names a plugin, a data folder, a parser and objects to be made, all of them traps."""
    path = tmp_path / "named" / "checkpoint_best.pt"
    path.parent.mkdir()
    Attacks(trained.best, marker).write("settings", path)
    return path


def test_generation_uses_the_command_s_paths(checkpoint, trained):
    flags = ("--path", checkpoint, "--cpu", "--beam", 2, "--max-len-b", 8, "--num-workers", 0)
    output = run("generate", trained.data, *TASK, *flags)
    assert len(hypotheses(output)) == 16


def test_the_hub_uses_its_caller_s_paths(checkpoint, trained):
    if omegaconf.__version__ < "2.1":  # that of fairseq 0.12.2 refuses keys that no dataclass has
        with pytest.raises(CheckpointError, match="_target_"):
            hub.from_pretrained(checkpoint.parent, data_name_or_path=trained.data)
        return
    model = hub.from_pretrained(checkpoint.parent, data_name_or_path=trained.data)
    assert Path(model.task.cfg.data) == trained.data and model.task.cfg.parser_dir is model.task.cfg.tree_parser is None
    assert model.align_dict is None
    assert len(model.translate(TREES)) == len(model.parse(TREES)) == 4


def test_training_goes_on_with_the_command_s_paths(checkpoint, trained):
    shutil.move(checkpoint, checkpoint.with_name("checkpoint_last.pt"))
    log = train(trained.data, checkpoint.parent, "--max-epoch", 5, "--no-save").log
    assert "Loaded checkpoint" in log


def test_an_archive_is_no_model_folder(trained, tmp_path):
    archive = tmp_path / "model.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(trained.best, "../../escaped.pt")
    with pytest.raises(DataFolderError, match="no such checkpoint"):
        hub.from_pretrained(archive, data_name_or_path=trained.data)


@pytest.mark.parametrize("name", ["../dict.label.en.txt", "/etc/hostname", "..", "sub/dict.label.en.txt"])
def test_a_manifest_names_files_of_its_folder_only(data_bin, tmp_path, name):
    folder = shutil.copytree(data_bin, tmp_path / "data-bin")
    path = folder / "tree.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**values, "target_lang": name}), encoding="utf-8")
    with pytest.raises(CorruptFileError, match="outside"):
        Manifest.load(folder)
    labels = values["sides"]["en"]["labels"]
    values["sides"]["en"]["labels"] = name
    values["files"][name] = values["files"].pop(labels)
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(CorruptFileError, match="outside"):
        Manifest.load(folder)
