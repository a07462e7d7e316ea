"""Times training steps of the papers' sizes, in all precisions, beside steps of fairseq's transformer."""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.figures import time_ratio
from tests.gpu.device import Device
from tests.gpu.models import BATCH_TOKENS, TrainingStep, make_task, pairs
from tests.gpu.parts import Options, Result

ROUNDS, CALLS, WARM_UP = 5, 4, 4


def run(device: Device, options: Options, result: Result) -> Iterator[None]:
    task = make_task(options.quick)
    rounds, calls, warm_up = options.choose((ROUNDS, CALLS, WARM_UP), (1, 1, 1))
    losses: dict[str, float] = {}
    result.details = {"losses after the last step": losses, "seconds": {}}
    result.notes = [
        f"Training steps: about {BATCH_TOKENS} target tokens in sentences of one length; forward pass, loss, backward "
        "pass, Adam's update. The stock model reads as many positions."
    ]
    for pair in pairs(options.quick):
        size = options.choose(BATCH_TOKENS // (pair.leaves + 1), 2)
        batches = {kind: pair.batch(task, size, kind == "ours") for kind in ("ours", "stock")}
        models = pair.models(task)
        for name, dtype in device.precisions().items():
            steps = {kind: TrainingStep(device, models[kind], task, batch, dtype) for kind, batch in batches.items()}
            timing = device.side_by_side(steps, rounds, calls, warm_up)
            what = f"training step of {pair.name} in {name}, times as long as stock"
            key = f"{pair.ours}_{name}"
            result.figures.append(
                time_ratio(key, timing["ours"], timing["stock"], pair.step_goal, at_most=True, what=what)
            )
            for kind, step in steps.items():
                losses[f"{getattr(pair, kind)}, {name}"] = step().item()
                result.details["seconds"][f"{getattr(pair, kind)}, {name}"] = timing[kind].seconds
            del steps, step
            device.free()
            yield
