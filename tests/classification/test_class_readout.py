"""The read-out of classes."""

from __future__ import annotations

import torch

from tree_fairseq.classification.classifier import ClassReadout


def test_a_linear_layer_over_states_of_any_shape():
    torch.manual_seed(0)
    readout = ClassReadout(4, 3, 0.5).double().eval()
    torch.nn.init.normal_(readout.linear.bias)
    states = torch.randn(2, 5, 4, dtype=torch.float64)
    scores = readout(states)
    assert scores.shape == (2, 5, 3)
    for row in range(2):
        for column in range(5):
            expected = readout.linear.weight @ states[row, column] + readout.linear.bias
            torch.testing.assert_close(scores[row, column], expected)


def test_states_are_dropped_in_training_alone():
    readout = ClassReadout(4, 3, 1.0)
    states = torch.randn(2, 4)
    assert torch.equal(readout(states), torch.zeros(2, 3))
    assert readout.eval()(states).any()
