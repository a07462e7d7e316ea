"""Training steps are deterministic: the same seed gives the same bytes."""

from __future__ import annotations

import pytest
from fairseq import utils

from tests.training_steps.cases import CASES, FIRST, Step


@pytest.mark.parametrize("case", FIRST, ids=[case.arch for case in FIRST])
def test_the_same_seed_gives_the_same_bytes(case, folders):
    step, results = Step(case, folders), []
    for seed in (3, 3, 4):
        utils.set_torch_seed(seed)
        loss = step()
        gradients = {name: gradient.numpy().tobytes() for name, gradient in step.gradients().items()}
        results.append((loss.detach().numpy().tobytes(), gradients))
    assert results[0] == results[1]
    # Dropout depends on the seed.
    assert results[0][1] != results[2][1]


@pytest.mark.parametrize("name", ["tree_insertion_transformer_tiny on insertion", "treeformer_tiny on translation"])
def test_two_runs_see_the_same_batches_and_weights(name, folders):
    [case] = [case for case in CASES if case.name == name]
    losses = []
    for _ in range(2):
        step = Step(case, folders)
        utils.set_torch_seed(3)
        losses.append(step().item())
    assert losses[0] == losses[1]
