"""Compares a training step and the outputs of every architecture on the device with those on the CPU."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.commands import quiet
from tests.benchmarks.figures import Figure
from tests.gpu.cases import DeviceStep, chosen_cases
from tests.gpu.device import Device
from tests.gpu.parts import Options, Result
from tests.training_steps.cases import Folders

LIMITS = {"fp32": (1e-4, 1e-4), "bf16": (0.02, 0.25), "fp16": (0.005, 0.1)}
"""Largest relative differences of the loss and of the gradients from the CPU's in fp32."""
SAME_OUTPUTS = 0.98  # Share of the outputs that have to be the same: those of random weights may tie


def run(device: Device, options: Options, result: Result) -> Iterator[None]:
    precisions = device.precisions()
    differences: dict[str, dict[str, tuple[float, float]]] = {name: {} for name in precisions}
    failures: dict[str, str] = {}
    same: dict[str, tuple[int, int]] = {}
    result.details = {"differences": differences, "failures": failures, "same outputs": same}
    with tempfile.TemporaryDirectory() as folder, quiet():
        folders, cases = Folders(Path(folder)), chosen_cases(options.quick)
        for case in cases:
            try:
                step = DeviceStep(case, folders)
                reference = step.on_cpu()
                expected = step.outputs(None)
            except (Exception, SystemExit) as error:
                failures[f"{case.name}, CPU"] = _told(error)
                continue
            for name, dtype in precisions.items():
                try:
                    differences[name][case.name] = step.on(device, dtype).difference(reference)
                except (Exception, SystemExit) as error:
                    failures[f"{case.name}, {name}"] = _told(error)
            try:
                found = step.outputs(device)
                same[case.name] = (sum(a == b for a, b in zip(found, expected)), len(expected))
            except (Exception, SystemExit) as error:
                failures[f"{case.name}, outputs"] = _told(error)
            result.figures = _figures(differences, failures, same, (2 + len(precisions)) * len(cases))
            yield
    result.notes = [
        "Correctness: loss and gradients of a training step without dropout, relative to those of the CPU in fp32; the "
        "largest difference of all architectures, and the architecture."
    ]
    result.notes += [f"Correctness, {where}: {error}" for where, error in failures.items()]
    yield


def _figures(differences: dict, failures: dict, same: dict, count: int) -> list[Figure]:
    figures = []
    for name, found in differences.items():
        for kind, (what, limit) in enumerate(zip(("loss", "gradients"), LIMITS[name])):
            if not found:
                continue
            worst = max(found, key=lambda case: found[case][kind])
            title = f"{what} in {name}, relative difference"
            value = found[worst][kind]
            figures.append(Figure(f"{what}_{name}", value, limit, True, title, worst, "the CPU in fp32"))
    equal, outputs = (sum(counts) for counts in zip(*same.values())) if same else (0, 0)
    if outputs:
        sides = (f"{equal} outputs", f"{outputs} of the CPU")
        figures.append(Figure("same_outputs", equal / outputs, SAME_OUTPUTS, False, "share of equal outputs", *sides))
    ran = (f"{count - len(failures)} runs", f"{count} runs")
    figures.append(Figure("ran", 1 - len(failures) / count, 1, False, "share of steps that ran without an error", *ran))
    return figures


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip()[:300]}"
