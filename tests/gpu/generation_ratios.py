"""Times beam search of the papers' sizes, in all precisions, beside that of fairseq's transformer."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import nn

from tests.benchmarks.figures import time_ratio
from tests.benchmarks.translation_models import Search, Task
from tests.gpu.device import Device
from tests.gpu.models import make_task, pairs
from tests.gpu.parts import Options, Result

BATCH, BEAM, TARGETS = 64, 5, 30
ROUNDS, CALLS, WARM_UP = 3, 1, 1


def search(device: Device, model: nn.Module, task: Task, batch: dict, targets: int, dtype: torch.dtype) -> Search:
    """Returns a beam search over one batch with a copy of a model, on the device."""
    copied = copy.deepcopy(model).to(device.torch, dtype)
    return Search(copied, task, device.move(batch, dtype), targets, BEAM)


def run(device: Device, options: Options, result: Result) -> Iterator[None]:
    rounds, calls, warm_up = options.choose((ROUNDS, CALLS, WARM_UP), (1, 1, 1))
    speeds: dict[str, float] = {}
    result.details = {"sentences a second": speeds}
    result.notes = [f"Generation: beam {BEAM}, {BATCH} sentences, hypotheses of {TARGETS} tokens, encoder included."]
    task, (size, targets) = make_task(options.quick), options.choose((BATCH, TARGETS), (2, 3))
    for pair in pairs(options.quick):
        batches = {kind: pair.batch(task, size, kind == "ours", targets) for kind in ("ours", "stock")}
        models = pair.models(task)
        for name, dtype in device.precisions().items():
            searches = {kind: search(device, models[kind], task, batches[kind], targets, dtype) for kind in models}
            timing = device.side_by_side(searches, rounds, calls, warm_up)
            what = f"generation of {pair.name} in {name}, times the sentences a second of stock"
            key = f"{pair.ours}_{name}"
            result.figures.append(time_ratio(key, timing["ours"], timing["stock"], pair.generation_goal, what=what))
            for kind, taken in timing.items():
                speeds[f"{getattr(pair, kind)}, {name}"] = size / taken.median
            del searches
            device.free()
            yield
