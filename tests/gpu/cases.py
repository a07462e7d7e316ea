"""Training steps of all architectures on the device, without dropout, so that two devices compute the same."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tests.gpu.device import Device
from tests.training_steps.cases import CASES, Case, Folders, Step, without_dropout

# Gradients of a parameter that are smaller than this share of all gradients are compared with that share: those of the
# keys' biases are zero but for rounding.
SMALLEST_SHARE = 0.01
LONGEST_OUTPUT = 12


# One of each kind of batch: sequences, trees of the source, symbol trees, partial trees.
QUICK = ("transformer", "tree_transformer_tiny", "tree_positional_transformer_tiny", "tree_insertion_transformer_tiny")


def chosen_cases(quick: bool) -> list[Case]:
    """Returns all cases, or the first one of some architectures in a quick run."""
    first = {case.arch: case for case in reversed(CASES)}
    return [first[arch] for arch in QUICK] if quick else list(CASES)


@dataclass(frozen=True)
class Outcome:
    """The loss of a training step, and the gradients by the name of the parameter, in float32 on the CPU."""

    loss: float
    gradients: dict[str, Tensor]

    def difference(self, reference: Outcome) -> tuple[float, float]:
        """Returns the relative differences of the losses and of the gradients.

        That of the gradients is the largest over the parameters: the norm of the difference over that of the reference,
        or over a hundredth of the norm of all gradients if that is larger. It is infinite if a parameter has a gradient
        on one side alone.
        """
        loss = abs(self.loss - reference.loss) / max(abs(reference.loss), 1e-6)
        if set(self.gradients) != set(reference.gradients):
            return loss, float("inf")
        least = SMALLEST_SHARE * max(_norm(reference.gradients.values()), 1e-12)
        shares = [
            _norm([self.gradients[name] - gradient]) / max(_norm([gradient]), least)
            for name, gradient in reference.gradients.items()
        ]
        # Not a number is larger than any limit.
        worst = max((share if share == share else float("inf") for share in shares), default=0.0)
        return loss if loss == loss else float("inf"), worst


def _norm(tensors: Sequence[Tensor]) -> float:
    return sum(tensor.double().square().sum().item() for tensor in tensors) ** 0.5


class DeviceStep:
    """The step of a case on the CPU, and the same step on the device in any precision."""

    def __init__(self, case: Case, folders: Folders):
        self.step = Step(case, folders)
        without_dropout(self.step.model)

    def on_cpu(self) -> Outcome:
        """Runs the step on the CPU in fp32; this is the reference."""
        return self._run(self.step.model, self.step.batch)

    def model_on(self, device: Device, dtype: torch.dtype) -> nn.Module:
        model = self.step.task.build_model(self.step.cfg.model)
        model.load_state_dict(self.step.model.state_dict())
        return without_dropout(model).to(device.torch, dtype)

    def on(self, device: Device, dtype: torch.dtype) -> Outcome:
        return self._run(self.model_on(device, dtype), device.move(self.step.batch, dtype))

    def passes(self, model: nn.Module, batch: dict) -> Tensor:
        """Runs forward pass, loss and backward pass as the trainer does; returns the loss."""
        model.zero_grad()
        criterion = self.step.criterion.to(next(model.parameters()))
        loss, _, _ = self.step.task.train_step(batch, model, criterion, self.step, 0)
        return loss

    def _run(self, model: nn.Module, batch: dict) -> Outcome:
        loss = self.passes(model, batch)
        gradients = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
        return Outcome(loss.item(), {name: gradient.float().cpu() for name, gradient in gradients.items()})

    def outputs(self, device: Device | None) -> list[list[int]]:
        """Returns the best output of each sentence of the batch, from the device in fp32 or, without one, the CPU."""
        task, settings = self.step.task, copy.deepcopy(self.step.cfg.generation)
        settings.max_len_a, settings.max_len_b = 0, LONGEST_OUTPUT
        if device is None:
            model, batch = self.step.model, copy.deepcopy(self.step.batch)
        else:
            model, batch = self.model_on(device, torch.float32), device.move(self.step.batch)
        model.eval()
        try:
            generator = task.build_generator([model], settings)
            found = task.inference_step(generator, [model], batch)
        finally:
            model.train()
        return [hypotheses[0]["tokens"].tolist() for hypotheses in found]
