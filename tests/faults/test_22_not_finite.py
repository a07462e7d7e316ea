"""Fault 22: gradients that are NaN or infinite, and a loss scale at its floor.

Training stops before the update and names its sentences. With several processes,
training_steps/test_ranks.py has the test.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest
import torch
from fairseq.data import data_utils
from fairseq.models.transformer import TransformerEncoderBase

from tests.end_to_end.commands import run
from tests.end_to_end.fixtures import STOCK_SIZES, preprocess
from tests.end_to_end.tiny_corpus import write_corpus
from tree_fairseq.data_bin.token_files import load_dictionary
from tree_fairseq.errors import NonFiniteError

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
    with pytest.raises(NonFiniteError) as caught:
        run("train", data, *FIXED, "--max-epoch", 3, "--save-dir", folder, *flags)
    found = json.loads((folder / "crash.json").read_text())
    message = str(caught.value)
    assert f"update {found['update']}: {found['cause']}. Its {len(found['sentences'])} sentences of train" in message
    assert str(folder / "crash.json") in message and str(folder / "crash.pt") in message
    return found


@pytest.mark.parametrize(
    "flags", [(*TREES, "--update-freq", 2), STOCK, (*TREES, *FLOOR)], ids=["trees", "stock", "half precision"]
)
def test_a_loss_that_is_nan_names_its_sentences(data, rare, monkeypatch, tmp_path, flags):
    word, number = rare
    plant(monkeypatch, lambda x, tokens: x.masked_fill((tokens == word)[..., None], math.nan))
    found = train(data, tmp_path, *flags)
    assert ("loss scale" if "--fp16" in flags else "gradients are Nan/Inf") in found["cause"]
    assert len(found["sentences"]) == (8 if "--update-freq" in flags else 4)
    assert number in found["sentences"]
    # The weights are those before this update.
    state = torch.load(tmp_path / "crash.pt", map_location="cpu", weights_only=True)
    assert state["optimizer_history"][-1]["num_updates"] == found["update"] - 1
    assert all(weight.isfinite().all() for weight in state["model"].values())


def test_gradients_that_are_nan_while_the_loss_is_not(data, rare, tmp_path, monkeypatch):
    word, _ = rare

    def with_root(x, tokens):
        # sqrt has an infinite slope at 0, and 0 times infinity is not a number.
        return x + 0 * (x * (tokens != word)[..., None]).relu().mul(0).sqrt() * (tokens == word).any()

    plant(monkeypatch, with_root)
    assert "gradients are Nan/Inf" in train(data, tmp_path, *TREES)["cause"]
