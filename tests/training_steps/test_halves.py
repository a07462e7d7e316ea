"""Training steps in half precision, as far as CPUs compute them, and long sums against double precision."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from fairseq.optim import build_optimizer
from fairseq.optim.fp16_optimizer import MemoryEfficientFP16Optimizer
from torch.utils._python_dispatch import TorchDispatchMode

from tests.training_steps.cases import FIRST, Step
from tree_fairseq.nn.tree_lstm import TreeLSTM
from tree_fairseq.tree_positional.lstm_model import TopDownLSTM
from tree_fairseq.tree_positional.positions import TreePositions, TreePositionsConfig

HALVES = {torch.bfloat16: 2**-8, torch.float16: 2**-11}  # Both kinds and their relative precision


@pytest.mark.parametrize("case", FIRST, ids=[case.arch for case in FIRST])
def test_a_step_in_half_precision_is_close_to_one_in_single(case, folders):
    step = Step(case, folders).without_dropout()
    expected = step().item()
    # The finer one first: each casts the weights of the one before.
    for dtype, precision in reversed(HALVES.items()):
        loss = step.in_precision(dtype)()
        assert loss.item() == pytest.approx(expected, rel=32 * precision), dtype
        gradients = step.gradients().items()
        assert not [name for name, gradient in gradients if not gradient.isfinite().all()], dtype


def losses_of_updates(step: Step, optimizer, updates: int = 8) -> list[float]:
    """Trains on one batch with an optimizer of fairseq, and returns the loss before each update."""
    losses = []
    for update in range(updates):
        optimizer.zero_grad()
        loss, _, _ = step.task.train_step(step.batch, step.model, step.criterion, optimizer, update)
        losses.append(loss.item())
        optimizer.clip_grad_norm(1.0)
        optimizer.step()
    return losses


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("arch", ["tree_transformer_tiny", "treeformer_tiny", "tree_insertion_transformer_tiny"])
def test_training_with_halves_alone_follows_training_in_single(arch, dtype, folders):
    """As with ``--memory-efficient-fp16`` and ``--memory-efficient-bf16``: no weight or moment has a copy in single."""
    kind = {torch.float16: "fp16", torch.bfloat16: "bf16"}[dtype]
    flags = (f"--memory-efficient-{kind}", "--fp16-init-scale", "4", "--optimizer", "adam", "--lr", "1e-3")
    [case] = [case for case in FIRST if case.arch == arch]
    single, half = (Step(replace(case, flags=(*case.flags, *flags)), folders).without_dropout() for _ in range(2))
    expected = losses_of_updates(single, build_optimizer(single.cfg.optimizer, list(single.model.parameters())))
    half.in_precision(dtype)
    optimizer = MemoryEfficientFP16Optimizer.build_optimizer(half.cfg, list(half.model.parameters()))
    found = losses_of_updates(half, optimizer)
    assert {weight.dtype for weight in half.model.parameters()} == {dtype}
    assert expected[-1] < 0.95 * expected[0]
    # Updates below the precision of a weight are lost, and more so with the few bits of bfloat16.
    assert found == pytest.approx(expected, rel=64 * HALVES[dtype])


class Summed(TorchDispatchMode):
    """Notes the precision of sums over lists."""

    def __init__(self):
        super().__init__()
        self.dtypes: set[torch.dtype] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket.__name__.startswith("index_add"):
            self.dtypes.add(args[0].dtype)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", HALVES)
def test_a_node_of_the_tree_lstm_may_have_ten_thousand_children(dtype):
    torch.manual_seed(0)
    children, width = 10_000, 4
    lstm = TreeLSTM(width, width, 1).to(dtype).double()
    with torch.no_grad():
        # Summands of one sign, each below the precision of their sum.
        lstm.from_children.weight.fill_(2**-13)
        lstm.from_features.bias.fill_(1)
    features = torch.zeros(1, children + 1, width, dtype=torch.float64)
    parents = torch.zeros(1, children + 1, dtype=torch.int64)
    parents[0, 0] = -1
    tree = parents, torch.zeros_like(parents), torch.ones_like(parents, dtype=torch.bool)
    expected, _ = lstm(features, *tree)
    with Summed() as sums:
        found, _ = lstm.to(dtype)(features.to(dtype), *tree)
    # GPUs add to each number by itself, in the precision that it has.
    assert sums.dtypes == {torch.float32, torch.int64}
    torch.testing.assert_close(found[0, 0].double(), expected[0, 0], rtol=8 * HALVES[dtype], atol=8 * HALVES[dtype])


@pytest.mark.parametrize("dtype", HALVES)
def test_attention_of_the_tree_to_tree_lstm_stays_finite(dtype):
    torch.manual_seed(0)
    lstm = TopDownLSTM(4, 8, 2).to(dtype)
    h, source = (torch.full((2, 3, 8), 60_000.0).to(dtype) for _ in range(2))
    padding = torch.tensor([[True, True, True], [False, False, True]])
    e, weights = lstm.attend(h.requires_grad_(), source / 1000, padding)
    assert e.isfinite().all() and weights.isfinite().all() and (weights[1, :, 2] == 0).all()
    e.sum().backward()
    assert h.grad.isfinite().all()


@pytest.mark.parametrize("dtype", HALVES)
def test_positions_of_deep_nodes_are_sums_in_single_precision(dtype):
    torch.manual_seed(0)
    positions = TreePositions(2, 16, TreePositionsConfig(tree_levels=500, tree_position_dim=2000)).to(dtype).double()
    paths = torch.randint(2, (4, 500))
    expected = positions.encode(paths)
    found = positions.to(dtype).encode(paths)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), expected, rtol=2 * HALVES[dtype], atol=2 * HALVES[dtype])
