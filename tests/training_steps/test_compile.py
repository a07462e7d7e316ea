"""Encoder layers of each method under torch.compile: traced whole, with the same loss and gradients."""

from __future__ import annotations

import pytest
import torch

from tests.training_steps.cases import CASES, Step

NAMES = (
    "tree_transformer_tiny on translation",
    "tree_positional_transformer_tiny on tree-to-tree",
    "tree_transformer_classifier_tiny on classes of nodes",
)


# torch reads the gradients of tensors that have none while it traces.
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("case", [case for case in CASES if case.name in NAMES], ids=lambda case: case.name)
def test_encoder_layers_compile(case, folders):
    step = Step(case, folders).without_dropout()
    expected = step()
    gradients = {name: gradient.clone() for name, gradient in step.gradients().items()}
    torch._dynamo.reset()
    encoder = step.model.encoder
    layers = encoder.layers if hasattr(encoder, "layers") else encoder.rows.layers
    for layer in layers:
        # A program in one piece: what cannot be traced is an error.
        layer.compile(backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(step(), expected, rtol=1e-5, atol=1e-5)
    found = step.gradients()
    assert found.keys() == gradients.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-5, msg=name)
    torch._dynamo.reset()
