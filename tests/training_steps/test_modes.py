"""The modes of training steps fail where a host waits for its device, and nowhere else."""

from __future__ import annotations

import pytest
import torch

from tests.training_steps.modes import META, NoConstants, NoQuestions, OneDevice, Synchronisation

QUESTIONS = {
    "item": lambda x: x.sum().item(),
    "int": lambda x: int(x.argmax()),
    "bool": lambda x: bool((x > 0).any()),
    "nonzero": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 0],
    "assigned mask": lambda x: x.clone().index_put_((x > 0,), torch.ones(())),
    "masked_select": lambda x: x.masked_select(x > 0),
    "unique": lambda x: x.unique(),
    "repeats": lambda x: torch.repeat_interleave(x[0].argsort()),
    "equal": lambda x: torch.equal(x, x),
    "bincount": lambda x: x[0].argsort().bincount(),
}
ANSWERS = {
    "shape": lambda x: x.view(int(torch._shape_as_tensor(x)[0]), -1),
    "python": lambda x: bool(torch.tensor(True)) and x.sum(),
    "where": lambda x: torch.where(x > 0, x, 0).cumsum(0)[x.argmax(1)],
    "repeats": lambda x: torch.repeat_interleave(x, 2, dim=0),
}


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_fail(name, device):
    values = torch.ones(3, 4, device=device)
    expected = Synchronisation if device == "cpu" else (RuntimeError, NotImplementedError, Synchronisation)
    with pytest.raises(expected), NoQuestions():
        QUESTIONS[name](values)


@pytest.mark.parametrize("name", ANSWERS)
def test_what_the_host_knows_passes(name):
    with NoQuestions():
        ANSWERS[name](torch.ones(3, 4))


JOINS = {
    "index": lambda x: x[torch.tensor([0, 1])],
    "sum": lambda x: x + torch.ones(3, 4),
    "copy": lambda x: torch.ones(3).to(x.device),
    "constant": lambda x: torch.tensor([1.0, 2.0], device=x.device),
    "new constant": lambda x: x.new_tensor([1.0, 2.0]),
    "number": lambda x: torch.tensor(1.0, device=x.device),
}


@pytest.mark.parametrize("name", JOINS)
def test_two_devices_do_not_meet(name):
    values = torch.ones(3, 4, device=META)
    with pytest.raises((Synchronisation, RuntimeError)), OneDevice(), NoConstants():
        JOINS[name](values)


def test_numbers_are_arguments_of_kernels():
    values = torch.ones(3, 4, device=META)
    with OneDevice(), NoConstants():
        assert (values * torch.tensor(2.0) + values.new_zeros(4) + torch.arange(4, device=META)).device == META
        assert torch.ones(2).add(torch.tensor([1.0, 2.0])).tolist() == [2, 3]
