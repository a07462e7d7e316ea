"""Fault 22: a loss or gradients that are NaN or infinite, and a loss scale at its floor.

Training stops before the update, names the sentences, and ``tree-fairseq replay`` finds the guilty ones among them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.models.transformer import TransformerEncoderBase

from tests.end_to_end.commands import PLUGIN, run, run_in_process, script
from tests.end_to_end.fixtures import STOCK_SIZES, preprocess
from tests.end_to_end.tiny_corpus import write_corpus
from tree_fairseq.commands import replay
from tree_fairseq.data_bin.token_files import load_dictionary
from tree_fairseq.errors import CorruptFileError, NonFiniteError
from tree_fairseq.repairs.nonfinite_batches import NonFiniteBatch

TREES = ("--task", "tree_translation", "--arch", "tree_transformer_tiny")
STOCK = ("--task", "translation", "--arch", "transformer", *STOCK_SIZES)

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
    from fairseq.data import data_utils

    dictionary = load_dictionary(data, "en")
    sentences = data_utils.load_indexed_dataset(str(data / "train.en-de.en"), dictionary)
    counts = Counter(token for number in range(len(sentences)) for token in set(sentences[number].tolist()))
    word = next(token for token, count in counts.items() if count == 1 and token >= dictionary.nspecial)
    [number] = [number for number in range(len(sentences)) if word in sentences[number].tolist()]
    return word, number


def train(data: Path, folder: Path, *flags: object) -> str:
    """Trains; returns the message of the error that ends it."""
    with pytest.raises(NonFiniteError) as caught:
        run("train", data, *FIXED, "--max-epoch", 3, "--save-dir", folder, *flags)
    return str(caught.value)


@pytest.fixture
def planted(monkeypatch, rare):
    """The embedding of a word becomes NaN on its way into the first layer."""
    word, _ = rare
    forward = TransformerEncoderBase.forward_embedding

    def with_nan(self, src_tokens, *args, **kwargs):
        x, embedded = forward(self, src_tokens, *args, **kwargs)
        return x.masked_fill((src_tokens == word)[..., None], math.nan), embedded

    monkeypatch.setattr(TransformerEncoderBase, "forward_embedding", with_nan)


@pytest.mark.parametrize("flags", [(*TREES, "--update-freq", 2), STOCK], ids=["trees", "stock"])
def test_a_loss_that_is_nan_names_its_batch_and_replays(data, rare, planted, tmp_path, flags, capsys):
    _, number = rare
    message = train(data, tmp_path, *flags)
    found = json.loads((tmp_path / "crash.json").read_text())
    assert "the loss is nan" in message and f"update {found['update']} in epoch 1" in message
    assert f"tree-fairseq replay {tmp_path / 'crash.json'}" in message
    sizes = list(map(len, found["batches"]))
    assert len(found["losses"]) == len(sizes) == (2 if "--update-freq" in flags else 1) and max(sizes) <= 4
    for loss, ids in zip(found["losses"], found["batches"]):
        assert math.isnan(float(loss)) == (number in ids)
    assert any(number in ids for ids in found["batches"])
    assert found["seed"] == 5 and found["subset"] == "train" and found["data"] == [str(data)]

    # The weights are those before this update.
    state = torch.load(tmp_path / "crash.pt", map_location="cpu", weights_only=True)
    assert state["optimizer_history"][-1]["num_updates"] == found["update"] - 1
    assert all(weight.isfinite().all() for weight in state["model"].values())

    capsys.readouterr()
    before = (tmp_path / "crash.json").read_bytes(), (tmp_path / "crash.pt").read_bytes()
    assert replay.main([str(tmp_path / "crash.json"), "--cpu"]) == 1
    printed = capsys.readouterr().out
    assert "NaN detected in output of" in printed
    assert f"sentence {number} alone: its loss is nan" in printed and printed.count(" alone: ") == 1
    assert before == ((tmp_path / "crash.json").read_bytes(), (tmp_path / "crash.pt").read_bytes())


def test_a_batch_that_is_finite_again_says_so(data, rare, tmp_path, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        forward = LabelSmoothedCrossEntropyCriterion.compute_loss

        def infinite(self, model, net_output, sample, reduce=True):
            loss, nll_loss = forward(self, model, net_output, sample, reduce)
            return loss + math.inf * bool((sample["id"] == rare[1]).any()) if rare[1] in sample[
                "id"
            ] else loss, nll_loss

        patch.setattr(LabelSmoothedCrossEntropyCriterion, "compute_loss", infinite)
        message = train(data, tmp_path, *TREES)
        # The gradients of a sum with infinity are finite: fairseq alone would go on.
        assert "the loss is inf" in message
        assert replay.main([str(tmp_path / "crash.json")]) == 1
        assert f"sentence {rare[1]} alone: its loss is inf" in capsys.readouterr().out
    assert replay.main([str(tmp_path / "crash.json")]) == 0
    assert "finite this time" in capsys.readouterr().out


def test_gradients_that_are_nan_while_the_loss_is_not(data, rare, tmp_path, capsys, monkeypatch):
    word, number = rare
    forward = TransformerEncoderBase.forward_embedding

    def with_root(self, src_tokens, *args, **kwargs):
        x, embedded = forward(self, src_tokens, *args, **kwargs)
        # sqrt has an infinite slope at 0, and 0 times infinity is not a number.
        return x + 0 * (x * (src_tokens != word)[..., None]).relu().mul(0).sqrt() * (src_tokens == word).any(), embedded

    monkeypatch.setattr(TransformerEncoderBase, "forward_embedding", with_root)
    message = train(data, tmp_path, *TREES)
    assert "the loss is finite, but the gradients are not" in message
    assert replay.main([str(tmp_path / "crash.json")]) == 1
    assert "SqrtBackward0" in capsys.readouterr().out


def test_a_loss_scale_at_its_floor(data, rare, planted, tmp_path, capsys):
    scale = ("--fp16", "--memory-efficient-fp16", "--fp16-init-scale", 1, "--min-loss-scale", 1)
    message = train(data, tmp_path, *TREES, *scale)
    assert "--min-loss-scale" in message and "loss scale" in message
    found = json.loads((tmp_path / "crash.json").read_text())
    assert any(rare[1] in ids for ids in found["batches"])
    assert replay.main([str(tmp_path / "crash.json")]) == 1
    assert f"sentence {rare[1]} alone: its loss is nan" in capsys.readouterr().out


def test_each_of_two_processes_names_its_own_batch(data, rare, tmp_path, capsys):
    word, number = rare
    run("train", data, *TREES, *FIXED, "--save-dir", tmp_path / "one", "--max-update", 1)
    state = torch.load(tmp_path / "one" / "checkpoint_last.pt", map_location="cpu", weights_only=True)
    state["model"]["encoder.embed_tokens.weight"][word] = math.nan
    torch.save(state, tmp_path / "nan.pt")
    again = ("--restore-file", tmp_path / "nan.pt", "--reset-optimizer", "--reset-dataloader", "--reset-meters")
    together = ("--distributed-world-size", 2, "--save-dir", tmp_path / "two", "--user-dir", PLUGIN, "--num-workers", 0)
    done = run_in_process([script("fairseq-train"), data, *TREES, *FIXED, *again, *together])
    assert done.returncode != 0 and "each process has written a file" in done.stdout
    assert "tree-fairseq replay" in done.stdout and "Traceback" not in done.stdout
    found = [NonFiniteBatch.load(tmp_path / "two" / f"crash-{rank}.json") for rank in range(2)]
    ids = [set(sum(batch.batches, [])) for batch in found]
    assert not ids[0] & ids[1]
    guilty = 0 if number in ids[0] else 1
    assert number in ids[guilty] and not found[guilty].is_finite and found[1 - guilty].is_finite
    capsys.readouterr()
    assert replay.main([str(tmp_path / "two" / f"crash-{guilty}.json"), "--cpu"]) == 1
    assert f"sentence {number} alone: its loss is nan" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["{}", "[]", '{"update": 1}', "x"])
def test_another_file_is_refused(tmp_path, content):
    (tmp_path / "crash.json").write_text(content)
    with pytest.raises(CorruptFileError, match="crash.json"):
        NonFiniteBatch.load(tmp_path / "crash.json")
    assert replay.main([str(tmp_path / "crash.json")]) == 1
    assert replay.main([str(tmp_path / "missing.json")]) == 1
