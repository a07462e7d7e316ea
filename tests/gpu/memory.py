"""Measures the peak memory of training steps beside stock, and finds the longest sentence that fits."""

from __future__ import annotations

import dataclasses
import gc
import time
from collections.abc import Iterator
from typing import Callable

import torch

from tests.benchmarks.figures import Figure, byte_ratio
from tests.gpu.device import Device
from tests.gpu.models import BASE, BATCH_TOKENS, TINY, Pair, TrainingStep, build, make_task, pairs
from tests.gpu.parts import Options, Result

GOAL = 1.2
LENGTHS = (256, 512, 1_024, 2_048, 4_096, 8_192, 16_384)
# A length is not tried after one that took longer than this: the next one takes about four times as long.
PATIENCE = 6.0


def run(device: Device, options: Options, result: Result) -> Iterator[None]:
    """Compares the memory of each pair in each precision, then searches for the longest sentence."""
    task = make_task(options.quick)
    result.notes = ["Memory: the most in use at once during a step, minus that before it: without the model itself."]
    for pair in pairs(options.quick):
        size = options.choose(BATCH_TOKENS // (pair.leaves + 1), 2)
        models = pair.models(task)
        precisions = device.precisions()
        for name in options.choose(tuple(precisions), ("fp32",)):
            dtype = precisions[name]
            used = {}
            for kind in ("ours", "stock"):
                step = TrainingStep(device, models[kind], task, pair.batch(task, size, kind == "ours"), dtype)
                # The first step makes Adam's moments, which stay.
                step()
                used[kind] = device.peak_bytes(step)
                del step
                device.free()
            goal = GOAL if pair.nodes else None
            what = f"memory of a training step of {pair.name} in {name}, times that of stock"
            result.figures.append(byte_ratio(f"{pair.ours}_{name}", used["ours"], used["stock"], goal, True, what))
            yield
    pair = options.choose(BASE, TINY)
    name, dtype = options.choose(("bf16", torch.bfloat16), ("fp32", torch.float32))
    if name not in device.precisions():
        name, dtype = "fp16", torch.float16
    longest, reasons = {}, {}
    for kind in ("ours", "stock"):
        longest[kind], reasons[kind] = longest_sentence(device, pair, kind, dtype, options.choose(LENGTHS, (8,)))
    sides = (f"{longest['ours']} words: {reasons['ours']}", f"{longest['stock']} words: {reasons['stock']}")
    what = f"longest sentence that {pair.name} trains on in {name}, over stock's with as many positions"
    ratio = longest["ours"] / max(longest["stock"], 1)
    result.figures.append(Figure("longest", ratio, None, False, what, *sides))
    yield


def longest_sentence(
    device: Device, pair: Pair, kind: str, dtype: torch.dtype, lengths: tuple[int, ...]
) -> tuple[int, str]:
    """Returns the longest of some lengths with which a training step on one sentence works, and why no longer one."""
    task = make_task(pair is TINY)
    model, best = build(getattr(pair, kind), task), 0
    for length in lengths:
        longer = dataclasses.replace(pair, leaves=length, nodes=max(1, int(0.65 * length)))
        start = time.perf_counter()
        try:
            step = TrainingStep(device, model, task, longer.batch(task, 1, kind == "ours"), dtype)
            fits = fits_in_memory(device, step)
        except (RuntimeError, MemoryError, IndexError) as error:
            return best, f"{length} words: {type(error).__name__}: {str(error).strip().splitlines()[0][:120]}"
        step = None
        gc.collect()
        device.free()
        if not fits:
            return best, f"{length} words do not fit"
        best = length
        if time.perf_counter() - start > PATIENCE:
            return best, "longer ones were not tried for lack of time"
    return best, "longer ones were not tried"


def fits_in_memory(device: Device, step: Callable[[], object]) -> bool:
    if not device.is_gpu:
        return device.peak_bytes(step) <= device.memory()
    try:
        step()
        device.synchronise()
    except torch.cuda.OutOfMemoryError:
        return False
    return True
