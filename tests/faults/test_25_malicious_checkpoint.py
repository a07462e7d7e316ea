"""A checkpoint that would run code when it is unpickled is refused wherever one is loaded."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest
import torch

from tests.end_to_end.commands import run
from tests.end_to_end.fixtures import TASK, train
from tree_fairseq import hub
from tree_fairseq.commands import average
from tree_fairseq.errors import CheckpointError, ParserError
from tree_fairseq.parsing.parsers import ParserOptions, build_parser


class Payload:
    """Writes a file when it is unpickled."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


@pytest.fixture
def marker(tmp_path) -> Path:
    """The file that must not appear."""
    path = tmp_path / "marker"
    yield path
    assert not path.exists()


@pytest.fixture(params=["zip", "legacy"])
def checkpoint(request, trained, marker, tmp_path) -> Path:
    """A good checkpoint with the payload in its middle, in both of torch's formats."""
    state = torch.load(trained.best, weights_only=True)
    state["extra_state"]["payload"] = Payload(marker)
    path = tmp_path / "bad" / "checkpoint_best.pt"
    path.parent.mkdir()
    torch.save(state, path, _use_new_zipfile_serialization=request.param == "zip")
    return path


def test_the_payload_is_one(checkpoint, marker):
    torch.load(checkpoint, weights_only=False)
    assert marker.exists()
    marker.unlink()


@pytest.mark.parametrize("command", ["generate", "interactive", "validate"])
def test_commands_refuse_it(command, trained, checkpoint):
    with pytest.raises(CheckpointError, match="could run code"):
        run(command, trained.data, *TASK, "--path", checkpoint, "--cpu", "--batch-size", 1, stdin="(NN a)\n")


def test_an_ensemble_refuses_it(trained, checkpoint):
    with pytest.raises(CheckpointError, match=checkpoint.name):
        run("generate", trained.data, *TASK, "--path", f"{trained.best}:{checkpoint}", "--cpu")


@pytest.mark.parametrize("flag", ["--finetune-from-model", "--restore-file"])
def test_training_refuses_it(flag, trained, checkpoint, tmp_path):
    with pytest.raises(CheckpointError, match="could run code"):
        train(trained.data, tmp_path / "out", flag, checkpoint)


def test_training_does_not_resume_it(trained, checkpoint):
    shutil.move(checkpoint, checkpoint.with_name("checkpoint_last.pt"))
    with pytest.raises(CheckpointError, match="could run code"):
        train(trained.data, checkpoint.parent)


def test_the_hub_refuses_it(trained, checkpoint):
    with pytest.raises(CheckpointError, match="could run code"):
        hub.from_pretrained(checkpoint.parent, data_name_or_path=trained.data)


def test_averaging_refuses_it(trained, checkpoint, tmp_path, caplog):
    inputs = [str(trained.best), str(checkpoint)]
    assert average.main(["--inputs", *inputs, "--output", str(tmp_path / "average.pt")]) == 1
    assert str(checkpoint) in caplog.text and not (tmp_path / "average.pt").exists()


def test_a_bare_pickle_is_refused(trained, marker, tmp_path):
    path = tmp_path / "checkpoint_best.pt"
    path.write_bytes(pickle.dumps({"model": {}, "args": Payload(marker)}))
    with pytest.raises(Exception) as caught:
        run("generate", trained.data, *TASK, "--path", path, "--cpu")
    assert not isinstance(caught.value, AssertionError)


def test_a_parser_s_model_is_refused(marker, tmp_path):
    bundled = Path(__file__).resolve().parents[2] / "examples" / "quickstart" / "stanza-en"
    folder = shutil.copytree(bundled, tmp_path / "parser")
    model = torch.load(folder / "constituency.pt", map_location="cpu", weights_only=True)
    model["payload"] = Payload(marker)
    torch.save(model, folder / "constituency.pt")
    with pytest.raises((ParserError, pickle.UnpicklingError, RuntimeError)):
        parser = build_parser(ParserOptions(name="stanza", lang="en", parser_dir=str(folder)))
        parser.parse([["the", "man", "sleeps", "."]])
