"""A stock transformer with a bias by distance, in fairseq's commands."""

from __future__ import annotations

import pytest
import torch

from tests.end_to_end.fixtures import TASK, Training, train
from tests.end_to_end.roads import take_all

ARCH = "transformer_distance_bias_tiny"


@pytest.fixture(scope="module")
def biased(stock_trained, tmp_path_factory) -> Training:
    flags = ("--finetune-from-model", stock_trained.best, "--max-epoch", 1)
    return train(stock_trained.data, tmp_path_factory.mktemp("biased"), *flags, arch=ARCH)


def test_training_goes_on_from_a_stock_transformer(stock_trained, biased):
    assert "weights that the checkpoint does not have, left as initialised: encoder.layers.0" in biased.log
    model = torch.load(biased.best, weights_only=True)["model"]
    tables = {name: table for name, table in model.items() if ".distance_bias." in name}
    assert len(tables) == 2 and all(table.shape == (17, 4) and table.any() for table in tables.values())
    stock = torch.load(stock_trained.best, weights_only=True)["model"]
    assert set(model) == {*stock, *tables}


def test_all_roads_agree(biased, corpus, tmp_path):
    lines = (corpus / "test.en").read_text(encoding="utf-8").splitlines()
    take_all(biased.data, biased.best, TASK, lines, tmp_path, beam=3, max_len_b=20)
