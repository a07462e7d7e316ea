"""Counts how often the host waits for the device in a training step of every architecture."""

from __future__ import annotations

import collections
import contextlib
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.benchmarks.commands import quiet
from tests.benchmarks.figures import Figure
from tests.gpu.cases import DeviceStep, chosen_cases
from tests.gpu.device import Device
from tests.gpu.parts import Options, Result
from tests.training_steps.cases import Folders

STOCK = "transformer"
MESSAGE = "synchronizing CUDA operation"
_WAITING = frozenset(["_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "_unique2"])
ROOT = Path(__file__).resolve().parents[2]


class _CountedQuestions(TorchDispatchMode):
    """Counts the operations for which the host would wait, on a device that waits for none."""

    def __init__(self):
        super().__init__()
        self.found: collections.Counter[str] = collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if name in _WAITING:
            self.found[name] += 1
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def counted(device: Device) -> Iterator[collections.Counter]:
    """Counts the synchronisations of the block by the lines of code where they happen.

    On the CPU, where nothing waits, the operations that would wait on a GPU are counted by name.
    """
    if not device.is_gpu:
        with _CountedQuestions() as mode:
            yield mode.found
        return
    found: collections.Counter[str] = collections.Counter()
    with warnings.catch_warnings(record=True) as caught:
        # Each occurrence, also of the same line.
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode("default")
    for warning in caught:
        if MESSAGE in str(warning.message):
            path = Path(warning.filename)
            place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else Path(*path.parts[-3:])
            found[f"{place}:{warning.lineno}"] += 1


def run(device: Device, options: Options, result: Result) -> Iterator[None]:
    """Counts them in forward pass, loss and backward pass of each architecture; yields after each."""
    found: dict[str, dict[str, int]] = {}
    result.details = {"synchronisations": found}
    with tempfile.TemporaryDirectory() as folder, quiet():
        folders = Folders(Path(folder))
        for case in chosen_cases(options.quick):
            try:
                step = DeviceStep(case, folders)
                model, batch = step.model_on(device, torch.float32), device.move(step.step.batch)
                # Tables of fairseq's positions move to the device in the first step.
                step.passes(model, batch)
                device.synchronise()
                with counted(device) as places:
                    step.passes(model, batch)
            except (Exception, SystemExit) as error:
                result.notes.append(f"Synchronisations, {case.name}: {type(error).__name__}: {str(error)[:300]}")
                continue
            found[case.name] = dict(places)
            result.figures = _figures(found)
            yield
    if not device.is_gpu:
        result.notes.append("Synchronisations: on the CPU, the operations are counted that would wait on a GPU.")
    yield


def _figures(found: dict[str, dict[str, int]]) -> list[Figure]:
    totals = {case: sum(places.values()) for case, places in found.items()}
    stock = [count for case, count in totals.items() if case.startswith(f"{STOCK} ")]
    own = {case: count for case, count in totals.items() if not case.startswith(f"{STOCK} ")}
    if not own:
        return []
    worst = max(own, key=own.__getitem__)
    # Those of fairseq's own code are not ours to avoid.
    allowed = max(stock, default=0)
    what = "synchronisations in a training step, the most of any architecture"
    sides = (f"{own[worst]}, {worst}", f"{allowed}, {STOCK}")
    return [Figure("most", own[worst], allowed, True, what, *sides)]
