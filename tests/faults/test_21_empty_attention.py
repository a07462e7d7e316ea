"""Rows of attention without anything to attend to, sentences without nodes, batches of padding."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.nn.tiny import EOS, PAD, build, net_input, pairs, tiny_task
from tree_fairseq.nn.tree_batch import NodeArrays, collate_trees

TASK = tiny_task()


def inputs(*lengths: int, width: int = 0, empty_rows: int = 0) -> dict:
    batch = net_input(pairs(TASK, *lengths), width=width)
    if empty_rows:
        nothing = NodeArrays(*(np.zeros(0, np.int32) for _ in range(4)))
        trees = [pair.tree for pair in pairs(TASK, *lengths)] + [nothing] * empty_rows
        batch["source_spans"] = collate_trees(trees, PAD)
        for name in ("src_tokens", "prev_output_tokens"):
            padding = torch.full((empty_rows, batch[name].size(1)), PAD)
            batch[name] = torch.cat([batch[name], padding])
        batch["prev_output_tokens"][-empty_rows:, 0] = EOS  # as in every batch of fairseq's
        batch["src_lengths"] = torch.cat([batch["src_lengths"], torch.zeros(empty_rows, dtype=torch.long)])
    return batch


CASES = {
    "one leaf": inputs(1),
    "one leaf beside a tree": inputs(1, 8),
    "no node at all": inputs(1, 1, 1),
    "wide padding": inputs(1, 2, width=20),
    "end of sentence alone": inputs(0),
    "end of sentence beside a tree": inputs(0, 5),
    "rows of padding": inputs(4, 1, empty_rows=2),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "flags", [(), ("--no-subtree-mask",), ("--no-node-cross-attention",)], ids=["full", "unmasked", "leaves"]
)
def test_outputs_and_gradients_are_finite(case, flags, dtype):
    model = build(TASK, *flags).to(dtype).train()
    batch = CASES[case]
    output = model(**batch)[0]
    assert torch.isfinite(output).all()
    output.float().logsumexp(-1).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all(), name


@pytest.mark.parametrize("case", CASES)
def test_encoder_states_are_finite_everywhere(case):
    batch = {name: value for name, value in CASES[case].items() if name != "prev_output_tokens"}
    states = build(TASK).encoder(**batch)["encoder_out"][0]
    assert torch.isfinite(states).all()


@pytest.mark.parametrize(
    "case", ["one leaf", "one leaf beside a tree", "end of sentence alone", "end of sentence beside a tree"]
)
def test_gradients_equal_finite_differences(case, monkeypatch):
    """In the direction of a random change of every weight, in double precision throughout."""
    monkeypatch.setattr("fairseq.utils.softmax", lambda scores, dim, onnx_trace=False: scores.softmax(dim))
    model = build(TASK, "--dropout", "0", "--activation-fn", "tanh").double()  # without relu's kinks
    batch = CASES[case]
    parameters = list(model.parameters())
    torch.manual_seed(0)
    directions = [torch.randn_like(parameter) for parameter in parameters]
    for embedding in (model.encoder.embed_tokens, model.encoder.embed_labels, model.decoder.embed_tokens):
        directions[[id(parameter) for parameter in parameters].index(id(embedding.weight))][PAD] = 0

    def loss() -> torch.Tensor:
        return model(**batch)[0].logsumexp(-1).sum()

    gradients = torch.autograd.grad(loss(), parameters, allow_unused=True)
    slope = sum(
        (gradient * direction).sum() for gradient, direction in zip(gradients, directions) if gradient is not None
    )
    step, values = 1e-6, []
    with torch.no_grad():
        for sign in (1, -1):
            for parameter, direction in zip(parameters, directions):
                parameter += sign * step * direction
            values.append(loss())
            for parameter, direction in zip(parameters, directions):
                parameter -= sign * step * direction
    torch.testing.assert_close((values[0] - values[1]) / (2 * step), slope, rtol=1e-5, atol=1e-6)
