"""Classifiers that read no trees, against their encoders example by example."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.classification.documents import assert_gradients_equal, build_classifier
from tests.nn.tiny import PAD

TEXTS = [[4, 5, 6], [7], [8, 8, 4, 5, 6, 7, 4], [5, 4]]


def batch() -> tuple[Tensor, Tensor]:
    tokens = nn.utils.rnn.pad_sequence([torch.tensor(text) for text in TEXTS], batch_first=True, padding_value=PAD)
    return functional.pad(tokens, (0, 1), value=PAD), torch.tensor([len(text) for text in TEXTS])


def test_the_transformer_is_read_at_the_mean():
    model = build_classifier("transformer_classifier_tiny")
    linear, expected = model.readout.linear, []
    for text in TEXTS:
        states = model.encoder(torch.tensor([text]), torch.tensor([len(text)]))["encoder_out"][0][:, 0]
        expected.append(linear.weight @ (sum(states) / len(text)) + linear.bias)
    found, expected = model(*batch())["logits"], torch.stack(expected)
    torch.testing.assert_close(found, expected)
    assert_gradients_equal(model, found, expected)


@pytest.mark.parametrize("layers", [1, 2])
def test_the_lstm_is_read_at_both_ends(layers):
    model = build_classifier("lstm_classifier_tiny", "--encoder-layers", str(layers))
    lstm, linear, width = model.encoder.lstm, model.readout.linear, model.encoder.hidden_size
    weights = dict(lstm.named_parameters())

    def run(inputs: list[Tensor], suffix: str) -> list[Tensor]:
        h = c = torch.zeros(1, width, dtype=torch.float64)
        states = []
        for x in inputs:
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            h, c = torch.lstm_cell(x[None], (h, c), *(weights[f"{name}_{suffix}"] for name in names))
            states.append(h[0])
        return states

    expected = []
    for text in TEXTS:
        states = list(model.encoder.embed_tokens(torch.tensor(text)))
        for layer in range(layers):
            forward = run(states, f"l{layer}")
            backward = run(states[::-1], f"l{layer}_reverse")[::-1]
            states = [torch.cat(pair) for pair in zip(forward, backward)]
        last = torch.cat([forward[-1], backward[0]])
        expected.append(linear.weight @ last + linear.bias)
    found, expected = model(*batch())["logits"], torch.stack(expected)
    torch.testing.assert_close(found, expected)
    assert_gradients_equal(model, found, expected)
