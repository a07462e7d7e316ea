"""A training step of every architecture runs without waiting for its device.

The meta device has shapes and no values, so whatever asks for a value fails there.
"""

from __future__ import annotations

import contextlib

import pytest
import torch
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY

from tests.training_steps.cases import CASES, FOLDERS, Step
from tests.training_steps.modes import NoConstants, NoQuestions, OneDevice, Synchronisation
from tree_fairseq.nn.encoders import ENCODERS
from tree_fairseq.nn.tensors import PaddingAssumed
from tree_fairseq.tasks import tree_task

PENDING = dict.fromkeys(("lstm on", "lstm_classifier_tiny on"), "fairseq's LSTM packs sequences by lengths on the CPU")
"""Cases that do not pass, by the beginnings of their names, and where they wait for the device."""
WAITING = (Synchronisation, RuntimeError, NotImplementedError)


def pending(name: str) -> str | None:
    """Where a case still waits."""
    return next((place for begin, place in PENDING.items() if name.startswith(f"{begin} ")), None)


def _own(registry) -> set[str]:
    return {name for name, entry in registry.items() if entry.__module__.startswith("tree_fairseq")}


def _given(flag: str) -> set[str]:
    """Values of a flag in the cases and their folders."""
    commands = [case.flags for case in CASES] + [task for task, _ in FOLDERS.values()]
    return {value for flags in commands for name, value in zip(flags, flags[1:]) if name == flag}


def test_every_registered_name_has_a_case():
    assert {ARCH_MODEL_NAME_REGISTRY[case.arch] for case in CASES} >= _own(MODEL_REGISTRY)
    assert _given("--criterion") >= _own(CRITERION_REGISTRY)
    assert _given("--task") >= _own(TASK_REGISTRY)
    assert _given("--source-encoder") >= set(ENCODERS)
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(any(case.name.startswith(begin) for case in CASES) for begin in PENDING)


def marked(case):
    """A case; if it does not pass yet, it has to fail."""
    place = pending(case.name)
    marks = [] if place is None else [pytest.mark.xfail(reason=place, raises=WAITING, strict=True)]
    return pytest.param(case, id=case.name, marks=marks)


@pytest.fixture
def autocast_on_the_meta_device(monkeypatch):
    """Lets code switch off autocast there, which torch does not offer for this device."""
    autocast, is_enabled = torch.autocast, torch.is_autocast_enabled
    monkeypatch.setattr(
        torch,
        "autocast",
        lambda device, *args, **options: (
            contextlib.nullcontext() if device == "meta" else autocast(device, *args, **options)
        ),
    )
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda *device: device != ("meta",) and is_enabled(*device))


@pytest.mark.usefixtures("autocast_on_the_meta_device")
@pytest.mark.parametrize("case", [marked(case) for case in CASES])
def test_a_step_waits_for_no_device(case, folders, monkeypatch):
    step = Step(case, folders)
    # On the CPU, where operations are seen that the meta device lets pass, as if it were another device.
    monkeypatch.setattr(tree_task, "padding_assumed", lambda tokens: PaddingAssumed())
    with NoQuestions():
        step()
    step.to("meta")
    # fairseq's sinusoidal positions move in the first step.
    step()
    with OneDevice(), NoConstants():
        assert step().device.type == "meta"
    assert all(gradient.device.type == "meta" for gradient in step.gradients().values())
