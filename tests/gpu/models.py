"""Models of the papers' sizes and the stock models beside them, their batches, and a training step."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from torch import Tensor, nn

from tests.benchmarks import translation_models
from tests.benchmarks.growth_methods import TINY as TINY_SIZES
from tests.benchmarks.translation_models import Task, stock_batch, tree_batch
from tests.gpu.device import Device


@dataclass(frozen=True)
class Pair:
    """An architecture, and the stock architecture that reads as many positions."""

    name: str  # for the table
    ours: str  # architecture of the package
    stock: str  # architecture of fairseq
    leaves: int = 28  # words of a sentence
    nodes: int = 18  # nodes of its tree; 0 for a model that reads plain sentences
    step_goal: float = 1.15  # how many times as long as the stock step ours may take
    generation_goal: float = 1.0  # how many times as many sentences a second ours has to write

    def models(self, task: Task) -> dict[str, nn.Module]:
        return {kind: build(getattr(self, kind), task) for kind in ("ours", "stock")}

    def batch(self, task: Task, size: int, is_ours: bool, targets: int | None = None) -> dict:
        """Makes ``size`` sentences; the stock model reads as many tokens as ours reads leaves and nodes."""
        targets = self.leaves if targets is None else targets
        if is_ours and self.nodes:
            return tree_batch(task, size, self.leaves, self.nodes, targets)
        return stock_batch(task, size, self.leaves + self.nodes, targets)


BASE = Pair("Tree-Transformer base", "tree_transformer_wmt_en_de", "transformer_wmt_en_de")
BIG = Pair("Tree-Transformer big", "tree_transformer_wmt_en_de_big", "transformer_wmt_en_de_big")
CHART = Pair(
    "Treeformer", "treeformer_iwslt_de_en", "transformer_iwslt_de_en", nodes=0, step_goal=1.5, generation_goal=0.8
)
TINY = Pair("Tree-Transformer tiny", "tree_transformer_tiny", "transformer", leaves=6, nodes=4)
WORDS, BATCH_TOKENS = 33_000, 4_096


def pairs(quick: bool) -> tuple[Pair, ...]:
    """Returns the pairs to compare; one small pair in a quick run."""
    return (TINY,) if quick else (BASE, BIG, CHART)


def make_task(quick: bool) -> Task:
    """Returns a task with a vocabulary of WMT's size."""
    return Task(words=100 if quick else WORDS)


def build(architecture: str, task: Task) -> nn.Module:
    sizes = TINY_SIZES if architecture == TINY.stock else {}
    return translation_models.build(architecture, task, dropout=0.1, **sizes)


class TrainingStep:
    """Forward pass, label-smoothed loss, backward pass and Adam's update on one batch, which lies on the device.

    In half precision, the gradients go to a copy of the parameters in fp32, which Adam updates, and the result goes
    back, as in fairseq's training. The host never waits for the device.
    """

    def __init__(self, device: Device, model: nn.Module, task: Task, batch: dict, dtype: torch.dtype):
        self.model = copy.deepcopy(model).to(device.torch, dtype).train()
        self.batch = device.move(batch, dtype)
        self.criterion = LabelSmoothedCrossEntropyCriterion(task, sentence_avg=False, label_smoothing=0.1)
        self.parameters = [weight for weight in self.model.parameters() if weight.requires_grad]
        self.is_half = dtype != torch.float32
        self.masters = [w.detach().float().clone() for w in self.parameters] if self.is_half else self.parameters
        self.optimizer = torch.optim.Adam(self.masters, lr=1e-5, betas=(0.9, 0.98))

    def __call__(self) -> Tensor:
        """Runs one step and returns the loss, which is not read here."""
        return self.on(self.batch)

    def on(self, batch: dict) -> Tensor:
        self.model.zero_grad(set_to_none=True)
        loss, _, _ = self.criterion(self.model, batch)
        loss.backward()
        used = [pair for pair in zip(self.parameters, self.masters) if pair[0].grad is not None]
        if self.is_half:
            for weight, master in used:
                master.grad = weight.grad.float()
        self.optimizer.step()
        if self.is_half:
            with torch.no_grad():
                torch._foreach_copy_([weight for weight, _ in used], [master for _, master in used])
        return loss
