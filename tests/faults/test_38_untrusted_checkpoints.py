"""Every command that reads checkpoints, with every hostile checkpoint: no code runs, and nothing else is written."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from tests.end_to_end.commands import ROOT
from tests.end_to_end.fixtures import Training, train
from tests.faults.hostile_checkpoints import HARMLESS, OF_MODELS, REFUSED, RELEASED, Attacks, Payload
from tests.faults.limits import outcome
from tests.faults.model_commands import ALL, MODEL_COMMANDS, TRAIN_ONCE, Command
from tests.fork_server import CONSOLE_SCRIPTS
from tree_fairseq.__main__ import COMMANDS
from tree_fairseq.commands import average
from tree_fairseq.errors import ParserError
from tree_fairseq.parsing.parsers import ParserOptions, build_parser
from tree_fairseq.scoring import runs
from tree_fairseq.scoring.__main__ import SCORERS

WORST = ("payload", "evaluated", "released code")


def _train(flag: str) -> Command:
    return lambda data, path, output: train(data, output / "out", flag, path, *TRAIN_ONCE)


def _resume(data: Path, path: Path, output: Path) -> object:
    folder = output / "resumed"
    folder.mkdir()
    path.rename(folder / "checkpoint_last.pt")
    return train(data, folder, *TRAIN_ONCE)


def _average(_: Path, path: Path, output: Path) -> object:
    return average.main([str(path), str(path), "--output", str(output / "average.pt")])


COMMANDS_WITH_CHECKPOINTS: dict[str, Command] = {
    "train --restore-file": _train("--restore-file"),
    "train --finetune-from-model": _train("--finetune-from-model"),
    "train --save-dir": _resume,
    **MODEL_COMMANDS,
    "average": _average,
    "score --checkpoint": lambda _, path, output: str(runs.checkpoint_facts(path)),
}
WITHOUT_CHECKPOINTS = {
    "path", "parse", "annotate", "check", "export", "repairs", "options", "pieces",  # commands
    "regression", "rouge", "structural", "bleu", "classification", "seeds", "code", "sql",  # one function reads it
    "preprocess", "score", "tree-fairseq",
}  # fmt: skip
# These build the model that a checkpoint describes; training builds that of the command line.
BUILDING = {*MODEL_COMMANDS} - {"release"}


def test_every_command_has_a_row():
    """A new command reads no checkpoints, or it gets a row."""
    rows = {part for name in COMMANDS_WITH_CHECKPOINTS for part in name.split()}
    known = rows | WITHOUT_CHECKPOINTS
    assert {*COMMANDS, *SCORERS, *(name.removeprefix("fairseq-") for name in CONSOLE_SCRIPTS)} <= known


@pytest.fixture
def attacks(trained, marker) -> Attacks:
    return Attacks(trained.best, marker)


def _try(command: str, attack: str, attacks: Attacks, trained: Training, folder: Path, suffix: str = ".pt") -> str:
    folder = folder / f"{command} {attack}"
    (folder / "in").mkdir(parents=True)
    (folder / "out").mkdir()
    path = folder / "in" / f"model{suffix}"
    attacks.write(attack, path)
    found = outcome(lambda: COMMANDS_WITH_CHECKPOINTS[command](trained.data, path, folder / "out"))
    if found == "refused":
        left = [name for name in os.listdir(folder / "out") if name.endswith((".pt", ".html", ".safetensors"))]
        assert not left, (command, attack, left)
    return found


def _outcomes(command: str, names: Sequence[str], attacks: Attacks, good: Training, folder: Path, suffix: str) -> dict:
    """How a command ends with each attack, or with every fifth one and the worst: other commands have the others."""
    first = [*COMMANDS_WITH_CHECKPOINTS].index(command)
    tried = [name for number, name in enumerate(names) if ALL or name in WORST or (number - first) % 5 == 0]
    found = {}
    for attack in tried:
        try:
            found[attack] = _try(command, attack, attacks, good, folder, suffix)
        except AssertionError as error:
            found[attack] = f"{error}"
    return found


def _wrong(found: dict[str, str], may_do: set[str]) -> dict[str, str]:
    return {
        attack: end for attack, end in found.items() if end != "refused" and (end, attack in may_do) != ("done", True)
    }


@pytest.mark.parametrize("command", COMMANDS_WITH_CHECKPOINTS)
def test_hostile_checkpoints(command, attacks, trained, tmp_path):
    found = _outcomes(command, [*REFUSED, *OF_MODELS, *HARMLESS], attacks, trained, tmp_path, ".pt")
    may_do = set(HARMLESS) | (set() if command in BUILDING else set(OF_MODELS))
    if command.startswith("train"):
        may_do |= {"pipe", "device", "folder"}  # no file: training begins
    assert _wrong(found, may_do) == {}


@pytest.mark.parametrize("command", [name for name in COMMANDS_WITH_CHECKPOINTS if name != "train --save-dir"])
def test_hostile_released_models(command, attacks, trained, tmp_path):
    found = _outcomes(command, RELEASED, attacks, trained, tmp_path, ".safetensors")
    may_do = {"pipe", "device"} if command.startswith("train") else set()
    if command not in BUILDING:
        may_do |= {"released code", "wrong settings"}
    assert _wrong(found, may_do) == {}


def test_a_parser_s_model_that_would_run_code_is_refused(marker, tmp_path):
    folder = shutil.copytree(ROOT / "examples" / "quickstart" / "stanza-en", tmp_path / "parser")
    model = torch.load(folder / "constituency.pt", map_location="cpu", weights_only=True)
    torch.save({**model, "payload": Payload(marker)}, folder / "constituency.pt")
    with pytest.raises((ParserError, pickle.UnpicklingError, RuntimeError)):
        parser = build_parser(ParserOptions(name="stanza", lang="en", parser_dir=str(folder)))
        parser.parse([["the", "man", "sleeps", "."]])


def test_a_library_of_parsers_cannot_ask_for_code(marker, tmp_path, monkeypatch):
    """As Stanza before 1.13 does if a file is no weights alone."""
    stanza = pytest.importorskip("stanza")
    torch.save(Payload(marker), tmp_path / "constituency.pt")
    load = lambda *_, constituency_model_path, **__: torch.load(constituency_model_path, weights_only=False)
    monkeypatch.setattr(stanza, "Pipeline", load)
    for name in ("tagger.pt", "pretrain.pt"):
        (tmp_path / name).touch()
    with pytest.raises(ParserError, match="Stanza cannot load its models"):
        build_parser(ParserOptions(name="stanza", parser_dir=str(tmp_path))).inventory()


def test_the_traps_would_run_code(attacks, marker, tmp_path):
    for attack in ("payload", "old payload"):
        attacks.write(attack, tmp_path / "model.pt")
        torch.load(tmp_path / "model.pt", weights_only=False)
        assert marker.exists()
        marker.unlink()
    eval(attacks.evaluated_settings()["encoder_layers"])
    assert marker.exists()
    marker.unlink()
