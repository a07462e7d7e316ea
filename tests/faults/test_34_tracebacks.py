"""Errors that a user can cause end a command with their message and an exit status, and without a traceback."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.data_bin.corpora import write_lines
from tests.end_to_end.commands import PLUGIN, run_in_process, script
from tests.end_to_end.fixtures import TASK, data_bin  # noqa: F401

OURS = ("--user-dir", PLUGIN)
UPDATES = ("--optimizer", "adam", "--lr", "0.001", "--max-tokens", 320, "--cpu")
TRAIN = ("--arch", "tree_transformer_tiny", *UPDATES)


def last_lines(done: subprocess.CompletedProcess, status: int = 1) -> str:
    """What a command printed, which failed with a status and without a traceback."""
    assert done.returncode == status, done.stdout[-2000:]
    assert "Traceback" not in done.stdout
    return done.stdout


def test_preprocessing_names_the_line(tmp_path):
    write_lines(tmp_path / "train.en", ["(S (NP (DT the) (NN dog)) (VP (VBZ barks)))", "(S (NP (DT the)"])
    write_lines(tmp_path / "train.de", ["der Hund bellt", "der"])
    command = [script("fairseq-preprocess"), *TASK, *OURS, "-s", "en", "-t", "de", "--trainpref", tmp_path / "train"]
    command += ["--destdir", tmp_path / "bin", "--tree-parser", "brackets"]
    printed = last_lines(run_in_process(command))
    assert printed.splitlines()[-1].startswith(f"{tmp_path / 'train.en'}:2:1: ")
    command[command.index(tmp_path / "train")] = tmp_path / "nowhere"
    assert "nowhere" in last_lines(run_in_process(command)).splitlines()[-1]
    assert not (tmp_path / "bin").exists()


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("fairseq-train", TRAIN),
        ("fairseq-validate", ("--path", "checkpoint.pt", "--cpu", "--batch-size", 4)),
        ("fairseq-generate", ("--path", "checkpoint.pt", "--cpu")),
        ("fairseq-interactive", ("--path", "checkpoint.pt", "--cpu")),
    ],
)
def test_every_command_names_the_file_that_is_wrong(data_bin, tmp_path, command, arguments):
    """The folder lacks its manifest, and then a checkpoint is missing."""
    folder = Path(shutil.copytree(data_bin, tmp_path / "data-bin"))
    (folder / "tree.json").unlink()
    checkpoint = tmp_path / "checkpoint.pt"
    arguments = [checkpoint if word == "checkpoint.pt" else word for word in arguments]
    saving = ["--save-dir", tmp_path / "checkpoints"] if command == "fairseq-train" else []
    printed = last_lines(run_in_process([script(command), folder, *TASK, *OURS, *arguments, *saving], input=""))
    assert str(checkpoint if command == "fairseq-validate" else folder) in "\n".join(printed.splitlines()[-2:])
    if command != "fairseq-train":
        printed = last_lines(run_in_process([script(command), data_bin, *TASK, *OURS, *arguments], input=""))
        assert f"Model file not found: {checkpoint}" in "\n".join(printed.splitlines()[-2:])


def test_what_fairseq_refuses_itself_is_a_message_too(data_bin, tmp_path):
    command = [script("fairseq-train"), data_bin, *TASK, *OURS, *TRAIN, "--share-all-embeddings"]
    printed = last_lines(run_in_process([*command, "--save-dir", tmp_path]))
    *_, message, hint = printed.splitlines()
    assert message == "--share-all-embeddings requires a joined dictionary" and "TREE_FAIRSEQ_TRACEBACK=1" in hint


def test_the_environment_brings_the_traceback_back(tmp_path):
    command = [script("fairseq-train"), tmp_path, *TASK, *OURS, *TRAIN, "--save-dir", tmp_path]
    asked = {"TREE_FAIRSEQ_TRACEBACK": "1"}
    for arguments in (command, [script("tree-fairseq"), "export", tmp_path]):
        last_lines(run_in_process(arguments))
        done = run_in_process(arguments, env=asked)
        assert done.returncode == 1 and "Traceback (most recent call last):" in done.stdout
        assert "tree_fairseq.errors." in done.stdout.splitlines()[-1]


def test_hydra_shows_the_message_alone(tmp_path):
    command = [script("fairseq-hydra-train"), "--config-dir", PLUGIN.parent / "examples/hydra"]
    command += ["--config-name", "tree_transformer_tiny", f"task.data={tmp_path}", f"common.user_dir={PLUGIN}"]
    quiet = {"PYTHONWARNINGS": "ignore::UserWarning"}  # hydra warns before it imports the plugin
    printed = last_lines(run_in_process(command, cwd=tmp_path, env=quiet))
    assert str(tmp_path) in printed.splitlines()[-1] and "HYDRA_FULL_ERROR" not in printed
    assert "Warning" not in printed


def test_the_console_script_itself_ends_so(tmp_path):
    """A real start, outside of the server that runs the commands of these tests."""
    command = [Path(sys.executable).with_name("fairseq-train"), "no-data", *TASK, *OURS, *TRAIN]
    assert "no-data" in last_lines(run_in_process(command, cwd=tmp_path)).splitlines()[-1]


MODEL = ("--arch", "transformer_tiny", *UPDATES, "--max-update", 1)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("tree-fairseq chekc data-bin", "tree-fairseq has no 'chekc'. Did you mean check?"),
        ("tree-fairseq score blue --run runs", "tree-fairseq score has no 'blue'. Did you mean bleu?"),
        ("tree-fairseq check data-bim", "data-bim: there is no such folder. Did you mean data-bin?"),
        ("tree-fairseq export nowhere", "nowhere: there is no such folder"),
        (
            "tree-fairseq parse wrods.en --tree-parser balanced",
            "wrods.en: there is no such file or folder. Did you mean words.en?",
        ),
        ("tree-fairseq average nowhere/a.pt nowhere/b.pt --output c.pt", "nowhere/a.pt: there is no such file"),
        (
            "tree-fairseq score wrods.en --references words.en",
            "wrods.en: there is no such file. Did you mean words.en?",
        ),
        (
            "tree-fairseq annotate data-bin -s de -t en --tree-parser balanced",
            "the folder holds trees of en-de, not of de-en: give -s en -t de",
        ),
        ("fairseq-train data-bin -s de -t en", "data-bin is of en-de, and de has no trees: give -s en -t de"),
        ("fairseq-train data-bim", "data-bim: there is no such folder. Did you mean data-bin?"),
        ("fairseq-train data-bin --valid-subset vaild", "data-bin has no split 'vaild', but test, train, valid"),
        ("fairseq-train data-bin --dataset-impl raw", "data-bin has a split 'valid', but not for these languages and"),
    ],
)
def test_a_wrong_name_is_answered_with_the_right_one(data_bin, tmp_path, command, message):
    (tmp_path / "data-bin").symlink_to(data_bin)
    write_lines(tmp_path / "words.en", ["the dog barks"])
    name, *arguments = command.split()
    more = (*TASK, *OURS, *MODEL, "--save-dir", tmp_path / "checkpoints") if name == "fairseq-train" else ()
    done = run_in_process([script(name), *arguments, *more], cwd=tmp_path)
    assert done.returncode != 0 and "Traceback" not in done.stdout
    assert message in done.stdout.splitlines()[-1]
