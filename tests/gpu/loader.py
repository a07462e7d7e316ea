"""Checks that loading keeps up with the device: a training loop beside its steps alone and its loader alone."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch

from tests.benchmarks.commands import quiet
from tests.benchmarks.figures import Figure
from tests.benchmarks.loading import prepared_task
from tests.benchmarks.measuring import Settings
from tests.gpu.device import Device
from tests.gpu.models import BASE, BATCH_TOKENS, TINY, TrainingStep, build
from tests.gpu.parts import Options, Result

WORKERS, LINES, FIRST = 4, 12_000, 5


def run(device: Device, options: Options, result: Result) -> Iterator[None]:
    """Times the loader alone, the steps alone, and both together, on the same batches; yields once."""
    first = options.choose(FIRST, 1)
    dtype = device.precisions().get("bf16", torch.float32)
    dtype = torch.float32 if options.quick else dtype
    with tempfile.TemporaryDirectory() as folder, quiet():
        task = prepared_task(Path(folder), Settings(quick=options.quick), LINES)
        workers, tokens = options.choose((WORKERS, BATCH_TOKENS), (1, 200))

        def batches() -> Iterator[dict]:
            found = task.get_batch_iterator(
                task.dataset("train"), max_tokens=tokens, num_workers=workers, seed=1, disable_iterator_cache=True
            )
            return found.next_epoch_itr(shuffle=True)

        architecture = options.choose(BASE, TINY).ours
        step = TrainingStep(device, build(architecture, task), task, {}, dtype)
        loading = _seconds(device, (device.move(batch, dtype) for batch in batches()), first)
        kept = [device.move(batch, dtype) for batch in batches()]
        steps, count = _seconds(device, map(step.on, kept), first), len(kept) - first
        loop = _seconds(device, (step.on(device.move(batch, dtype)) for batch in batches()), first)
    name = f"{count / loading:.1f} batches a second from {workers} processes"
    faster = "loading, times as fast as the training step on the device"
    longer = "training loop with its loader, times as long as steps on batches that lie on the device"
    alone = f"{1e3 * steps / count:.4g} ms a step"
    result.figures = [
        Figure("loader", steps / loading, 1.0, False, faster, name, f"{count / steps:.1f} steps a second"),
        Figure("loop", loop / steps, 1.05, True, longer, f"{1e3 * loop / count:.4g} ms a step", alone),
    ]
    result.details = {"batches": count, "seconds": {"loading": loading, "steps": steps, "loop": loop}}
    result.notes = [f"Loader: {architecture}, batches of {BATCH_TOKENS} tokens, {workers} loading processes."]
    yield


def _seconds(device: Device, work: Iterable[object], first: int) -> float:
    """Returns the seconds that an iterator takes after its ``first`` elements, which include the start."""
    made, start = iter(work), 0.0
    for _ in range(first):
        next(made)
    device.synchronise()
    start = time.perf_counter()
    for _ in made:
        pass
    device.synchronise()
    return time.perf_counter() - start
