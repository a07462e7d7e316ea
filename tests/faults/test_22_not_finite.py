"""Fault 22: gradients that are NaN or infinite, and a loss scale at its floor.

Training stops before the update, names the sentences, and ``tree-fairseq replay`` finds the guilty ones among them.
With several processes, training_steps/test_ranks.py has the test.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from fairseq.data import data_utils
from fairseq.models.transformer import TransformerEncoderBase
from fairseq.trainer import Trainer

from tests.end_to_end.commands import run
from tests.end_to_end.fixtures import STOCK_SIZES, preprocess
from tests.end_to_end.tiny_corpus import write_corpus
from tree_fairseq.commands import replay
from tree_fairseq.data_bin.token_files import load_dictionary
from tree_fairseq.errors import CorruptFileError, NonFiniteError
from tree_fairseq.repairs.nonfinite_batches import NonFiniteBatch

TREES = ("--task", "tree_translation", "--arch", "tree_transformer_tiny")
STOCK = ("--task", "translation", "--arch", "transformer", *STOCK_SIZES)
FLOOR = ("--fp16", "--memory-efficient-fp16", "--fp16-init-scale", 1, "--min-loss-scale", 1)
FIXED = (
    *("--optimizer", "adam", "--lr", "1e-3", "--batch-size", 4, "--required-batch-size-multiple", 1, "--seed", 5),
    *("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1, "--no-progress-bar", "--cpu"),
)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("nan")
    preprocess(write_corpus(folder / "text", sizes=(24, 12, 4)), folder / "bin")
    return folder / "bin"


@pytest.fixture(scope="module")
def rare(data) -> tuple[int, int]:
    """The id of a word that only one training sentence has, and the number of the sentence."""
    dictionary = load_dictionary(data, "en")
    sentences = data_utils.load_indexed_dataset(str(data / "train.en-de.en"), dictionary)
    counts = Counter(token for number in range(len(sentences)) for token in set(sentences[number].tolist()))
    word = next(token for token, count in counts.items() if count == 1 and token >= dictionary.nspecial)
    [number] = [number for number in range(len(sentences)) if word in sentences[number].tolist()]
    return word, number


def plant(monkeypatch, change) -> None:
    """Changes the embeddings ``[B, N, D]`` on their way into the first layer; ``change`` also gets the tokens."""
    forward = TransformerEncoderBase.forward_embedding

    def forward_embedding(self, src_tokens, *args, **kwargs):
        x, embedded = forward(self, src_tokens, *args, **kwargs)
        return change(x, src_tokens), embedded

    monkeypatch.setattr(TransformerEncoderBase, "forward_embedding", forward_embedding)


def train(data: Path, folder: Path, *flags: object) -> dict:
    """Trains until an error ends it; returns what the file says."""
    with pytest.raises(NonFiniteError) as caught:
        run("train", data, *FIXED, "--max-epoch", 3, "--save-dir", folder, *flags)
    found = json.loads((folder / "crash.json").read_text())
    message = str(caught.value)
    assert f"update {found['update']} in epoch 1: {found['cause']}" in message
    assert f"tree-fairseq replay {folder / 'crash.json'}" in message
    return found


@pytest.mark.parametrize(
    "flags", [(*TREES, "--update-freq", 2), STOCK, (*TREES, *FLOOR)], ids=["trees", "stock", "half precision"]
)
def test_a_loss_that_is_nan_names_its_batch_and_replays(data, rare, monkeypatch, tmp_path, flags, capsys):
    word, number = rare
    plant(monkeypatch, lambda x, tokens: x.masked_fill((tokens == word)[..., None], math.nan))
    found = train(data, tmp_path, *flags)
    assert ("loss scale" if "--fp16" in flags else "gradients are Nan/Inf") in found["cause"]
    assert [*map(len, found["batches"])] == [4] * (2 if "--update-freq" in flags else 1)
    assert any(number in ids for ids in found["batches"])
    assert found["seed"] == 5 and found["subset"] == "train" and found["data"] == [str(data)]
    # The weights are those before this update.
    state = torch.load(tmp_path / "crash.pt", map_location="cpu", weights_only=True)
    assert state["optimizer_history"][-1]["num_updates"] == found["update"] - 1
    assert all(weight.isfinite().all() for weight in state["model"].values())
    capsys.readouterr()
    before = (tmp_path / "crash.json").read_bytes(), (tmp_path / "crash.pt").read_bytes()
    assert replay.main([str(tmp_path / "crash.json")]) == 1
    printed = capsys.readouterr().out
    assert "NaN detected in output of" in printed
    assert f"sentence {number} alone: its loss is nan" in printed and printed.count(" alone: ") == 1
    assert before == ((tmp_path / "crash.json").read_bytes(), (tmp_path / "crash.pt").read_bytes())


def test_gradients_that_are_nan_while_the_loss_is_not(data, rare, tmp_path, capsys, monkeypatch):
    word, _ = rare

    def with_root(x, tokens):
        # sqrt has an infinite slope at 0, and 0 times infinity is not a number.
        return x + 0 * (x * (tokens != word)[..., None]).relu().mul(0).sqrt() * (tokens == word).any()

    with monkeypatch.context() as patch:
        plant(patch, with_root)
        train(data, tmp_path, *TREES)
        assert replay.main([str(tmp_path / "crash.json")]) == 1
        printed = capsys.readouterr().out
        assert "SqrtBackward0" in printed and "but its gradients are not finite" in printed
    assert replay.main([str(tmp_path / "crash.json")]) == 0
    assert "finite this time" in capsys.readouterr().out


def test_the_trainer_keeps_the_number_of_its_epoch():
    trainer = Mock(spec=["lr_step_begin_epoch", "task", "get_model"], quantizer=None, tpu=False)
    Trainer.begin_epoch(trainer, 3)
    assert trainer.epoch_begun == 3


@pytest.mark.parametrize("content", ["{}", "[]", '{"update": 1}', "x"])
def test_another_file_is_refused(tmp_path, content):
    (tmp_path / "crash.json").write_text(content)
    with pytest.raises(CorruptFileError, match="crash.json"):
        NonFiniteBatch.load(tmp_path / "crash.json")
    assert replay.main([str(tmp_path / "crash.json")]) == 1
    assert replay.main([str(tmp_path / "missing.json")]) == 1
